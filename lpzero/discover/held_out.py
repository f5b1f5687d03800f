"""A search of columns repeated on other splits: what its winners reach on rows they have not seen.

One split's test rows are few. On each split the level is cross-validated and its formula searched
anew, as in a campaign without generations; the best single column, ridge regression on the columns'
logarithms and the predictor are fitted on the same rows, and each is tested once.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.arrays import FloatArray, IntArray
from lpzero.discover.settings import Settings
from lpzero.errors import RunError
from lpzero.judgement.correlation import spearman
from lpzero.options import options
from lpzero.parallel import Lost, Workers, stream
from lpzero.scores.column_predictor import predictor_scores, ridge_scores
from primitives.errors import Rejected
from spaces.tables import split

if TYPE_CHECKING:
    from spaces.tables import ColumnTable

SPLITS = 20
MOST_ROWS = 2000  # of tables whose splits are searched without being asked for
_MEDIANS = ("rho", "column_rho", "ridge_rho", "predictor_rho")
_NAMES = [entry.name for entry in options(Settings)]


def held_out(
    table: ColumnTable,
    settings: Settings,
    splits: int,
    workers: Workers | None = None,
    label: str | None = None,
) -> dict[str, Any]:
    """Medians over splits 0 to n - 1 of rho on the test rows, and the line of each split.

    Settings whose campaigns start from a beam search have no generations after it here.
    """
    lines: list[dict[str, Any]] = [{} for _ in range(splits)]
    if settings.starts_from_beam:
        settings = replace(settings, generations=0)
    task = _Split(table, settings)
    with closing(stream(task, list(range(splits)), workers, label)) as answers:
        for index, line in answers:
            if isinstance(line, Lost):
                raise RunError(f"split {index} was lost: {line.reason}")
            lines[index] = line
    columns = {name: abs(spearman(of, table.targets)) for name, of in table.columns.items()}
    best = max(columns, key=lambda name: columns[name])
    return {
        "splits": splits,
        **{name: float(np.median([line[name] for line in lines])) for name in _MEDIANS},
        "ahead": sum(line["rho"] > line["column_rho"] for line in lines),
        "best_column": {"column": best, "rho_on_all_rows": columns[best]},
        "lines": lines,
    }


@dataclass(frozen=True, slots=True)
class _Split:
    """Runs in a worker: one split."""

    table: ColumnTable
    settings: Settings

    def __call__(self, seed: int) -> dict[str, Any]:
        from lpzero.discover.discovery import Campaign
        from lpzero.discover.report import choose

        changes = {name: getattr(self.settings, name) for name in _NAMES}
        campaign = Campaign(self.table, split_seed=seed, **changes).search()
        (fitness,) = campaign.objective.tables_fitness
        is_on_train = campaign.objective.rule == "train"
        chosen_on = fitness.rows if is_on_train else fitness.train_valid_rows
        winner = choose(campaign.objective, campaign.outcome_).candidates[0]
        formula = campaign.objective.canonical(winner.formula)
        scores = fitness.values.score(formula)
        assert not isinstance(scores, Rejected), "the winner has a score on every row"
        column, values = _best_column(self.table, chosen_on)
        hidden, columns = fitness.table.targets, fitness.columns.values
        ridge = ridge_scores(columns, chosen_on, hidden)
        predicted = predictor_scores(
            columns, fitness.train_valid_rows, hidden, scores, fitness.level_choice.folded[0]
        )
        rows = split(self.table, seed).open_test()
        targets = self.table.targets[rows]
        return {
            "split": seed,
            "formula": str(formula),
            "rho": spearman(scores[rows], targets),
            "column": column,
            "column_rho": spearman(values[rows], targets),
            "ridge_rho": spearman(ridge[rows], targets),
            "predictor_rho": spearman(predicted[rows], targets),
        }


def _best_column(table: ColumnTable, rows: IntArray) -> tuple[str, FloatArray]:
    """The column with the largest |rho| on these rows, with the sign that it has there."""
    rhos = {name: spearman(of[rows], table.targets[rows]) for name, of in table.columns.items()}
    name = max(rhos, key=lambda one: abs(rhos[one]))
    return name, np.sign(rhos[name]) * table.columns[name]
