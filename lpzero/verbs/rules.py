"""rules: List the pruning rules and why they hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lpzero.options import Repeated, Switch, Whole, option
from lpzero.verbs import Outcome, Screen

EXAMPLES = ("lpzero rules --unaries 1",)


@dataclass(frozen=True, kw_only=True)
class Request:
    """List the pruning rules and how much of the paper's space each removes.

    Rules of level term apply to every term, rules of level score to what stands above the terms.
    The latter are on as long as any rule is, and have no counts: the paper's space has none of it.
    """

    unaries: int | None = option(
        None, "The number of operations per chain.  [default: both 1 and 2]", Whole(1, 2)
    )
    off: tuple[str, ...] = option((), "Turn a rule off; repeatable.", Repeated("RULE"))
    same_statistic: bool = option(False, "Also pair each statistic with itself.", Switch())


def run(request: Request, screen: Screen) -> Outcome:
    """A row per rule, and the sizes of the spaces."""
    from primitives.pruning import OUTER_RULES, RULES, without
    from primitives.space_size import measure, removed_alone

    active, paired = without(*request.off), request.same_statistic
    lengths = [1, 2] if request.unaries is None else [request.unaries]
    sizes = [measure(length, paired, active) for length in lengths]
    rows = []
    for rule in (*RULES.values(), *OUTER_RULES.values()):
        is_term = rule.name in RULES
        row: dict[str, Any] = {
            "rule": rule.name,
            "level": "term" if is_term else "score",
            "on": not is_term or rule.name in active,
        }
        for n, size in zip(lengths, sizes, strict=True):
            removed = size.rejected.get(rule.name, 0)
            row[f"removes_{n}"] = removed if is_term else None
            row[f"alone_{n}"] = removed_alone(n, rule.name, paired) if is_term else None
        rows.append(row | {"example": rule.example, "kept": rule.kept, "reason": rule.reason})
    fields = ("unaries", "before", "kept", "distinct", "rejected")
    spaces = [{field: getattr(size, field) for field in fields} for size in sizes]
    lines = [
        f"chains of {size.unaries}: {size.before:,} formulas, {size.kept:,} after pruning,"
        f" {size.distinct:,} distinct (up to sign, for one reduction over blocks)"
        for size in sizes
    ]
    return Outcome({"rules": rows, "sizes": spaces}, {"rows": rows, "lines": ["", *lines]})
