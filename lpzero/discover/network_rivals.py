"""Published proxies that run networks, among the rivals of a campaign's winner.

NTSR runs every network once, so it is computed on the test rows alone, and only where these are
few. It combines ranks: here those among the test rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lpzero.discover.campaign_columns import ProxyScores
from lpzero.errors import LPZeroError
from lpzero.judgement.rivals import Rival
from lpzero.judgement.table import TableJudge
from lpzero.sketches.sketch import SketchOptions

if TYPE_CHECKING:
    from spaces.tables import Table

NAMES = ("ntsr",)
MOST_NETWORKS = 64  # one to six seconds: 0.03 s each on the nano tables, 0.1 s on gpt2-wt103


@dataclass(frozen=True)
class NetworkRivals:
    """Gives the scores of `NAMES` on the test rows of a table; nothing without `proxy_scores`."""

    proxy_scores: ProxyScores | None
    options: SketchOptions

    def of(self, judged: TableJudge) -> list[Rival]:
        """The rivals on a table, NaN except on its test rows; none if the space has no such."""
        table, rows = judged.table, judged.parts["test"]
        if self.proxy_scores is None or table.space is None or len(rows) > MOST_NETWORKS:
            return []
        tested = _only(table, rows.tolist())
        try:
            found = self.proxy_scores(tested, NAMES, self.options)
        except (LPZeroError, RuntimeError):
            # It does not apply to the space, or a model of the user's own cannot do what it asks
            # for: better a rival less than a campaign without a result.
            return []
        lines = []
        for name, scores in found.items():
            everywhere = np.full(len(table), np.nan)
            everywhere[rows] = scores
            lines.append(Rival(name, "zoo", everywhere))
        return lines


def _only(table: Table, rows: list[int]) -> Table:
    """The table with these rows alone."""
    return replace(
        table,
        archs=tuple(table.archs[i] for i in rows),
        ids=tuple(table.ids[i] for i in rows),
        targets=table.targets[rows],
        extra={name: values[rows] for name, values in table.extra.items()},
        digest=f"{table.digest} test rows",
    )
