"""How many trained architectures are enough: the rule and regressions of features on fewer rows.

    python -m experiments.beyond_counting.learning_curve

For every table and split subsets of train and valid that contain each other, as `lpzero discover`
draws them, and the same test rows: the best counter, the winner of `--choose nested` (without
evolution), its predictor, and four regressions of the architecture's features on the targets'
normal scores. Ridge, forest and boosting are scikit-learn's (`pip install lpzero[peers]`), the
process is the engine's reference. A split is kept as soon as it is there: a stopped run continues.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import click
import numpy as np

from experiments.beyond_counting.run import Choosers, choosers_of, on_split
from experiments.measured import prints_measured
from experiments.reproduction import markdown
from experiments.resumable import Row, resume
from lpzero.arrays import FloatArray
from lpzero.cli.options import cache_option, data_option
from lpzero.discover.levels import draw_rows
from lpzero.discover.prediction import TablePrediction
from lpzero.judgement.correlation import spearman
from lpzero.report import style
from lpzero.scores.features import Features, describe
from lpzero.scores.gaussian import normal_targets
from spaces.tables import Split, split

TABLES = ("flexibert", "gpt2-wt103", "rnn-ptb")
SIZES = (10, 20, 30, 50, 100)
NAMES = ("counter", "nested", "predictor", "process", "ridge", "forest", "boosting")
PICTURE = Path(__file__).parents[2] / "docs" / "images" / "learning-curve.svg"


@click.command()
@click.option("--table", "tables", multiple=True, default=TABLES)
@click.option("--splits", default=10, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/beyond_counting"))
@click.option("--picture", type=click.Path(path_type=Path), default=PICTURE)
@cache_option
@data_option
@prints_measured
def main(
    tables: tuple[str, ...],
    splits: int,
    out: Path,
    picture: Path,
    cache: str | None,
    data: str | None,
) -> None:
    """Print the medians of rho on the test rows over the splits, and draw them."""
    choosers = lru_cache(maxsize=1)(partial(choosers_of, cache=cache, data=data))

    def work(key: str) -> list[Row]:
        name, seed = key.split()
        rows = measure(choosers(name), int(seed))
        return [{"table": name, "split": int(seed), **row} for row in rows]

    keys = [f"{name} {seed}" for name in tables for seed in range(splits)]
    lines = medians(resume(out / "learning-curve.jsonl", keys, work))
    draw(lines, picture)
    print(markdown(lines, ["table", "rows", *NAMES]))


def measure(choosers: Choosers, seed: int) -> list[Row]:
    """The test rho of everyone, a row for each number of rows that they are given."""
    table = choosers.table
    parts = split(table, seed)
    hidden = parts.hide_test(table)
    known = np.sort(np.concatenate([parts.train, parts.valid]))
    features = describe(table.space, table.archs)
    found = []
    for n in (*(size for size in SIZES if size < len(known)), len(known)):
        rows = draw_rows(known, n, seed)
        scores = scores_of(choosers, hidden, parts, rows)
        inputs = Features.of([features[row] for row in rows])(features)
        for name, fitted in regressions(seed).items():
            fitted.fit(inputs[rows], normal_targets(hidden.targets[rows]))
            scores[name] = np.asarray(fitted.predict(inputs))
        test = parts.open_test()
        rhos = {name: spearman(of[test], table.targets[test]) for name, of in scores.items()}
        found.append({"rows": n, "is_all": n == len(known), **rhos})
    return found


def scores_of(choosers: Choosers, hidden: Any, parts: Split, rows: Any) -> dict[str, FloatArray]:
    """The scores (A,) of the engine's own, chosen and fitted on these rows."""
    view = on_split(choosers.nested, hidden, parts, rows)
    level = view.level_choice.level
    product = level.best(hidden.targets, rows, 1)[0]
    formula, own = level.formula(product), level.scores(product)
    prediction = TablePrediction(view, formula, own)
    counters = view.levels[0]
    return {
        "counter": counters.scores(counters.best(hidden.targets, rows, 1)[0]),
        "nested": own,
        "predictor": prediction.scores,
        "process": prediction.reference.scores,
    }


def regressions(seed: int) -> dict[str, Any]:
    """scikit-learn's regressions, which read features alone."""
    from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
    from sklearn.linear_model import RidgeCV

    return {
        "ridge": RidgeCV(np.logspace(-3, 4, 15)),
        "forest": RandomForestRegressor(200, random_state=seed),
        "boosting": GradientBoostingRegressor(
            n_estimators=200, learning_rate=0.05, max_depth=3, subsample=0.7, random_state=seed
        ),
    }


def medians(rows: Sequence[Row]) -> list[Row]:
    """A line for each table and number of rows; the last is all of train and valid."""
    groups: dict[tuple[str, int, bool], list[Row]] = {}
    for row in rows:
        # Splits may differ by a row or two in what all of them is.
        key = row["table"], 0 if row["is_all"] else row["rows"], row["is_all"]
        groups.setdefault(key, []).append(row)
    return [
        {
            "table": table,
            "rows": round(float(np.median([row["rows"] for row in of]))),
            **{name: round(float(np.median([row[name] for row in of])), 3) for name in NAMES},
        }
        for (table, _, _), of in groups.items()
    ]


def draw(lines: Sequence[Row], path: Path) -> None:
    """Write the picture: a panel per table, a line per name."""
    tables = list(dict.fromkeys(line["table"] for line in lines))
    with style.look():
        figure = style.new(3.6 * len(tables), 3.4)
        panels = figure.subplots(1, len(tables), squeeze=False)[0]
        for panel, table in zip(panels, tables, strict=True):
            here = [line for line in lines if line["table"] == table]
            sizes = [line["rows"] for line in here]
            for place, name in enumerate(NAMES):
                is_ours = name in ("nested", "predictor")
                panel.plot(
                    sizes,
                    [line[name] for line in here],
                    "o-" if is_ours else ".:",
                    color=style.COLOURS[place % len(style.COLOURS)],
                    label=name,
                )
            panel.set_xscale("log")
            panel.set_xticks(sizes, [str(size) for size in sizes])
            panel.minorticks_off()
            panel.set_title(table)
            panel.set_xlabel("trained architectures")
        panels[0].set_ylabel("rho on test rows, median")
        panels[-1].legend()
        style.save(figure, path)


if __name__ == "__main__":
    main()
