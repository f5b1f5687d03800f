"""A winner's scores and the targets, row by row: the figures are drawn from it without the table.

It contains the table's targets, so it is only written into a run's directory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lpzero.arrays import FloatArray

if TYPE_CHECKING:
    from spaces.tables import ColumnTable, Table


def column(
    table: Table | ColumnTable,
    parts: Mapping[str, Iterable[Any]],
    scores: FloatArray,
    rivals: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Id, part, target and score (n,) of every row as JSON values, and what describes the rows.

    Tables with networks have each architecture and its sizes. `rivals` are lines on other proxies
    (`lpzero.judgement.rivals.rival_lines`).
    """
    labels = {int(row): part for part, rows in parts.items() for row in rows}
    found = {
        "id": list(table.ids),
        "part": [labels[row] for row in range(len(table))],
        "target": table.targets.tolist(),
        "score": scores.tolist(),
        "rivals": list(rivals),
    }
    if table.space is None:
        return found
    space = table.space
    return found | {
        "arch": [space.to_json(arch) for arch in table.archs],
        "sizes": {
            "depth": [space.depth(arch) for arch in table.archs],
            "width": [space.width(arch) for arch in table.archs],
            "parameters": [space.parameters(arch) for arch in table.archs],
        },
    }


def sheet(formula: str, columns: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The formula and its columns on every table."""
    return {"formula": formula, "tables": dict(columns)}
