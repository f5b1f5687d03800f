"""How many evaluations ETAS needs to reach the best 1%, by proxy, over seeds.

    python -m experiments.etas_gpt2.run wt103 wt103-small --out runs/etas-gpt2 --jobs 2

Every search is a directory of its own: stop it at will, the same command goes on.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from experiments.etas_gpt2.settings import SETTINGS, Setting
from lpzero.cli.searching import print_comparison
from lpzero.search import Constraints, Request, Surroundings
from lpzero.search.comparing import compare
from lpzero.store import default_folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("settings", nargs="*", default=list(SETTINGS), help=", ".join(SETTINGS))
    parser.add_argument("--out", type=Path, default=Path("runs/etas-gpt2"))
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    cache = Path(os.environ.get("LPZERO_CACHE") or default_folder())
    for name in given.settings:
        setting = SETTINGS[name]
        out = given.out / name
        around = Surroundings(cache=cache, jobs=given.jobs, label=name)
        found = compare(requests(setting), setting.seeds, around, out, resume=True)
        print(f"{name}: {setting}")
        print_comparison(found, "table", str(out))


def requests(setting: Setting) -> list[Request]:
    """One arm per proxy."""
    bounds = {} if setting.most is None else {"decoder-parameters": (None, setting.most)}
    return [
        Request(
            setting.space,
            "etas",
            proxy,
            evaluator=setting.evaluator,
            table="gpt2-wt103" if setting.space == "gpt2-released" else None,
            constraints=Constraints(bounds),
            constants=setting.constants,
        )
        for proxy in setting.proxies
    ]


if __name__ == "__main__":
    main()
