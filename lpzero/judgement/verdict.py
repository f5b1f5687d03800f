"""The verdict on a winner, built here alone: what it beats, by how much, and if within groups too.

Result files and the report page have the whole sentence that `verdict` gives. The command line
prints `headline`, which is the first thing it says, above the numbers in rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from lpzero.judgement.correlation import LEAST_IN_GROUP
from lpzero.judgement.counters import BEST_COUNT
from lpzero.judgement.differences import Difference, Outcome
from lpzero.judgement.judgement import Judgement
from lpzero.judgement.stability import Stability

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
    clauses = [_compared(name, found, column) for name, found in differences.items()]
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
    role = "best column on train and valid" if is_column else "best counter on train"
    return f"the {name}" if name == BEST_COUNT else f"{name} (the {role})"


def _compared(name: str, found: Difference, column: str | None) -> str:
    rival = rival_name(name, name == column)
    low, high = map(_signed, found.rho_ci)
    facts = f"[{low}, {high}] on {found.n} test rows ({found.share_above:.0%} of draws above 0)"
    if found.outcome is Outcome.NOT_AHEAD:
        return f"It does not beat {rival}: the difference is {_signed(found.rho)} {facts}"
    settled = "ahead" if found.outcome is Outcome.AHEAD else "not settled"
    return f"It is ahead of {rival} by {_signed(found.rho)} {facts}: {settled}"


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
