"""An outer operation and a reduction are one declaration each: all of the language knows them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from lpzero.scores.terms import reduce_blocks
from lpzero.scores.values import Values
from primitives import FormulaError, Rejected, parse, score
from primitives.canonical import canonical
from primitives.errors import DeclarationError
from primitives.facts import range_of
from primitives.formula import Term
from primitives.latex import right_side
from primitives.mathml import to_mathml
from primitives.outer import OUTER, forget_outer, outer
from primitives.properties import Interval
from primitives.pruning import check
from primitives.reductions import POSITION_REDUCTIONS, forget_reduction, reduction
from primitives.symbolic import score_sympy, to_sympy
from tests.lpzero.export.network_tensors import exported, module_of
from tests.primitives.conftest import make_network


@pytest.fixture
def raised() -> Iterator[None]:
    def image(inside: Interval) -> Interval:
        return Interval(math.exp(inside.low), math.inf)

    def body(x: Any, xp: Any) -> Any:
        """|x| + 1"""
        return xp.sqrt(x * x) + 1.0

    body.__name__ = "raised"
    outer(sympy=lambda x, s: s.sqrt(x * x) + 1, image=image, latex=r"\operatorname{e}^{ {x} }",
          increases=True)(body)  # fmt: skip
    yield
    forget_outer("raised")


@pytest.fixture
def early() -> Iterator[None]:
    """A reduction that reads the first two blocks."""

    @reduction(sign=r"\operatorname{early} ")
    def early(n: int) -> tuple[slice, int]:
        """the mean of the first two blocks"""
        return slice(2), min(2, n)

    yield
    forget_reduction("early")


@pytest.mark.usefixtures("raised")
def test_a_new_outer_operation_is_known_everywhere() -> None:
    formula = parse("mul(a, inverse(raised(sum(W))))")
    assert str(formula) == "mul(a, inverse(raised(sum(W))))"
    assert str(canonical(parse("raised(sum(W))"))) == "sum(W)"
    assert right_side(parse("raised(a)")) == r"\operatorname{e}^{ \mathrm{a} }"
    assert "<mi>e</mi>" in to_mathml(parse("raised(a)"))
    assert range_of(parse("raised(sum(fro(W)))")).low == 1.0
    broken = check(parse("raised(sum(W))"))
    assert broken is not None
    assert broken.rule == "monotone-whole"
    network = make_network(0)
    value, inside = score(formula, network, columns={"a": 3.0}), score(parse("sum(W)"), network)
    assert not isinstance(inside, Rejected)
    assert value == pytest.approx(3 / (abs(inside) + 1))
    assert score_sympy(to_sympy(formula), network, {"a": 3.0}) == pytest.approx(value)
    values = Values(columns={"a": np.array([3.0]), "b": np.array([inside])})
    assert values.score(parse("mul(a, inverse(raised(b)))")) == pytest.approx([value])
    assert module_of(exported(formula)).main() == 0


@pytest.mark.usefixtures("early")
def test_a_new_reduction_is_known_everywhere() -> None:
    formula = parse("mul(depth, early(fro(W)))")
    assert str(formula) == "mul(depth, early(fro(W)))"
    assert str(canonical(parse("early(neg(fro(W)))"))) == "-early(fro(W))"
    assert right_side(parse("early(width)")) == r"\operatorname{early} d_\ell"
    assert range_of(parse("early(params)")).low == 1.0
    assert check(formula) is None
    network = next(n for n in map(make_network, range(20)) if len(n.blocks) > 2)
    values = [score(parse("sum(fro(W))"), [block]) for block in network.blocks]
    expected = 2 * (values[0] + values[1]) / 2  # type: ignore[operator]
    assert score(formula, network, columns={"depth": 2.0}) == pytest.approx(expected)
    assert score_sympy(to_sympy(formula), network, {"depth": 2.0}) == pytest.approx(expected)
    blocks = np.array([[1.0, 2.0, 4.0], [8.0, 0.0, 0.0]])
    assert reduce_blocks(blocks, np.array([3, 1]), "early").tolist() == [1.5, 8.0]
    assert_exported_as_declared("early")


def assert_exported_as_declared(name: str) -> None:
    """The exported module reduces blocks as the declaration says, whatever their number."""
    declared, module = POSITION_REDUCTIONS[name], module_of(exported(f"{name}(params)"))
    values = np.random.default_rng(1).uniform(1, 50, size=9).tolist()
    for n in range(1, len(values) + 1):
        read = declared.select(values[:n]) if declared.end is None else values[-1:]
        ends = {} if declared.end is None else {"ends": {declared.end: {"params": values[-1]}}}
        found = module.score([{"params": value} for value in values[:n]], **ends)
        assert found == pytest.approx(declared.combine(read, n), rel=1e-12)


@pytest.mark.parametrize("name", list(POSITION_REDUCTIONS))
def test_exported_reductions_are_those_declared(name: str) -> None:
    assert_exported_as_declared(name)


@pytest.mark.parametrize("name", list(POSITION_REDUCTIONS))
def test_reductions_of_arrays_equal_those_of_lists(name: str) -> None:
    facts = POSITION_REDUCTIONS[name]
    if facts.end is not None:
        assert facts.is_single
        return
    rng = np.random.default_rng(0)
    n_blocks = np.array([1, 2, 3, 5])
    blocks = rng.normal(size=(2, 4, 5)) * (np.arange(5) < n_blocks[:, np.newaxis])
    found = reduce_blocks(blocks, n_blocks, name)
    for row, n in enumerate(n_blocks):
        for place in range(2):
            read = facts.select(blocks[place, row, :n].tolist())
            assert found[place, row] == pytest.approx(facts.combine(read, int(n)), rel=1e-12)


def test_a_forgotten_or_wrong_declaration_is_refused() -> None:
    assert "raised" not in OUTER
    with pytest.raises(FormulaError):
        parse("raised(a)")
    with pytest.raises(FormulaError):
        Term("early", parse("sum(W)").term.expression)
    with pytest.raises(DeclarationError, match="taken"):
        outer(sympy=lambda x, s: x, image=lambda x: x, latex="{x}")(OUTER["log"].body)
    with pytest.raises(DeclarationError, match="must read"):
        reduction()(lambda n: (slice(0), 1))
