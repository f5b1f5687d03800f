"""DEAP's typed primitive set, built from the registry, and exact conversion both ways.

DEAP tells primitives apart by name and gives each one fixed types, so an operation appears once
for matrices under its own name and once for scalars with a suffix. A tree is a term: its root is
the reduction. It is a genotype only: nothing in it can be called; convert it and score the term.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import product
from typing import Any

from deap import gp

from primitives.errors import FormulaError
from primitives.expressions import Apply, Combine, Expression, Leaf
from primitives.formula import Term
from primitives.properties import Gives, on_change
from primitives.reductions import PAPER_REDUCTIONS, POSITION_REDUCTIONS
from primitives.registry import BINARIES, UNARIES
from primitives.statistics import SIZES, STATISTICS


class _NodeType(type):
    """A type whose hash is its place, in every process the same.

    DEAP's one-point crossover draws from a set of types, whose order follows their hashes.
    """

    place: int

    def __hash__(cls) -> int:
        return cls.place


class MatrixNode(metaclass=_NodeType):
    """DEAP type of an expression that gives a matrix per tensor."""

    place = 1


class ScalarNode(metaclass=_NodeType):
    """DEAP type of an expression that gives a scalar per tensor."""

    place = 2


class TermNode(metaclass=_NodeType):
    """DEAP type of a whole term."""

    place = 3


LETTER: dict[type, str] = {MatrixNode: "m", ScalarNode: "s"}


def build_set(
    statistics: Iterable[str] = tuple(STATISTICS),
    reductions: Iterable[str] = PAPER_REDUCTIONS,
    sizes: Iterable[str] = (),
) -> Any:
    """A PrimitiveSetTyped of every term with these statistics, sizes and reductions."""
    made = gp.PrimitiveSetTyped("term", [], TermNode)
    for name in statistics:
        made.addTerminal(name, MatrixNode, name=name)
    for name in sizes:
        made.addTerminal(name, ScalarNode, name=name)
    _add_operations(made)
    for reduction, kind in product(reductions, LETTER):
        add(made, _root_name(reduction, kind), [kind], TermNode)
    return made


def build_chain_set() -> Any:
    """A PrimitiveSetTyped of the unaries that keep their operand's type, for DEAP's insertion.

    Insertion of other operations needs a terminal of every type, and scalars may have none.
    """
    made = gp.PrimitiveSetTyped("chain", [], TermNode)
    for name, primitive in UNARIES.items():
        if primitive.traits.gives is not Gives.SCALAR:
            add(made, name, [MatrixNode], MatrixNode)
        add(made, f"{name}_s", [ScalarNode], ScalarNode)
    return made


def _add_operations(made: Any) -> None:
    """Add every operation below the reductions."""
    for name, primitive in UNARIES.items():
        gives = ScalarNode if primitive.traits.gives is Gives.SCALAR else MatrixNode
        add(made, name, [MatrixNode], gives)
        add(made, f"{name}_s", [ScalarNode], ScalarNode)
    for name, kinds in product(BINARIES, product(LETTER, repeat=2)):
        gives = ScalarNode if kinds == (ScalarNode, ScalarNode) else MatrixNode
        add(made, _binary_name(name, kinds), list(kinds), gives)


def to_tree(term: Term, primitive_set: Any) -> Any:
    """The term as a PrimitiveTree of the set."""
    nodes, kind = expression_nodes(term.expression, primitive_set)
    root = look_up(primitive_set, _root_name(term.reduction, kind))
    return gp.PrimitiveTree([root, *nodes])


def from_tree(tree: Any) -> Term:
    """The term that the tree spells."""
    return _from_names(tuple(node.name for node in tree))


@lru_cache(maxsize=65536)
def _from_names(spelled: tuple[str, ...]) -> Term:
    """The term of a tree whose nodes have these names, the root first."""
    root, *rest = spelled
    meanings = meanings_of_names()
    if root not in meanings["root"]:
        raise FormulaError(f"the tree starts with {root!r}; expected a reduction over blocks")
    names = iter(rest)
    expression = read_expression(names, meanings)
    if next(names, None) is not None:
        raise FormulaError("the tree goes on after its formula ended")
    return Term(meanings["root"][root], expression)


def grow(
    primitive_set: Any,
    min_: int,
    max_: int,
    type_: Any = None,
    rng: random.Random | None = None,
) -> list[Any]:
    """A random expression between the two depths, for DEAP's initialisation and mutation.

    DEAP's own generators fail on scalars and terms, which have no terminal: at the depth limit
    this one takes the shortest way down to a statistic instead.
    """
    # DEAP's operators draw from the global generator, which a campaign seeds and saves.
    draw: Any = random if rng is None else rng
    limit = draw.randint(min_, max_)
    made: list[Any] = []
    todo = [(0, type_ or primitive_set.ret)]
    while todo:
        depth, kind = todo.pop()
        terminals = primitive_set.terminals[kind]
        choices = primitive_set.primitives[kind]
        if terminals and (depth >= limit or (depth >= min_ and draw.random() < 0.2)):
            made.append(draw.choice(terminals))
            continue
        if depth >= limit:
            choices = [p for p in choices if set(p.args) == {MatrixNode}] or choices
        chosen = draw.choice(choices)
        made.append(chosen)
        todo.extend((depth + 1, argument) for argument in reversed(chosen.args))
    return made


def expression_nodes(expression: Expression, primitive_set: Any) -> tuple[list[Any], type]:
    if isinstance(expression, Leaf):
        node = look_up(primitive_set, expression.name)
        return [node], node.ret
    if isinstance(expression, Apply):
        below, kind = expression_nodes(expression.operand, primitive_set)
        suffix = "_s" if kind is ScalarNode else ""
        node = look_up(primitive_set, expression.operation + suffix)
        return [node, *below], node.ret
    left, first = expression_nodes(expression.left, primitive_set)
    right, second = expression_nodes(expression.right, primitive_set)
    node = look_up(primitive_set, _binary_name(expression.operation, (first, second)))
    return [node, *left, *right], node.ret


def read_expression(names: Any, meanings: dict[str, dict[str, Any]]) -> Expression:
    name = next(names, None)
    if name is None:
        raise FormulaError("the tree ends before its formula does")
    if name in STATISTICS or name in SIZES:
        return Leaf(name)
    if name in meanings["unary"]:
        return Apply(meanings["unary"][name], read_expression(names, meanings))
    if name in meanings["binary"]:
        left = read_expression(names, meanings)
        return Combine(meanings["binary"][name], left, read_expression(names, meanings))
    raise FormulaError(f"the tree holds {name!r}, which is no operation of this language")


@lru_cache(maxsize=1)
def meanings_of_names() -> dict[str, dict[str, Any]]:
    """Names in the set -> what they mean in a formula."""
    kinds = list(product(LETTER, repeat=2))
    return {
        "unary": {name + suffix: name for name in UNARIES for suffix in ("", "_s")},
        "binary": {_binary_name(name, pair): name for name in BINARIES for pair in kinds},
        "root": {
            _root_name(reduction, kind): reduction
            for reduction, kind in product(POSITION_REDUCTIONS, LETTER)
        },
    }


on_change(meanings_of_names.cache_clear)
on_change(_from_names.cache_clear)


def _binary_name(name: str, kinds: tuple[type, ...]) -> str:
    if kinds == (MatrixNode, MatrixNode):
        return name
    return f"{name}_{''.join(LETTER[kind] for kind in kinds)}"


def _root_name(reduction: str, kind: type) -> str:
    return f"blocks_{reduction}{'_s' if kind is ScalarNode else ''}"


def add(made: Any, name: str, takes: list[type], gives: type) -> None:
    made.addPrimitive(_uncallable(name), takes, gives, name=name)


def _uncallable(name: str) -> Callable[..., Any]:
    def node(*operands: Any) -> Any:
        raise FormulaError(f"{name} is a node of a tree; convert the tree with from_tree")

    return node


def look_up(primitive_set: Any, name: str) -> Any:
    symbol = primitive_set.mapping.get(name)
    if symbol is None:
        raise FormulaError(f"the primitive set has no {name!r}; build a set that has it")
    return symbol
