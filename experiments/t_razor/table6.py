"""Table VI of T-Razor for PiT: diversity, saliency and DSS++ of the published architectures.

    python -m experiments.t_razor.table6

With the recipe of the predecessor's public code: `dss-diversity-released`, `dss-saliency-released`.
"""

from __future__ import annotations

import click
import numpy as np

from experiments.measured import prints_measured
from experiments.reproduction import markdown
from lpzero.judgement.ranks import rank
from lpzero.proxies.families.released import dss_diversity_released, dss_saliency_released
from lpzero.proxies.network import Network
from lpzero.statistics.isolation import single_thread
from spaces.pit import PitArch, PitSpace

# Name, base width and heads; depths and ratio are the same. Printed: diversity, saliency, DSS++.
PUBLISHED = {
    "PiT-Ti": (32, (2, 4, 8), (8.6e3, 2.1e4, 2)),
    "PiT-XS": (48, (2, 4, 8), (1.1e4, 2.3e4, 4)),
    "PiT-S": (48, (3, 6, 12), (1.7e4, 2.7e4, 6)),
}
DEPTHS, RATIO = (2, 6, 4), 4
COLUMNS = (
    "model", "parameters (M)", "printed diversity", "diversity", "printed saliency", "saliency",
    "printed DSS++", "DSS++",
)  # fmt: skip


@click.command()
@prints_measured
def main() -> None:
    """Print the three rows."""
    rows = []
    with single_thread():
        for name, (base, heads, printed) in PUBLISHED.items():
            space = PitSpace(base_dims=(base,), heads=heads)
            arch = PitArch(base, RATIO, DEPTHS, heads)
            network = Network(space.build(arch, 0), space.batch(0))
            values = dss_diversity_released(network), dss_saliency_released(network)
            size = space.parameters(arch) / 1e6
            rows.append({"model": name, "parameters (M)": f"{size:.2f}"})
            for kind, there, here in zip(("diversity", "saliency"), printed, values, strict=False):
                rows[-1] |= {f"printed {kind}": f"{there:.1e}", kind: f"{here:.1e}"}
            rows[-1] |= {"printed DSS++": str(printed[2])}
    ranks = [
        rank(np.array([float(row[kind]) for row in rows])) for kind in ("diversity", "saliency")
    ]
    for row, combined in zip(rows, sum(ranks), strict=True):
        row["DSS++"] = f"{combined:.0f}"
    click.echo(markdown(rows, COLUMNS))


if __name__ == "__main__":
    main()
