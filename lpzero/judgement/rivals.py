"""A winner beside its rivals: the fields on them that every result has, and the verdict.

The rivals are the best counter, chosen on the training and validation rows, and, if it is given,
the best count: the best product of sizes that the same search finds on the same rows. The verdict
says what the winner beats, by how much, and if within groups too. Result files and the report page
have the whole sentence that `verdict` gives; the command line prints `headline`, the first thing it
says, above the numbers in rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from lpzero.arrays import FloatArray
from lpzero.judgement.bootstrap import Difference, Outcome
from lpzero.judgement.correlation import LEAST_IN_GROUP, Stability
from lpzero.judgement.counters import BEST_COUNT
from lpzero.judgement.judgement import Judgement
from lpzero.judgement.table import SPLIT_PARTS, TableJudge
from primitives.formula import Formula

if TYPE_CHECKING:
    from spaces.tables import ColumnTable, Table


@dataclass(frozen=True, eq=False)
class Count:
    """A product of sizes with its scores (n,) of all rows."""

    formula: Formula
    scores: FloatArray


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
    counted = [
        Rival(name, "counter", of_counter) for name, of_counter in judged.counter_scores.items()
    ]
    columns = [
        Rival(name, "column", of_counter) for name, of_counter in judged.oriented_columns().items()
    ]
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


_NORMAL_QUANTILE = 1.96  # of the 95% level


def verdict(
    winner: Judgement,
    differences: Mapping[str, Difference],
    stability: Stability | None = None,
    column: str | None = None,
) -> str:
    """One sentence on the winner's judgement on test rows; differences by the rivals' names.

    `column` is the name of the rival that is a column rather than a counter.
    """
    if winner.flaw is not None:
        return f"It ranks nothing: its scores on the {winner.n} test rows are {winner.flaw}."
    clauses = [_compared(name, difference, column) for name, difference in differences.items()]
    clauses = clauses or [f"It reaches rho {_signed(winner.rho)} on {winner.n} test rows"]
    if winner.rho_given_params is not None:  # else there are no sizes to group by
        clauses += _within(winner)
    clauses += _repeated(stability)
    first, *rest = clauses
    return "; ".join([first, *(clause[0].lower() + clause[1:] for clause in rest)]) + "."


def headline(winner: Mapping[str, Any], against: str, outcome: str, is_column: bool = False) -> str:
    """A short sentence on a winner's test judgement and its difference from its first rival.

    Both are JSON values of a result: fields of a judgement, a rival's name, an outcome.
    """
    if winner["flaw"] is not None:
        return f"It ranks nothing: its scores on the {winner['n']} test rows are {winner['flaw']}."
    rival = rival_name(against, is_column)
    return {
        Outcome.AHEAD: f"It is ahead of {rival}.",
        Outcome.NOT_SETTLED: f"It is above {rival}, but the difference is not settled.",
        Outcome.NOT_AHEAD: f"It does not beat {rival}.",
    }[Outcome(outcome)]


def within_claim(rho: float, n: int) -> str:
    """What rho within groups of equal depth and width on n test rows says, in a few words."""
    if abs(rho) <= chance_within(n):
        return "no more than chance"
    return "it still ranks" if rho > 0 else "it ranks the wrong way round"


def rival_name(name: str, is_column: bool) -> str:
    """The rival with the rows it was chosen on."""
    role = "column" if is_column else "counter"
    return f"the {name}" if name == BEST_COUNT else f"{name} (the best {role} on train and valid)"


def _compared(name: str, difference: Difference, column: str | None) -> str:
    rival = rival_name(name, name == column)
    low, high = map(_signed, difference.rho_ci)
    share = f"{difference.share_above:.0%} of draws above 0"
    facts = f"[{low}, {high}] on {difference.n} test rows ({share})"
    if difference.outcome is Outcome.NOT_AHEAD:
        return f"It does not beat {rival}: the difference is {_signed(difference.rho)} {facts}"
    settled = "ahead" if difference.outcome is Outcome.AHEAD else "not settled"
    return f"It is ahead of {rival} by {_signed(difference.rho)} {facts}: {settled}"


def _within(winner: Judgement) -> Iterator[str]:
    where = "within groups of equal depth and width"
    if winner.rho_within is None:
        yield f"nothing can be said {where}: none has {LEAST_IN_GROUP} test rows"
        return
    rho = f"(rho {_signed(winner.rho_within)} on {winner.n_within} rows)"
    if abs(winner.rho_within) <= chance_within(winner.n_within):
        yield f"{where} it says no more than chance would {rho}"
    elif winner.rho_within > 0:
        yield f"{where} it still ranks {rho}"
    else:
        yield f"{where} it ranks the wrong way round {rho}"


def chance_within(n_archs: int) -> float:
    """The |rho| within groups that unrelated scores stay below in at least 95% of cases.

    Rho of unrelated scores in a group of m has variance 1 / (m - 1), so the mean weighted by m
    has at most m / (m - 1) / n_archs of the smallest group there can be.
    """
    return _NORMAL_QUANTILE * math.sqrt(LEAST_IN_GROUP / (LEAST_IN_GROUP - 1) / n_archs)


def _repeated(stability: Stability | None) -> Iterator[str]:
    if stability is not None:
        yield (
            f"over other weights and batches (n = {stability.n}) its scores repeat at a rank"
            f" correlation of {_signed(stability.median)}, at least {_signed(stability.least)}"
        )


def _signed(value: float) -> str:
    """Three decimals, without a minus before nothing."""
    text = f"{value:.3f}"
    return text[1:] if text == "-0.000" else text
