"""Scores that the authors saved in their repository, on parts of gpt2-wt103.

    python -m experiments.lpzero.table4_saved FOLDER

FOLDER has files `NAME_scores_seed_1111.yaml` of https://github.com/pprp/LPZero, as they are under
saved_logs/random_GPT2_wt103 there; a second version of a file goes in under another name. Prints
Spearman's rho with the target on sets of rows that a quick trial would take, how it varies over
random sets, and on how many sets it is near a figure that was measured elsewhere on rows that are
not known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from experiments.measured import prints_measured
from experiments.reproduction import markdown, spread
from lpzero.cli.options import data_option
from lpzero.judgement.correlation import spearman
from spaces.tables import load
from spaces.tables.readers import field, read_yaml

if TYPE_CHECKING:
    from lpzero.arrays import FloatArray, LabelArray

_SUFFIX = "_scores_seed_1111"
_SIZES = (20, 25, 30, 40, 50, 60, 80, 100)
_STEPS = (2, 3, 4, 5, 8, 10)
# Figures at 4 x 192 tokens of code that is not public, and how near is near.
SOUGHT = {
    "grasp": (-0.95, 0.02),
    "synflow": (0.69, 0.03),
    "activation_distance": (0.79, 0.02),
    "logsynflow": (0.95, 0.01),
}


@click.command()
@click.argument("folder", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--draws", type=int, default=1000, show_default=True, help="Random sets per size.")
@data_option
@prints_measured
def main(folder: Path, draws: int, data: Path | None) -> None:
    """Print rho of saved scores on sets of rows."""
    table = load("gpt2-wt103", data)
    scores = {
        path.name.removesuffix(f"{_SUFFIX}.yaml"): saved_scores(path, table.ids)
        for path in sorted(folder.glob(f"*{_SUFFIX}.yaml"))
    }
    sets = row_sets(table.ids, table.targets)
    rows: list[dict[str, Any]] = [
        {"rows": label, "n": len(picked)}
        | {name: spearman(of[picked], table.targets[picked]) for name, of in scores.items()}
        for label, picked in sets.items()
    ]
    print(markdown(rows, ("rows", "n", *scores)))
    sought = {name: near for name, near in SOUGHT.items() if name in scores}
    found = {
        name: np.array([abs(row[name] - rho) <= width for row in rows])
        for name, (rho, width) in sought.items()
    }
    counts = {name: int(is_near.sum()) for name, is_near in found.items()}
    together = int(np.all(list(found.values()), axis=0).sum()) if found else 0
    print(f"Near what is sought, of {len(rows)} sets: {counts}, all together {together}\n")
    print(markdown(random_sets(scores, table.targets, draws), ("n", *scores)))


def saved_scores(path: Path, ids: Sequence[str]) -> FloatArray:
    """The scores of one file in the order of the ids."""
    found = read_yaml(path)
    return np.array([field(found, name, float, str(path)) for name in ids])


def row_sets(ids: Sequence[str], targets: FloatArray) -> dict[str, LabelArray]:
    """Sets of rows by what they are called: all, the first, the last, every so many, spread.

    "numbers" is the order of the numbers in the ids (config_2 before config_10). A set that two
    orders have in common is there once.
    """
    table = np.arange(len(ids))
    numbers = [tuple(int(part) for part in re.findall(r"\d+", name)) for name in ids]
    by_number = np.array(sorted(table, key=lambda row: numbers[row]))
    sets = {"all": table}
    for order, rows in (("table", table), ("numbers", by_number)):
        for n in _SIZES:
            sets[f"first {n}, order of {order}"] = rows[:n]
            sets[f"last {n}, order of {order}"] = rows[-n:]
        for step in _STEPS:
            for start in (0, 1):
                sets[f"every {step} from {start}, order of {order}"] = rows[start::step]
    sets |= {f"{n} spread over the targets": spread(targets, n) for n in _SIZES}
    seen: dict[frozenset[int], str] = {}
    for label, rows in sets.items():
        seen.setdefault(frozenset(rows.tolist()), label)
    return {label: sets[label] for label in seen.values()}


def random_sets(
    scores: dict[str, FloatArray], targets: FloatArray, draws: int
) -> list[dict[str, Any]]:
    """For each size the 2.5%, 50% and 97.5% points of rho over random sets of rows."""
    random = np.random.default_rng(0)
    rows: list[dict[str, Any]] = []
    for n in _SIZES:
        picked = [random.choice(len(targets), n, replace=False) for _ in range(draws)]
        points = {
            name: tuple(
                float(point)
                for point in np.percentile(
                    [spearman(of[rows_of], targets[rows_of]) for rows_of in picked],
                    (2.5, 50, 97.5),
                )
            )
            for name, of in scores.items()
        }
        rows.append({"n": n, **points})
    return rows


if __name__ == "__main__":
    main()
