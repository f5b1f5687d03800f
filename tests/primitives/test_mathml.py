from __future__ import annotations

import random
import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import pytest

from primitives import UNARIES, parse
from primitives.expressions import drop_dead
from primitives.mathml import to_mathml
from primitives.registry import forget, unary
from tests.random_formulas import random_tree

ELEMENTS = {
    "math",
    "mrow",
    "mi",
    "mn",
    "mo",
    "mfrac",
    "msqrt",
    "mover",
    "msub",
    "msup",
    "msubsup",
    "munder",
    "munderover",
    "mspace",
}


def read(text: str) -> ElementTree.Element:
    return ElementTree.fromstring(text)


def test_the_flexibert_formula_reads_as_the_papers_equation_2() -> None:
    text = to_mathml(parse("sum(add(square(inverse(H)), log_softmax(fro(A))))"))
    shown = "".join(read(text).itertext()).replace("\N{FUNCTION APPLICATION}", "")
    assert shown == "φ(θH,θA)=∑i=1N((1θH)2+log(η(‖θA‖F)))"
    assert "<msup><mrow><mo>(</mo><mfrac><mn>1</mn>" in text
    assert "<munderover><mo>∑</mo>" in text


def test_bars_next_to_bars_are_kept_apart_by_a_space() -> None:
    text = to_mathml(parse("sum(fro(abslog(W)))"), with_name=False)
    shown = "".join(read(text).itertext()).replace("\N{FUNCTION APPLICATION}", "")
    assert shown == "∑i=1N(‖|log|θW||‖F)"
    assert text.count("<mspace") == 2


def test_the_name_is_left_out_on_request() -> None:
    shown = "".join(read(to_mathml(parse("-mean(W)"), with_name=False)).itertext())
    assert shown == "−1N∑i=1N(θW)"


@pytest.mark.parametrize("name", [n for n in UNARIES if n != "disconnect"])
def test_every_primitive_is_well_formed_and_holds_its_operand_once(name: str) -> None:
    tree = read(to_mathml(parse(f"sum({name}(W))"), with_name=False))
    assert [e.text for e in tree.iter("mi")].count("W") == 1
    assert {e.tag for e in tree.iter()} <= ELEMENTS


def test_drawn_formulas_are_well_formed_with_the_right_number_of_children() -> None:
    wanted = {"mfrac": 2, "msub": 2, "msup": 2, "mover": 2, "munderover": 3, "msqrt": 1}
    rng = random.Random(0)
    drawn = [random_tree(rng, 6) for _ in range(60)]
    alive = [formula for formula in drawn if drop_dead(formula.term.expression) is not None]
    assert len(alive) > 40
    for formula in alive:
        for element in read(to_mathml(formula)).iter():
            assert element.tag in ELEMENTS
            assert len(element) == wanted.get(element.tag, len(element))


@pytest.fixture
def _hostile() -> Iterator[None]:
    @unary(latex=r"\operatorname{<b>&}\left({x}\right)", sympy=lambda x, s: x)
    def hostile(x: Any, xp: Any) -> Any:
        """2x + 1"""
        return 2 * x + 1

    yield
    forget("hostile")


@pytest.mark.usefixtures("_hostile")
def test_a_template_cannot_bring_markup_in() -> None:
    text = to_mathml(parse("sum(hostile(W))"))
    assert "<mi>&lt;b&gt;&amp;</mi>" in text
    assert set(re.findall(r"<(\w+)", text)) <= ELEMENTS


@pytest.mark.parametrize("name", ["log_softmax", "sqrt", "mean", "inverse", "square"])
def test_the_deepest_formula_is_written(name: str) -> None:
    tree = read(to_mathml(parse("sum(" + f"{name}(" * 59 + "W" + ")" * 60)))
    assert [e.text for e in tree.iter("mi")].count("W") == 2  # in the name and at the bottom
