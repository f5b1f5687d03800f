"""How many evaluations ETAS needs to reach the best 1%, by proxy, over seeds.

    python -m experiments.etas.evaluations wt103 wt103-small --out runs/etas-gpt2 --jobs 2

Every search has its own directory; after an interruption the same command continues.
"""

from __future__ import annotations

from pathlib import Path

import click

from experiments.etas.settings import SETTINGS, Setting
from experiments.measured import prints_measured
from lpzero.cli.options import data_option, jobs_option
from lpzero.cli.printers import print_comparison
from lpzero.search import Constraints, Request, Resources
from lpzero.search.comparison import compare
from lpzero.verbs.compare import result_of

Bounds = dict[str, tuple[float | None, float | None]]
N_EVALUATED = 33  # what ETAS evaluates at most: 3 parents and 3 of each of 10 iterations


@click.command()
@click.argument("names", metavar="[SETTING]...", nargs=-1, type=click.Choice(list(SETTINGS)))
@click.option("--out", type=Path, default=Path("runs/etas-gpt2"), show_default=True)
@jobs_option
@data_option
@prints_measured
def main(names: tuple[str, ...], out: Path, jobs: int, data: str | None) -> None:
    """Print the result of each proxy in the named settings, by default in all."""
    for name in names or SETTINGS:
        setting = SETTINGS[name]
        around = Resources(data=data, jobs=jobs, label=name)
        found = compare(requests(setting), setting.seeds, around, out / name, resume=True)
        print(f"{name}: {setting}")
        print_comparison(result_of(found, out / name), str(out / name))


def requests(setting: Setting, bounds: Bounds | None = None) -> list[Request]:
    """One arm per proxy, and random search if the setting has it; `bounds` beside its own."""
    own: Bounds = {} if setting.most is None else {"decoder-parameters": (None, setting.most)}
    arms = [("etas", proxy, setting.constants) for proxy in setting.proxies]
    if "random" in setting.loops:
        drawn = {"samples": N_EVALUATED, "evaluations": N_EVALUATED}
        arms.append(("random", "none", drawn))
    return [
        Request(
            setting.space,
            loop,
            proxy,
            evaluator=setting.evaluator,
            table="gpt2-wt103" if setting.space in ("gpt2-released", "gpt2-etas") else None,
            constraints=Constraints({**own, **(bounds or {})}),
            constants=constants,
        )
        for loop, proxy, constants in arms
    ]


if __name__ == "__main__":
    main()
