"""Predictive pruning: formulas that need no evaluation, each with the rule that rejects it.

The rules follow from declared properties (Table 6 of LPZero). A pruned formula is
constant, or decided by a guard's epsilon, or has the score of a formula that is kept; which one
is part of the rule. `check(formula, rules=...)` with fewer rules is the ablation switch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from primitives.canonical import as_product, canonical_term, ranking
from primitives.errors import Rejected, UnknownPrimitiveError, did_you_mean
from primitives.expressions import Apply, Combine, Expression, children, drop_dead, walk
from primitives.facts import EVERY_NAME, Meeting, facts, keeps_sign, meeting, range_of
from primitives.formula import Base, Column, Formula, Outer, Sum, Term, chains, formulas_within
from primitives.outer import get_outer
from primitives.properties import NON_NEGATIVE, Blind, Interval, Kind, on_change
from primitives.registry import get_binary
from primitives.rewrites import rewrites
from primitives.statistics import SIZES, STATISTICS

MAX_FACTORS = 4
ALLOWED_EXPONENTS = frozenset(Fraction(numerator, 4) for numerator in (1, 2, 4, 8))
# Columns are few and given, where terms are made by the thousand: finer exponents pay.
ALLOWED_COLUMN_EXPONENTS = ALLOWED_EXPONENTS | {
    Fraction(numerator, 8) for numerator in (1, 3, 6, 12)
}


@dataclass(frozen=True, slots=True)
class Rule:
    """example: a formula the rule rejects; kept: the formula that has its score, if any."""

    name: str
    reason: str
    example: str
    kept: str | None = None
    on_by_default: bool = True


_OF_TERMS = (
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

_OF_FORMULAS = (
    Rule("not-at-ends", "embedding and head have no such statistic or size", "embedding(fro(H))"),
    Rule("constant-factor", "a term that is decided by the shapes alone changes no ranking",
         "mul(sum(l1(W)), last(mean(softmax(G))))", "sum(l1(W))"),
    Rule("changes-sign", "a root, logarithm or inverse of a term that may change its sign",
         "mul(depth, sqrt(sum(W)))"),
    Rule("undone-operation", "the operation undoes the one before it",
         "mul(depth, sqrt(square(sum(l1(W)))))", "mul(depth, sum(l1(W)))"),
    Rule("idle-operation", "the operation, or the one before it, changes nothing here",
         "mul(depth, abs(sum(l1(W))))", "mul(depth, sum(l1(W)))"),
    Rule("monotone-whole", "the outermost operation keeps the ranking or reverses it",
         "inverse(sum(l1(W)))", "-sum(l1(W))"),
    Rule("cancelling-factors", "a factor meets its inverse",
         "mul(sum(l1(W)), depth, inverse(sum(l1(W))))", "depth"),
    Rule("repeated-factor", "two factors are powers of one term: their exponents add",
         "mul(depth, inverse(last(params)), last(square(params)))", "mul(depth, last(params))"),
    Rule("cancelling-sum", "a summand meets its opposite", "sub(sum(l1(W)), sum(l1(W)))"),
    Rule("too-many-factors", f"more than {MAX_FACTORS} different terms and columns",
         "mul(a, b, c, d, e)"),
    Rule("exponent", "exponents that differ by other factors than 2, 4 and 8, or by more; those of"
         " columns also by 3/4 and 3/2",
         "mul(sum(l1(W)), sqrt(sqrt(sqrt(sqrt(last(l1(W)))))))"),
)  # fmt: skip

_ZERO = Interval(0.0, 0.0)
# A column's sign is in the data: each is given the benefit of the doubt here.
_POSITIVE = EVERY_NAME
RULES = {rule.name: rule for rule in _OF_TERMS}  # inside of a term
OUTER_RULES = {rule.name: rule for rule in _OF_FORMULAS}  # around terms
DEFAULT_RULES = frozenset(name for name, rule in RULES.items() if rule.on_by_default)
ALL_RULES = DEFAULT_RULES | frozenset(OUTER_RULES)
_REASONS = {rule.name: rule.reason for rule in (*_OF_TERMS, *_OF_FORMULAS)}


def check(
    formula: Formula, rules: Collection[str] = ALL_RULES, max_factors: int = MAX_FACTORS
) -> Rejected | None:
    """The reason why the formula need not be evaluated, or None.

    `rules` names those of both levels, inside of terms and around them.

    >>> from primitives.parser import parse
    >>> check(parse("sum(add(abs(square(W)), A))")).rule
    'no-effect'
    >>> check(parse("mul(sqrt(sum(W)), depth)")).rule
    'changes-sign'
    """
    active = _known(rules)
    for term in formula.terms:
        broken = _check_factor(term, active, formula.is_term)
        if broken is not None:
            return broken
    if formula.is_term:
        return None
    names = (name for name in _around(formula, max_factors) if name in active)
    return next(map(rejection, names), None)


@lru_cache(maxsize=65536)
def _check_factor(term: Term, rules: frozenset[str], is_alone: bool) -> Rejected | None:
    if "not-at-ends" in rules and term.positions.end is not None:
        has = [*term.statistics, *term.sizes]
        if not all((STATISTICS.get(name) or SIZES[name]).at_ends for name in has):
            return rejection("not-at-ends")
    broken = check_term(term, rules)
    is_constant = broken is not None and broken.rule == "constant"
    return rejection("constant-factor") if is_constant and not is_alone else broken


on_change(_check_factor.cache_clear)


def check_term(term: Term, rules: Collection[str] = DEFAULT_RULES) -> Rejected | None:
    """The reason why a term by itself need not be evaluated, or None."""
    active = _known(rules)
    expression = drop_dead(term.expression)
    if expression is None:
        return rejection("both-disconnected") if "both-disconnected" in active else None
    rejected = check_expression(expression, active)
    if rejected is not None:
        return rejected
    return next((rejection(name) for name in _at_the_top(expression) if name in active), None)


def check_expression(
    expression: Expression, rules: Collection[str] = DEFAULT_RULES
) -> Rejected | None:
    """The first rule that a node of the expression breaks, operands before operations."""
    for child in children(expression):
        below = check_expression(child, rules)
        if below is not None:
            return below
    for rewrite in rewrites(expression):
        # The replacement must not be longer, or it might lie outside a bounded space.
        if rewrite.rule in rules and not _is_longer(rewrite.result, expression):
            return rejection(rewrite.rule)
    if isinstance(expression, Combine):
        for name in _in_binary(expression):
            if name in rules:
                return rejection(name)
    return None


def rejection(name: str) -> Rejected:
    """The rejection by the rule of that name."""
    return Rejected(name, _REASONS[name])


def without(*names: str) -> frozenset[str]:
    """The default rules without these, for ablations."""
    return DEFAULT_RULES - _known(names, RULES)


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
        if facts(canonical_term(Term("sum", expression))[1].expression).interval == _ZERO:
            yield "cancels"
    elif any(facts(side).kind is Kind.SCALAR for side in sides) and any(map(has_zero_mean, sides)):
        yield "constant"  # mean(s·M) = s·mean(M) = 0


def _in_binary(expression: Combine) -> Iterator[str]:
    left, right = expression.left, expression.right
    primitive = get_binary(expression.operation)
    are_means = meeting(facts(left), facts(right), primitive) is Meeting.MEANS
    if are_means and not primitive.is_linear and (has_zero_mean(left) or has_zero_mean(right)):
        yield "constant"


def has_zero_mean(expression: Expression) -> bool:
    """Whether the mean over each tensor is zero for all tensors (negated or not)."""
    while isinstance(expression, Apply) and expression.operation == "neg":
        expression = expression.operand
    about = facts(expression)
    return dict(about.steady).get("mean") == 0.0 or about.interval == _ZERO


def _is_longer(result: Expression | None, than: Expression) -> bool:
    return result is not None and len(list(walk(result))) > len(list(walk(than)))


def _around(formula: Formula, max_factors: int) -> Iterator[str]:
    """The rules around terms that the formula breaks, the most telling first."""
    within = list(formulas_within(formula))
    for inner in within:
        yield from _of_operations(inner)
    if _is_monotone(formula):
        yield "monotone-whole"
    for inner in within:
        yield from _of_factors(inner)
        yield from _of_sums(inner)
    if len(formula.atoms) > max_factors:
        yield "too-many-factors"
    value = ranking(as_product(formula, _POSITIVE), _POSITIVE)
    if not value.factors:
        yield "constant-factor"
    if not all(is_exponent(factor.base, factor.exponent) for factor in value.factors):
        yield "exponent"


def is_exponent(base: Base, exponent: Fraction) -> bool:
    """Whether the language has that power of the base."""
    return abs(exponent) in (
        ALLOWED_COLUMN_EXPONENTS if isinstance(base, Column) else ALLOWED_EXPONENTS
    )


def _is_monotone(formula: Formula) -> bool:
    """Whether the outermost operation is one that keeps the ranking or reverses it."""
    (first, *others) = formula.powers
    is_outer = isinstance(first.base, Outer) and first.base.operation != "abs"
    is_one_factor = not others and len(chains(first.exponent)) == 1
    return is_one_factor and (first.exponent != 1 or is_outer)


@lru_cache(maxsize=8192)
def _of_operations(formula: Formula) -> tuple[str, ...]:
    """The rules that operations of the powers break; those inside of operands are left out."""
    rules: list[str] = []
    for power in formula.powers:
        written: list[str] = []
        if isinstance(power.base, Outer):
            inner = power.base.operand
            written = _outermost(inner)
            rules += _of_operation(power.base.operation, inner, written)
            written = [power.base.operation]
        for chain in chains(power.exponent):
            before, operand = written, Formula.of_base(power.base)
            for operation in chain:
                rules += _of_operation(operation, operand, before)
                before, operand = [operation], operand.apply(operation)
    return tuple(rules)


on_change(_of_operations.cache_clear)


def _of_operation(operation: str, operand: Formula, before: list[str]) -> Iterator[str]:
    """The rules that an operation on the operand breaks; `before`: the operand's outermost one."""
    facts_of = get_outer(operation)
    values = range_of(operand, _POSITIVE)
    is_cut = facts_of.blind is Blind.NEGATIVE and values not in NON_NEGATIVE
    if is_cut or (facts_of.jumps_at_zero and not keeps_sign(values)):
        yield "changes-sign"
    if any(name in facts_of.undoes for name in before):
        yield "undone-operation"
    if facts_of.blind is Blind.SIGN and "abs" in before:
        yield "idle-operation"
    # |x| of what is never positive stays: without it there would be no root of it.
    if facts_of.fixes is not None and range_of(operand) in facts_of.fixes:
        yield "idle-operation"


def _outermost(formula: Formula) -> list[str]:
    """The operation that the formula is the result of, if it is one."""
    (first, *others) = formula.powers
    factors = chains(first.exponent)
    if others or len(factors) > 1:
        return []
    if factors[0]:
        return [factors[0][-1]]
    return [first.base.operation] if isinstance(first.base, Outer) else []


def _of_factors(formula: Formula) -> Iterator[str]:
    """The rules that two factors break that are powers of one base."""
    if len(formula.powers) == 1 and len(chains(formula.powers[0].exponent)) == 1:
        return
    met: dict[Base, Fraction] = {}
    for power in formula.powers:
        if not power.exponent:
            yield "cancelling-factors"
        is_repeated = len(chains(power.exponent)) > 1  # x^(3/2) is written x sqrt(x)
        for factor in as_product(Formula(1, (power,)), _POSITIVE).factors:
            is_repeated |= factor.base in met
            exponent = met[factor.base] = met.get(factor.base, Fraction(0)) + factor.exponent
            if not exponent:
                yield "cancelling-factors"
            is_finer = isinstance(factor.base, Column) and exponent.numerator in (3, -3)
            if is_repeated and not is_finer:
                yield "repeated-factor"


def _of_sums(formula: Formula) -> Iterator[str]:
    """The rule that a sum breaks in which a summand meets its opposite."""
    for power in formula.powers:
        if isinstance(power.base, Sum):
            values = (as_product(part, _POSITIVE) for part in power.base.parts)
            seen = {(value.sign, value.factors) for value in values}
            if any((-sign, factors) in seen for sign, factors in seen):
                yield "cancelling-sum"


def _known(names: Iterable[str], rules: Collection[str] = tuple(_REASONS)) -> frozenset[str]:
    for name in names:
        if name not in rules:
            raise UnknownPrimitiveError(
                f"unknown pruning rule {name!r}; {did_you_mean(name, rules)}"
            )
    return frozenset(names)
