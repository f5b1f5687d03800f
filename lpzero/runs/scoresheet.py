"""A winner's scores and the targets, row by row: the figures are drawn from it without the table.

It contains the table's targets, so it is only written into a run's directory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from lpzero.arrays import FloatArray

if TYPE_CHECKING:
    from spaces.tables import ColumnTable, Table


def column(
    table: Table | ColumnTable, parts: Mapping[str, Iterable[Any]], scores: FloatArray
) -> dict[str, Any]:
    """Id, part, target and score (n,) of every row as JSON values."""
    labels = {int(row): part for part, rows in parts.items() for row in rows}
    return {
        "id": list(table.ids),
        "part": [labels[row] for row in range(len(table))],
        "target": table.targets.tolist(),
        "score": scores.tolist(),
    }


def sheet(formula: str, columns: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The formula and its columns on every table."""
    return {"formula": formula, "tables": dict(columns)}
