"""Sums and differences of columns: the beam search of products, on summands instead of logarithms.

The correlation of (a sum plus or minus a summand) with the ranked target is closed form as it is
for products, so the same search serves. Shapes: S summands, A rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from lpzero.arrays import FloatArray, IntArray
from lpzero.judgement.ranks import rank_targets
from lpzero.scores.columns import ColumnFacts, Columns, is_product
from lpzero.scores.products import of_columns, search
from lpzero.scores.score_trees import tree_values
from primitives.formula import Formula
from primitives.score import AnyFormula, Column, Join, ScoreTree, Transform, signed

SIGNS = (Fraction(1), Fraction(-1))
SignedPart = tuple[int, ScoreTree]
_LEAST = 2


@dataclass(frozen=True, slots=True)
class FoundSum:
    """A sum with its rho on the rows searched."""

    formula: AnyFormula
    rho: float


def search_sums(
    columns: Columns, facts: ColumnFacts, targets: FloatArray, rows: IntArray, most: int
) -> list[FoundSum]:
    """The best sums of 2 to `most` summands on these rows, best first; products are left out."""
    trees = facts.summands
    if len(trees) < _LEAST or most < _LEAST:
        return []

    def leaf(one: Formula | Column) -> FloatArray:
        assert isinstance(one, Column)
        return columns.values[one.name]

    values = np.stack([tree_values(tree, leaf) for tree in trees])
    varies = np.flatnonzero(np.ptp(values, axis=1) > 0)
    beam = of_columns(most, SIGNS)
    found = []
    for one in search(values[varies][:, rows], rank_targets(targets[rows]), beam):
        parts = [(int(sign), trees[varies[place]]) for place, sign in one.factors.powers]
        made = sum_of(parts)
        if made is not None:
            found.append(FoundSum(made, one.value))
    return found


def sum_of(parts: Sequence[SignedPart]) -> AnyFormula | None:
    """The sum of signed parts, up to its sign; None if it is none, repeats a part or is a product.

    >>> from primitives.parser import parse
    >>> str(sum_of([(-1, parse("log(a)").tree), (1, parse("signed_log(b)").tree)]))
    'sub(signed_log(b), log(a))'
    """
    trees = [tree for _, tree in parts]
    if len(trees) < _LEAST or len(set(trees)) < len(trees) or all(map(is_product, trees)):
        return None
    plus = sorted((tree for sign, tree in parts if sign > 0), key=str)
    minus = sorted((tree for sign, tree in parts if sign < 0), key=str)
    if not plus:
        plus, minus = minus, plus
    return signed(Join("sub", (_added(plus), _added(minus))) if minus else _added(plus))


def parts_of(formula: AnyFormula) -> list[SignedPart] | None:
    """The signed parts of a sum, the formula's own sign left out; None if it is not a sum."""
    if isinstance(formula, Formula) or not _is_sum(formula.tree):
        return None
    return _parts(formula.tree, 1)


def is_summand(tree: ScoreTree) -> bool:
    """Whether the tree is one column under operations on one number."""
    while isinstance(tree, Transform):
        tree = tree.operand
    return isinstance(tree, Column)


def _is_sum(tree: ScoreTree) -> bool:
    return isinstance(tree, Join) and tree.operation != "mul"


def _parts(tree: ScoreTree, sign: int) -> list[SignedPart]:
    if not isinstance(tree, Join) or tree.operation == "mul":
        return [(sign, tree)]
    signs = (sign, -sign) if tree.operation == "sub" else (sign,) * len(tree.operands)
    pairs = zip(signs, tree.operands, strict=True)
    return [part for of, operand in pairs for part in _parts(operand, of)]


def _added(parts: Sequence[ScoreTree]) -> ScoreTree:
    return parts[0] if len(parts) == 1 else Join("add", tuple(parts))
