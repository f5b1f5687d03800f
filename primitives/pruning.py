"""Predictive pruning: formulas that need no evaluation, each with the rule that rejects it.

The rules follow from declared properties (Table 6 of LPZero). A pruned formula is
constant, or decided by a guard's epsilon, or has the score of a formula that is kept; which one
is part of the rule. `check(formula, rules=...)` with fewer rules is the ablation switch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from primitives.canonical import canonical
from primitives.errors import UnknownPrimitiveError, did_you_mean
from primitives.expressions import Apply, Combine, Expression, children, drop_dead, walk
from primitives.facts import are_aligned, facts
from primitives.formula import Formula
from primitives.properties import Interval, Kind
from primitives.registry import get_binary
from primitives.rejection import Rejected
from primitives.rewrites import rewrites


@dataclass(frozen=True, slots=True)
class Rule:
    """example: a formula the rule rejects; kept: the formula that has its score, if any."""

    name: str
    reason: str
    example: str
    kept: str | None = None
    on_by_default: bool = True


_ALL = (
    Rule("both-disconnected", "every branch is disconnected: nothing is left to score",
         "sum(add(disconnect(W), disconnect(G)))"),
    Rule("degenerate-scalar", "reducing or normalising a scalar gives it back or a constant",
         "sum(add(H, log_softmax(fro(A))))", "sum(H)"),
    Rule("conflict", "the operation sees positive values only and its operand has none",
         "sum(sqrt(neg(square(W))))"),
    Rule("constant", "the result is decided by the shapes alone, whatever the tensors hold",
         "sum(mean(softmax(W)))"),
    Rule("inverse-of-zeros", "the operand holds exact zeros: the guard of 1/0 decides the score",
         "sum(inverse(relu(W)))"),
    Rule("inverse-pair", "the operation undoes the one before it",
         "sum(sqrt(square(W)))", "sum(abs(W))"),
    Rule("no-effect", "the operand already lies where the operation changes nothing",
         "sum(abs(exp(W)))", "sum(exp(W))"),
    Rule("absorbed", "the operation before changes only what this one does not see",
         "sum(square(neg(W)))", "sum(square(W))"),
    Rule("equivalent", "another primitive is, by definition, the same",
         "sum(norm_sum(W))", "sum(mean(W))"),
    Rule("zero-term", "one side of the sum has mean zero whatever the tensors hold",
         "sum(add(zscore(W), square(A)))", "sum(square(A))"),
    Rule("cancels", "both sides of the sum are the same up to sign, and cancel",
         "sum(sub(W, mean(W)))"),
    Rule("rescaled-mean", "l1 of a non-negative is the mean times the element count: the same"
         " ranking only where all tensors have one size, so this rule is off by default",
         "sum(l1(relu(W)))", "sum(mean(relu(W)))", on_by_default=False),
)  # fmt: skip

_ZERO = Interval(0.0, 0.0)
RULES = {rule.name: rule for rule in _ALL}
DEFAULT_RULES = frozenset(name for name, rule in RULES.items() if rule.on_by_default)


def check(formula: Formula, rules: Collection[str] = DEFAULT_RULES) -> Rejected | None:
    """The reason why the formula need not be evaluated, or None.

    >>> from primitives.parser import parse
    >>> check(parse("sum(add(abs(square(W)), A))")).rule
    'no-effect'
    """
    active = _known(rules)
    expression = drop_dead(formula.expression)
    if expression is None:
        return rejection("both-disconnected") if "both-disconnected" in active else None
    found = check_expression(expression, active)
    if found is not None:
        return found
    return next((rejection(name) for name in _at_the_top(expression) if name in active), None)


def check_expression(
    expression: Expression, rules: Collection[str] = DEFAULT_RULES
) -> Rejected | None:
    """The first rule that a node of the expression breaks, operands before operations."""
    for child in children(expression):
        below = check_expression(child, rules)
        if below is not None:
            return below
    for found in rewrites(expression):
        # The replacement must not be longer, or it might lie outside a bounded space.
        if found.rule in rules and not _is_longer(found.result, expression):
            return rejection(found.rule)
    if isinstance(expression, Combine):
        for name in _in_binary(expression):
            if name in rules:
                return rejection(name)
    return None


def rejection(name: str) -> Rejected:
    """The rejection by the rule of that name."""
    return Rejected(name, RULES[name].reason)


def without(*names: str) -> frozenset[str]:
    """The default rules without these, for ablations."""
    return DEFAULT_RULES - _known(names)


def _at_the_top(expression: Expression) -> Iterator[str]:
    """The rules on the operand of the final mean."""
    while isinstance(expression, Apply) and expression.operation == "neg":
        expression = expression.operand
    if "mean" in dict(facts(expression).steady):
        yield "constant"
    if not isinstance(expression, Combine):
        return
    sides = expression.left, expression.right
    if get_binary(expression.operation).is_linear:
        if any(map(has_zero_mean, sides)):
            yield "zero-term"
        if facts(canonical(Formula(expression)).expression).interval == _ZERO:
            yield "cancels"
    elif any(facts(side).kind is Kind.SCALAR for side in sides) and any(map(has_zero_mean, sides)):
        yield "constant"  # mean(s·M) = s·mean(M) = 0


def _in_binary(expression: Combine) -> Iterator[str]:
    left, right = expression.left, expression.right
    is_product_of_means = not (
        get_binary(expression.operation).is_linear or are_aligned(facts(left), facts(right))
    )
    if is_product_of_means and (has_zero_mean(left) or has_zero_mean(right)):
        yield "constant"


def has_zero_mean(expression: Expression) -> bool:
    """Whether the mean over each tensor is zero for all tensors (negated or not)."""
    while isinstance(expression, Apply) and expression.operation == "neg":
        expression = expression.operand
    known = facts(expression)
    return dict(known.steady).get("mean") == 0.0 or known.interval == _ZERO


def _is_longer(result: Expression | None, than: Expression) -> bool:
    return result is not None and len(list(walk(result))) > len(list(walk(than)))


def _known(names: Iterable[str]) -> frozenset[str]:
    for name in names:
        if name not in RULES:
            raise UnknownPrimitiveError(
                f"unknown pruning rule {name!r}; {did_you_mean(name, RULES)}"
            )
    return frozenset(names)
