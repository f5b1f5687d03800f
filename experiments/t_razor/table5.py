"""What evolution and random search found, seed by seed: the proxy's score and the accuracy.

    python -m experiments.t_razor.table5 runs/trazor-table5/pit-c100

Reads the runs of the comparison that the page has the command of. Scores of DSS++ are ranks among
what one search has seen, so that only DSS and SNIP are compared between searches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from experiments.measured import prints_measured
from experiments.reproduction import markdown
from lpzero.runs.run import open_run

Found = dict[int, dict[str, Any]]  # the best of each seed
PROXIES = ("dss", "snip")


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@prints_measured
def main(folder: Path) -> None:
    """Print in how many seeds evolution has the winner with more score, and the better one."""
    arms: dict[tuple[str, str], Found] = {}
    for path in sorted((folder / "runs").glob("*/*")):
        run = open_run(path)
        assert run.result is not None
        arm = str(run.request["loop"]), str(run.request["proxy"])
        arms.setdefault(arm, {})[int(path.name)] = run.result["best"]
    rows = [row(proxy, arms["trazor", proxy], arms["random", proxy]) for proxy in PROXIES]
    print(markdown(rows, list(rows[0])))
    print(*same_winner(arms), sep="\n")


def row(proxy: str, evolved: Found, drawn: Found) -> dict[str, Any]:
    """How many seeds of evolution beat the same seed of random search, and the other way round."""
    highest = max(best["score"] for found in (evolved, drawn) for best in found.values())

    def count(is_so: Callable[[int], bool]) -> int:
        return sum(map(is_so, evolved))

    return {
        "proxy": proxy,
        "more score": count(lambda seed: evolved[seed]["score"] > drawn[seed]["score"]),
        "less score": count(lambda seed: evolved[seed]["score"] < drawn[seed]["score"]),
        "more accurate": count(lambda seed: evolved[seed]["target"] > drawn[seed]["target"]),
        "less accurate": count(lambda seed: evolved[seed]["target"] < drawn[seed]["target"]),
        "highest score seen": count(lambda seed: evolved[seed]["score"] == highest),
        "by random search": count(lambda seed: drawn[seed]["score"] == highest),
    }


def same_winner(arms: dict[tuple[str, str], Found]) -> Iterator[str]:
    """A line for each loop: how often DSS and DSS++ choose the same."""
    for loop in ("random", "trazor"):
        one, other = arms[loop, "dss"], arms[loop, "dss++"]
        n = sum(one[seed]["arch"] == other[seed]["arch"] for seed in one)
        yield f"{loop}: dss and dss++ choose the same in {n} of {len(one)} seeds"


if __name__ == "__main__":
    main()
