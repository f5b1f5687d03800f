"""DEAP's typed primitive set for scores: levels that types keep apart, and exact conversion.

    MatrixNode, ScalarNode -> TermNode -> ScoreNode

A reduction takes a block's matrix or scalar to a `TermNode`, one number per network; outer
operations stay there, and the root carries the sign. `primitives.deap_set.grow` grows such trees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

from deap import gp

from primitives.block_sizes import SIZES
from primitives.deap_set import (
    LETTER,
    ScalarNode,
    ScoreNode,
    add,
    add_expressions,
    expression_nodes,
    look_up,
    meanings_of_names,
    read_expression,
)
from primitives.errors import FormulaError
from primitives.formula import Formula
from primitives.reductions import POSITION_REDUCTIONS, Reduction
from primitives.score import (
    JOINS,
    TRANSFORMS,
    AnyFormula,
    Column,
    Join,
    Score,
    ScoreTree,
    Transform,
    signed,
)

MAX_OPERANDS = 4
_COLUMN = "column:"
_ROOTS = {"score": 1, "minus_score": -1}


class TermNode:
    """DEAP type of one number per network."""


def build_score_set(
    columns: Sequence[str] = (),
    reductions: Sequence[Reduction] = tuple(POSITION_REDUCTIONS),
    sizes: Sequence[str] = tuple(SIZES),
    sums: bool = False,
) -> Any:
    """A PrimitiveSetTyped for scores with these columns, reductions and sizes.

    A product has at most MAX_OPERANDS factors at one node; `sums` adds add and sub of terms.
    """
    made = gp.PrimitiveSetTyped("score", [], ScoreNode)
    add_expressions(made)
    for name in sizes:
        made.addTerminal(name, ScalarNode, name=name)
    for name in columns:
        made.addTerminal(Column(name).name, TermNode, name=_COLUMN + name)
    for reduction, kind in product(reductions, LETTER):
        add(made, _term_name(reduction, kind), [kind], TermNode)
    for operation in TRANSFORMS:
        add(made, f"outer_{operation}", [TermNode], TermNode)
    for name, (operation, arity) in _joins().items():
        if sums or operation == "mul":
            add(made, name, [TermNode] * arity, TermNode)
    for name in _ROOTS:
        add(made, name, [TermNode], ScoreNode)
    return made


def to_score_tree(formula: AnyFormula, primitive_set: Any) -> Any:
    """The formula as a PrimitiveTree of the set."""
    root = next(name for name, sign in _ROOTS.items() if sign == formula.sign)
    inside = formula.tree if isinstance(formula, Score) else formula.terms[0]
    return gp.PrimitiveTree([look_up(primitive_set, root), *_nodes(inside, primitive_set)])


def from_score_tree(tree: Any) -> AnyFormula:
    """The formula that the tree spells."""
    root, *rest = [node.name for node in tree]
    if root not in _ROOTS:
        raise FormulaError(f"the tree starts with {root!r}; expected {' or '.join(_ROOTS)}")
    names = iter(rest)
    found = _read(names)
    if next(names, None) is not None:
        raise FormulaError("the tree goes on after its formula ended")
    return signed(found, _ROOTS[root])


def _nodes(tree: ScoreTree, primitive_set: Any) -> list[Any]:
    if isinstance(tree, Formula):
        below, kind = expression_nodes(tree.expression, primitive_set)
        return [look_up(primitive_set, _term_name(tree.reduction, kind)), *below]
    if isinstance(tree, Column):
        return [look_up(primitive_set, _COLUMN + tree.name)]
    if isinstance(tree, Transform):
        outer = look_up(primitive_set, f"outer_{tree.operation}")
        return [outer, *_nodes(tree.operand, primitive_set)]
    made = [look_up(primitive_set, _join_name(tree.operation, len(tree.operands)))]
    for operand in tree.operands:
        made.extend(_nodes(operand, primitive_set))
    return made


def _read(names: Iterator[str]) -> ScoreTree:
    name = next(names, None)
    if name is None:
        raise FormulaError("the tree ends before its formula does")
    if name.startswith(_COLUMN):
        return Column(name.removeprefix(_COLUMN))
    if name in _terms():
        return Formula(read_expression(names, meanings_of_names()), _terms()[name])
    operation = name.removeprefix("outer_")
    if operation in TRANSFORMS and operation != name:
        return Transform(operation, _read(names))
    if name in _joins():
        operation, arity = _joins()[name]
        return Join(operation, tuple(_read(names) for _ in range(arity)))
    raise FormulaError(f"the tree holds {name!r}, which is not an operation on terms")


@lru_cache(maxsize=1)
def _terms() -> dict[str, Reduction]:
    return {_term_name(name, kind): name for name, kind in product(POSITION_REDUCTIONS, LETTER)}


@lru_cache(maxsize=1)
def _joins() -> dict[str, tuple[str, int]]:
    arities = {operation: range(2, MAX_OPERANDS + 1) for operation in JOINS} | {"sub": range(2, 3)}
    return {_join_name(name, n): (name, n) for name, counts in arities.items() for n in counts}


def _term_name(reduction: str, kind: type) -> str:
    return f"term_{reduction}{'_s' if kind is ScalarNode else ''}"


def _join_name(operation: str, arity: int) -> str:
    return f"outer_{operation}_{arity}"
