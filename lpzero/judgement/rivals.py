"""A winner beside its rivals: the fields on them that every result has.

The rivals are the best counter, chosen on the training rows like the winner, and, if it is given,
the best count: the best product of sizes that the same search finds on the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

from lpzero.arrays import FloatArray
from lpzero.judgement.counters import BEST_COUNT
from lpzero.judgement.differences import Difference
from lpzero.judgement.stability import Stability
from lpzero.judgement.table import SPLIT_PARTS, TableJudge
from lpzero.judgement.verdict import verdict
from primitives.formula import Formula

if TYPE_CHECKING:
    from spaces.tables import ColumnTable, Table


class Count(Protocol):
    """A product of sizes: its formula, which prints as text, and its scores (n,) of all rows."""

    @property
    def formula(self) -> object: ...

    @property
    def scores(self) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class Rival:
    """A proxy to compare a winner with: its name, its kind and its scores (n,) of all rows."""

    name: str
    kind: str
    scores: FloatArray
    formula: str | None = None


def rival_lines(
    judged: TableJudge, scores: FloatArray, rivals: Sequence[Rival]
) -> list[dict[str, Any]]:
    """Each counter, column and rival on the test rows, and its paired difference from the winner.

    JSON values: name, kind, formula, n, rho with its interval, and the winner's rho less the
    rival's with the interval from the same resamples. Best first.
    """
    counted = [Rival(name, "counter", found) for name, found in judged.counter_scores.items()]
    columns = [Rival(name, "column", found) for name, found in judged.oriented_columns().items()]
    lines = []
    for rival in (*counted, *columns, *rivals):
        difference = judged.compare(scores, {rival.name: rival.scores}).get(rival.name)
        if difference is not None:
            own = judged.judge(rival.scores, "test")["test"]
            lines.append(
                {
                    "proxy": rival.name,
                    "kind": rival.kind,
                    "formula": rival.formula,
                    "n": own.n,
                    "rho": own.rho,
                    "rho_ci": list(own.rho_ci),
                    "difference": difference.to_json(),
                }
            )
    return sorted(lines, key=lambda line: (-line["rho"], line["proxy"]))


# Winner's formula and table -> how far its scores repeat there.
MeasureStability = Callable[[Formula, "Table | ColumnTable"], Stability]


@dataclass(frozen=True, eq=False)
class Contest:
    """A winner's scores (n,) on a table with open test rows, and what they are compared with."""

    judged: TableJudge
    scores: FloatArray
    count: Count | None = None
    stability: Stability | None = None

    @property
    def table(self) -> str:
        """The table's name."""
        return self.judged.table.name

    @cached_property
    def differences(self) -> dict[str, Difference]:
        """The paired differences on test by rival: the best count, the best counter and column."""
        count = {} if self.count is None else {BEST_COUNT: self.count.scores}
        others = (self.judged.best_counter(), self.judged.best_column())
        return self.judged.compare(self.scores, count | dict(filter(None, others)))

    def lines(self) -> list[dict[str, Any]]:
        """The differences as JSON values."""
        column = self.judged.best_column()
        return [
            {
                "table": self.table,
                "against": name,
                "is_column": column is not None and name == column[0],
                **difference.to_json(),
            }
            for name, difference in self.differences.items()
        ]

    def verdict(self) -> str:
        """The sentence on the winner on this table."""
        test = self.judged.judge(self.scores, "test")["test"]
        column = self.judged.best_column()
        return verdict(test, self.differences, self.stability, column and column[0])


def contest_fields(contests: Sequence[Contest]) -> dict[str, Any]:
    """`count`, `difference`, `differences`, `stability` and `verdict` of a result, as JSON values.

    `differences` has a line per table and rival. `difference` is that against the best count,
    without one that against the best counter; of several tables the lowest. So is `stability`.
    Without contests, which is without a winner, there is nothing to say.
    """
    leading = [line for contest in contests for line in contest.lines()[:1]]
    stable = [
        {"table": contest.table, **contest.stability.to_json()}
        for contest in contests
        if contest.stability is not None
    ]
    verdicts = {contest.table: contest.verdict() for contest in contests}
    fields = {
        "count": count_fields(contests),
        "difference": min(leading, key=lambda line: line["rho"], default=None),
        "differences": [line for contest in contests for line in contest.lines()],
        "stability": min(stable, key=lambda line: line["least"], default=None),
    }
    if len(verdicts) <= 1:
        return fields | {"verdict": next(iter(verdicts.values()), None)}
    told = " ".join(f"{table}: {text}" for table, text in verdicts.items())
    return fields | {"verdict": told, "verdict_by_table": verdicts}


def count_fields(contests: Sequence[Contest]) -> dict[str, Any] | None:
    """The best count with the fields of a winner, rho the lowest over the tables.

    Tables may have different best counts: then `formula` is None and `formula_by_table` tells.
    """
    given = [(contest.judged, contest.count) for contest in contests if contest.count is not None]
    if not given:
        return None
    rhos = {judged.table.name: judged.rhos(count.scores) for judged, count in given}
    formulas = {judged.table.name: str(count.formula) for judged, count in given}
    texts = set(formulas.values())
    fields = {
        "formula": next(iter(texts)) if len(texts) == 1 else None,
        "rho": {part: min(rho[part] for rho in rhos.values()) for part in SPLIT_PARTS},
        "judged": {judged.table.name: judged.judge_chosen(count.scores) for judged, count in given},
    }
    if len(given) == 1:
        return fields
    return fields | {"rho_by_table": rhos, "formula_by_table": formulas}
