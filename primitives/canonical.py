"""A canonical form of formulas with equal scores, so that none is evaluated twice.

The sign is moved outwards as far as possible, identities and dead branches are removed, commuting
operands are sorted, and chains are rewritten by every equality that is exact with the guards. Two
formulas with the same key have the same score; the converse need not hold.
"""

from __future__ import annotations

from primitives.errors import FormulaError
from primitives.expressions import Apply, Combine, Expression, Leaf, depth, drop_dead
from primitives.facts import are_aligned, facts
from primitives.formula import MAX_DEPTH, Formula
from primitives.properties import Interval, Kind, Symmetry
from primitives.registry import get_binary, get_unary
from primitives.rewrites import rewrites

Signed = tuple[int, Expression]
_ZERO, _ONE = Interval(0.0, 0.0), Interval(1.0, 1.0)


def canonical(formula: Formula) -> Formula:
    """The formula in canonical form: the same score, sign included."""
    expression = drop_dead(formula.expression)
    if expression is None:
        raise FormulaError(f"every branch of {formula} is disconnected; connect one")
    sign, core = _top(expression)
    if depth(core) > MAX_DEPTH:  # a rewrite can add a level; then the formula is left unchanged
        sign, core = 1, expression
    return Formula(core, formula.reduction, formula.sign * sign)


def key(formula: Formula) -> str:
    """A text that is equal for two formulas only if their scores are."""
    return str(canonical(formula))


def key_up_to_sign(formula: Formula) -> str:
    """A text that is equal for two formulas only if their scores are, up to the sign."""
    reduced = canonical(formula)
    return str(reduced if reduced.sign > 0 else -reduced)


def canonical_part(expression: Expression) -> Signed:
    """(sign, core) of an expression that stands inside a formula, without dead branches."""
    return _anywhere(expression)


def _top(expression: Expression) -> Signed:
    """Canonical form where only the mean is taken next: sums split, and `mean` is redundant."""
    if isinstance(expression, Apply):
        if expression.operation == "neg":
            sign, core = _top(expression.operand)
            return -sign, core
        sign, core = _anywhere(expression)
        again = _strip_mean(core)
        if again is core and not isinstance(core, Combine):
            return sign, core
        outer, core = _top(again)
        return sign * outer, core
    if isinstance(expression, Leaf):
        return 1, expression
    if get_binary(expression.operation).is_linear:
        return _sum(expression, _top(expression.left), _top(expression.right), True)
    left, right = _anywhere(expression.left), _anywhere(expression.right)
    return _product(expression, left, right, True)


def _anywhere(expression: Expression) -> Signed:
    """Canonical form inside another operation."""
    if isinstance(expression, Leaf):
        return 1, expression
    if isinstance(expression, Apply):
        return _apply(expression.operation, *_anywhere(expression.operand))
    left, right = _anywhere(expression.left), _anywhere(expression.right)
    if get_binary(expression.operation).is_linear:
        return _sum(expression, left, right, False)
    return _product(expression, left, right, False)


def _apply(operation: str, sign: int, core: Expression) -> Signed:
    primitive = get_unary(operation)
    if operation == "neg":
        return -sign, core
    outer = 1
    if sign < 0:
        symmetry = primitive.traits.symmetry
        # 1/x is odd except at zero, where the guard takes the positive side.
        may_be_zero = _ZERO in facts(core).interval
        if symmetry is Symmetry.ODD and not (primitive.traits.jumps_at_zero and may_be_zero):
            outer = -1
        elif symmetry is not Symmetry.EVEN:
            core = Apply("neg", core)
    expression = Apply(operation, core)
    for found in rewrites(expression):
        if found.is_exact and found.result is not None:
            inner, core = _anywhere(found.result)
            return outer * inner, core
    return outer, expression


def _sum(node: Combine, left: Signed, right: Signed, at_top: bool) -> Signed:
    """add and sub as one: a sum or difference in sorted order, with the sign outside."""
    first_sign, first = left
    second_sign, second = right[0] * (-1 if node.operation == "sub" else 1), right[1]
    if node.operation not in ("add", "sub"):
        return 1, Combine(node.operation, _signed(left), _signed(right))
    if at_top:
        if _adds_nothing(second):
            return first_sign, first
        if _adds_nothing(first):
            return second_sign, second
    if str(second) < str(first):
        first_sign, first, second_sign, second = second_sign, second, first_sign, first
    same = first_sign == second_sign
    return first_sign, Combine("add" if same else "sub", first, second)


def _product(node: Combine, left: Signed, right: Signed, at_top: bool) -> Signed:
    """mul and matmul; they are equal unless both operands are aligned matrices."""
    if node.operation not in ("mul", "matmul"):
        return 1, Combine(node.operation, _signed(left), _signed(right))
    sign, a, b = left[0] * right[0], left[1], right[1]
    known = facts(a), facts(b)
    if not are_aligned(*known):
        first, second = sorted((_strip_mean(a), _strip_mean(b)), key=str)
        return sign, Combine("mul", first, second)
    if Kind.SCALAR not in (known[0].kind, known[1].kind):
        if node.operation == "mul" and str(b) < str(a):
            a, b = b, a
        return sign, Combine(node.operation, a, b)
    if at_top:
        outer, core = _scalar_product(a, b)
        return sign * outer, core
    first, second = sorted((a, b), key=str)
    return sign, Combine("mul", first, second)


def _scalar_product(a: Expression, b: Expression) -> Signed:
    """A product with a scalar under the final mean: mean(s·M) = s·mean(M)."""
    if facts(a).interval == _ONE:
        return _top(b)
    if facts(b).interval == _ONE:
        return _top(a)
    first, second = sorted((_strip_mean(a), _strip_mean(b)), key=str)
    if Kind.SCALAR not in (facts(first).kind, facts(second).kind):
        second = Apply("mean", second)
    return 1, Combine("mul", first, second)


def _signed(value: Signed) -> Expression:
    return value[1] if value[0] > 0 else Apply("neg", value[1])


def _strip_mean(expression: Expression) -> Expression:
    """The operand of a mean that is redundant because another mean follows."""
    while isinstance(expression, Apply) and expression.operation == "mean":
        expression = expression.operand
    return expression


def _adds_nothing(expression: Expression) -> bool:
    """Whether the expression's mean is zero for all tensors."""
    known = facts(expression)
    return known.interval == _ZERO or dict(known.steady).get("mean") == 0.0
