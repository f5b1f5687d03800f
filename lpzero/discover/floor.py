"""The permutation floor of a campaign: what its beam search fits to permuted targets.

The beam search alone is repeated, as often as there are permutations: evolution, which takes
minutes, starts from what it finds. The winner is chosen on the same rows as the campaign's.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lpzero.discover.objective import Objective
from lpzero.scores.floor import ProductFloor, permutation_floor
from lpzero.scores.products import search

if TYPE_CHECKING:
    from spaces.tables import ColumnTable, Table


def floors(
    tables: Sequence[Table | ColumnTable],
    objective: Objective,
    permutations: int,
    with_progress: bool = False,
) -> list[dict[str, Any]]:
    """The floor on each table as JSON values; this reads the test rows.

    Empty without permutations, and for campaigns that do not start from a beam search.
    """
    settings = objective.settings
    if not permutations or not settings.starts_from_beam:
        return []
    lines = []
    for table, fitness in zip(tables, objective.tables_fitness, strict=True):
        logs, rows = fitness.terms.logs, fitness.rows
        floor = ProductFloor(
            partial(search, logs[:, rows], beam=fitness.beam),
            logs,
            rows,
            fitness.train_valid_rows if settings.choose == "stable" else rows,
            fitness.parts.open_test(),
        )
        label = f"permutations of {table.name}" if with_progress else None
        found = permutation_floor(
            floor, table.targets, permutations, workers=fitness.workers, label=label
        )
        lines.append({"table": table.name, **found.to_json()})
    return lines
