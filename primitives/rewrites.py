"""Equalities between unary chains, derived from what the primitives declare.

`rewrites` is the one place that knows when an operation can be replaced. Pruning reads the name of
the rule, canonical form the replacement (only where it is exact, guards included).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from primitives.expressions import Apply, Expression, Leaf
from primitives.facts import Facts, facts, image
from primitives.properties import NON_NEGATIVE, REALS, Blind, Gives, Kind, Symmetry, on_change
from primitives.registry import UNARIES, Unary, get_unary, reads_whole_tensor


@dataclass(frozen=True, slots=True)
class Rewrite:
    """rule: its name; result: an expression of the same value, None if the value is constant."""

    rule: str
    result: Expression | None
    is_exact: bool = True


@lru_cache(maxsize=65536)
def rewrites(expression: Expression) -> tuple[Rewrite, ...]:
    """Every rewrite of the topmost operation, most specific first."""
    if not isinstance(expression, Apply):
        return ()
    primitive = get_unary(expression.operation)
    if primitive.traits.fixes == REALS:
        return ()  # identity is harmless: it is dropped, not pruned
    operand = expression.operand
    made = (find(primitive, operand, facts(operand)) for find in _FINDERS)
    return tuple(rewrite for rewrite in made if rewrite is not None)


on_change(rewrites.cache_clear)


def _degenerate_scalar(primitive: Unary, operand: Expression, about: Facts) -> Rewrite | None:
    if about.kind is not Kind.SCALAR or not reads_whole_tensor(primitive):
        return None
    if primitive.of_scalar == "identity":
        return Rewrite("degenerate-scalar", operand)
    if primitive.of_scalar == "abs":
        return Rewrite("degenerate-scalar", Apply("abs", operand))
    is_constant = isinstance(primitive.of_scalar, float)
    return Rewrite("degenerate-scalar", None) if is_constant else None


def _conflict(primitive: Unary, operand: Expression, about: Facts) -> Rewrite | None:
    """The operation ignores negatives, and the operand has only negatives."""
    is_cut = primitive.traits.blind is Blind.NEGATIVE and about.interval.high <= 0
    return Rewrite("conflict", None) if is_cut else None


def _constant(primitive: Unary, operand: Expression, about: Facts) -> Rewrite | None:
    is_fixed = primitive.name in dict(about.steady)
    is_flat = primitive.traits.gives is Gives.SAME and image(primitive, about).is_point
    return Rewrite("constant", None) if is_fixed or is_flat else None


def _inverse_of_zeros(primitive: Unary, operand: Expression, about: Facts) -> Rewrite | None:
    """1/0 is the guard's epsilon: the score would count zeros in units of 1e9."""
    is_guarded = primitive.traits.jumps_at_zero and primitive.traits.blind is None
    return Rewrite("inverse-of-zeros", None, False) if is_guarded and about.has_zeros else None


def _inverse_pair(primitive: Unary, operand: Expression, about: Facts) -> Rewrite | None:
    """f undoes g: f(g(x)) is x, or |x| or max(x, 0) if g ignores the rest of x."""
    if not isinstance(operand, Apply):
        return None
    operand = _spelled_out(operand)
    inner, source = get_unary(operand.operation), operand.operand
    for pair in primitive.traits.undoes:
        if pair.name != inner.name:
            continue
        seen = facts(source).interval
        if seen in pair.domain:
            return Rewrite("inverse-pair", source, seen in pair.exact)
        if pair.of_positive and isinstance(source, Leaf) and seen in NON_NEGATIVE:
            return Rewrite("inverse-pair", source, False)  # masked probabilities are exactly zero
        folded = {Blind.SIGN: "abs", Blind.NEGATIVE: "relu"}
        if inner.traits.blind is None:
            continue
        rest = Apply(folded[inner.traits.blind], source)
        seen = facts(rest).interval
        if seen in pair.domain:
            return Rewrite("inverse-pair", rest, seen in pair.exact)
    return None


def _no_effect(primitive: Unary, operand: Expression, about: Facts) -> Rewrite | None:
    fixes = primitive.traits.fixes
    is_fixed = fixes is not None and about.interval in fixes
    return Rewrite("no-effect", operand) if is_fixed else None


def _absorbed(primitive: Unary, operand: Expression, about: Facts) -> Rewrite | None:
    """The operation before changes only what this one ignores."""
    if not isinstance(operand, Apply):
        return None
    traits, inner = primitive.traits, get_unary(operand.operation)
    is_absorbed = (
        (traits.symmetry is Symmetry.EVEN and inner.name == "neg")
        or (traits.blind is Blind.SIGN and inner.name == "abs")
        or (traits.blind is Blind.NEGATIVE and inner.name == "relu")
        or inner.traits.makes in traits.ignores
    )
    return Rewrite("absorbed", Apply(primitive.name, operand.operand)) if is_absorbed else None


def _renamed(primitive: Unary, operand: Expression, about: Facts) -> Rewrite | None:
    """A chain that is another primitive by definition, or a primitive with two names."""
    own = primitive.traits.defined_as
    if own is not None and len(own.chain) == 1:
        return Rewrite("equivalent", Apply(own.chain[0], operand))
    for named in UNARIES.values():
        definition = named.traits.defined_as
        if definition is None or len(definition.chain) == 1:
            continue
        source = _below(Apply(primitive.name, operand), definition.chain)
        if source is not None and facts(source).interval in definition.domain:
            is_exact = facts(source).interval.width <= definition.exact_width
            return Rewrite("equivalent", Apply(named.name, source), is_exact)
    return None


def _mirrored(primitive: Unary, operand: Expression, about: Facts) -> Rewrite | None:
    """f(x) = -x on this operand, or f is odd and the sign comes out in front."""
    mirrors = primitive.traits.mirrors
    if mirrors is not None and about.interval in mirrors:
        return Rewrite("equivalent", Apply("neg", operand))
    if not isinstance(operand, Apply) or operand.operation != "neg":
        return None
    if primitive.traits.symmetry is Symmetry.ODD and primitive.traits.jumps_at_zero:
        return Rewrite("equivalent", Apply("neg", Apply(primitive.name, operand.operand)), False)
    return None


def _swapped(primitive: Unary, operand: Expression, about: Facts) -> Rewrite | None:
    """|f(x)| = f(|x|) for an odd f that keeps the sign: abs inside is canonical."""
    if primitive.traits.mirrors is None or not isinstance(operand, Apply):
        return None
    inner = get_unary(operand.operation)
    keeps_sign = image(inner, Facts(Kind.MATRIX, NON_NEGATIVE, None)) in NON_NEGATIVE
    is_odd = inner.traits.symmetry is Symmetry.ODD and inner.traits.gives is Gives.SAME
    if not (is_odd and keeps_sign):
        return None
    return Rewrite("equivalent", Apply(inner.name, Apply(primitive.name, operand.operand)))


def _shortened(primitive: Unary, operand: Expression, about: Facts) -> Rewrite | None:
    """A named chain g, h in which h, or the operand's last operation, is redundant here."""
    own = primitive.traits.defined_as
    if own is None or len(own.chain) != 2 or about.interval not in own.domain:
        return None
    first, last = get_unary(own.chain[0]), get_unary(own.chain[1])
    is_exact = about.interval.width <= own.exact_width
    inside = Apply(first.name, operand)
    rewrite = _no_effect(last, inside, facts(inside)) or _mirrored(last, inside, facts(inside))
    if rewrite is not None:
        return Rewrite("equivalent", rewrite.result, is_exact)
    absorbed = _absorbed(first, operand, about)
    if absorbed is not None and absorbed.result is not None:
        return Rewrite("equivalent", Apply(last.name, absorbed.result), is_exact)
    return None


def _below(expression: Expression, chain: tuple[str, ...]) -> Expression | None:
    """The operand of the chain, if the expression ends in it."""
    for operation in reversed(chain):
        if not isinstance(expression, Apply) or expression.operation != operation:
            return None
        expression = expression.operand
    return expression


def _spelled_out(expression: Apply) -> Apply:
    """A named chain written in full if it is exact everywhere: fro as sqrt(l1(square(x)))."""
    definition = get_unary(expression.operation).traits.defined_as
    if definition is None or definition.domain != REALS or definition.exact_width < math.inf:
        return expression
    source = expression.operand
    for operation in definition.chain[:-1]:
        source = Apply(operation, source)
    return Apply(definition.chain[-1], source)


def _rescaled_mean(primitive: Unary, operand: Expression, about: Facts) -> Rewrite | None:
    """A sum of non-negatives is the mean times the element count: not exact between shapes."""
    is_sum = primitive.traits.grows == 1.0 and about.interval in NON_NEGATIVE
    return Rewrite("rescaled-mean", Apply("mean", operand), False) if is_sum else None


_FINDERS: tuple[Callable[[Unary, Expression, Facts], Rewrite | None], ...] = (
    _degenerate_scalar,
    _conflict,
    _constant,
    _inverse_of_zeros,
    _inverse_pair,
    _no_effect,
    _absorbed,
    _renamed,
    _mirrored,
    _swapped,
    _shortened,
    _rescaled_mean,
)
