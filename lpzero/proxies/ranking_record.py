"""A ranking as a run: its config, its files, and reading them back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.judgement.table import ALL, TableJudge, space_name
from lpzero.runs.config import RunConfig, StoredConfig
from lpzero.runs.formula_run import column
from lpzero.runs.layout import RESULT, SCORES
from lpzero.runs.run import Run, read_file
from spaces.tables import split
from spaces.tables.splits import MIN_ROWS

if TYPE_CHECKING:
    from spaces.tables import ColumnTable, Table

KIND = "ranking"
Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class RankingRun(Run):
    """A ranking; `scores` has the score of every architecture by every proxy, None if missing."""

    scores: Mapping[str, Any] | None

    @property
    def table(self) -> Mapping[str, Any]:
        """Name, space, target and digest of the table."""
        found: Mapping[str, Any] = self.request["tables"][0]
        return found

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        """A row per proxy, best first; none without a result."""
        return [] if self.result is None else self.result["rows"]


def ranking_config(table: Table | ColumnTable, options: Mapping[str, Any]) -> RunConfig:
    """The config of a ranking: the table, and the options that its numbers depend on."""
    about = {"name": table.name, "space": space_name(table), "target": table.target}
    return RunConfig(KIND, {"tables": [{**about, "digest": table.digest}], **options})


def result_of(
    table: Table | ColumnTable, split_seed: int, rows: Sequence[Row], scores: Mapping[str, Any]
) -> tuple[Row, Row | None]:
    """The result, and the score sheet if the scores (n,) by proxy are known; JSON values."""
    parts = split(table, split_seed) if len(table) >= MIN_ROWS else None
    judged = TableJudge(table, parts, with_test=True)
    result = {"tables": [{"name": table.name, **judged.facts}], "rows": list(rows)}
    best = str(rows[0]["proxy"]) if rows else ""
    if best not in scores:
        return result, None
    labels = judged.parts or {ALL: np.arange(len(table))}
    sheet = column(table, labels, scores[best])
    by_proxy = {name: _values(found) for name, found in scores.items()}
    whole = {**sheet, "score": by_proxy[best], "scores": by_proxy}
    return result, {"formula": best, "tables": {table.name: whole}}


def _values(scores: FloatArray) -> list[float | None]:
    """The scores as JSON values; None where there is none."""
    return [float(score) if np.isfinite(score) else None for score in scores]


def read(config: StoredConfig) -> RankingRun:
    """The ranking with that config."""
    remarks: list[str] = []
    result = read_file(config, RESULT, remarks)
    if result is None:
        remarks.append("The ranking is not finished: run the same command again.")
    return RankingRun(config, result, remarks, read_file(config, SCORES, remarks))
