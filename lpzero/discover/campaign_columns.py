"""The columns of a campaign, and the published proxies that are its winner's rivals.

A table or proxies give columns, and so do the counters where formulas are products. NTSR, a
published proxy, runs every network once, so it is computed on the test rows alone, and only where
these are few. It combines ranks: those among the test rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.discover.settings import Settings
from lpzero.discover.table_fitness import TableColumns
from lpzero.errors import InputError, LPZeroError
from lpzero.judgement import counters
from lpzero.judgement.rivals import Rival
from lpzero.judgement.table import TableJudge
from lpzero.scores.columns import AS_RANKS, Columns, as_ranks, select
from lpzero.sketches.sketch import SketchOptions

if TYPE_CHECKING:
    from spaces.tables import ColumnTable, Table


# Scores (n,) of a table's architectures by the names of proxies, with these seeds.
ProxyScores = Callable[["Table", Sequence[str], SketchOptions], Mapping[str, FloatArray]]


def table_columns(
    table: Table | ColumnTable,
    settings: Settings,
    options: tuple[SketchOptions, SketchOptions],
    proxy_scores: ProxyScores | None = None,
) -> TableColumns:
    """What gives the columns of a table; only proxies have other values with the second options."""
    source = _Source(table, settings, proxy_scores)
    source.check()

    def repeated() -> Columns:
        return source.columns(options[1])

    has_other = bool(settings.terms_from)
    return TableColumns(lambda: source.columns(options[0]), repeated if has_other else None)


class _Source:
    def __init__(
        self, table: Table | ColumnTable, settings: Settings, proxy_scores: ProxyScores | None
    ) -> None:
        self.table, self.settings, self.proxy_scores = table, settings, proxy_scores

    def check(self) -> None:
        """Raise InputError unless the table has what is asked for."""
        wanted, table = self.settings.terms_from, self.table
        own = self._own()
        if wanted and table.space is None:
            raise InputError(
                f"table {table.name} has no networks that {wanted[0]} could score; --terms-from"
                " needs a table with networks"
            )
        if wanted and self.proxy_scores is None:
            raise InputError("terms_from needs proxy_scores, as lpzero.proxies.ranking has them")
        for name in wanted:
            if name in own:
                raise InputError(f"{name} is a column of {table.name} and a proxy; name only one")
        if self.settings.columns_only and not own and not wanted:
            raise InputError(
                "--columns-only and no column: name some with --columns or --terms-from"
            )

    def columns(self, options: SketchOptions) -> Columns:
        """The columns with these seeds."""
        found = dict(self._own())
        if self.settings.terms_from:
            assert self.table.space is not None, "was checked"
            assert self.proxy_scores is not None, "was checked"
            found |= self.proxy_scores(self.table, self.settings.terms_from, options)
        for name, values in found.items():
            missing = int((~np.isfinite(values)).sum())
            if missing:
                raise InputError(
                    f"column {name} has no number in {missing} of {len(values)} rows of"
                    f" {self.table.name}; leave it out"
                )
        if self.settings.columns_as == AS_RANKS:
            found = as_ranks(found)
        counted = {name: of for name, of in self._counters().items() if name not in found}
        return Columns(found | counted, frozenset(counted))

    def _counters(self) -> dict[str, FloatArray]:
        """The counters that may be factors, if formulas are products and read networks."""
        s = self.settings
        if self.table.space is None or s.columns_only or s.terms == 1:
            return {}
        return counters.factors(self.table)

    def _own(self) -> dict[str, FloatArray]:
        """The table's own columns; of a table without networks all, unless some are named."""
        table, wanted = self.table, self.settings.columns
        if table.space is None:
            return select(table.columns, wanted or list(table.columns), table.name)
        return select(table.extra, wanted, table.name)


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
        tested = table.only(rows.tolist())
        try:
            by_proxy = self.proxy_scores(tested, NAMES, self.options)
        except (LPZeroError, RuntimeError):
            # It does not apply to the space, or a model of the user's own cannot do what it asks
            # for: better a rival less than a campaign without a result.
            return []
        lines = []
        for name, scores in by_proxy.items():
            everywhere = np.full(len(table), np.nan)
            everywhere[rows] = scores
            lines.append(Rival(name, "zoo", everywhere))
        return lines
