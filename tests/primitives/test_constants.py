"""Constants in formulas: weights, centres, and operations around them."""

from __future__ import annotations

import math

import pytest

from primitives.canonical import canonical
from primitives.errors import FormulaError, Rejected
from primitives.formula import Atom, Column, Constant, Formula
from primitives.latex import to_latex
from primitives.mathml import to_mathml
from primitives.naive import combine
from primitives.parser import parse
from primitives.symbolic import to_sympy

WEIGHTED = (
    "sub(add(log(synflow), mul(0.213, snip, relu(sub(log(nwot), 6.11)))), mul(2.5e-07, jacov))"
)
ROW = {"synflow": 40.0, "snip": 3.0, "nwot": 500.0, "jacov": -32.0}


def of_row(atom: Atom) -> float:
    assert isinstance(atom, Column)
    return ROW[atom.name]


def value(formula: Formula) -> float:
    found = combine(formula, of_row)
    assert not isinstance(found, Rejected)
    return found


def test_a_weighted_sum_keeps_its_text_and_has_its_value() -> None:
    formula = parse(WEIGHTED)
    assert str(formula) == WEIGHTED
    expected = math.log(40) + 0.213 * 3 * (math.log(500) - 6.11) + 2.5e-7 * 32
    assert value(formula) == pytest.approx(expected, rel=1e-12)
    assert formula.columns == ("synflow", "snip", "nwot", "jacov")


def test_the_logarithm_of_a_column_over_another_can_be_written() -> None:
    formula = parse("mul(log(synflow), inverse(jacov))")
    assert value(formula) == pytest.approx(math.log(40) / -32)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tanh(mul(0.5, sub(nwot, 498)))", math.tanh(1.0)),
        ("relu(sub(nwot, 600))", 0.0),
        ("relu(sub(nwot, 400))", 100.0),
        ("square(sub(nwot, 498))", 4.0),
    ],
)
def test_operations_saturate_and_cut_off(text: str, expected: float) -> None:
    assert value(parse(text)) == pytest.approx(expected)
    assert str(parse(text)) == text


@pytest.mark.parametrize("number", [0.0, -1.0, math.inf, math.nan])
def test_a_constant_is_above_zero(number: float) -> None:
    with pytest.raises(FormulaError, match="constant"):
        Constant(number)


def test_constants_have_at_most_twelve_digits() -> None:
    assert Constant(1 / 3).text == "0.333333333333"
    assert Constant(1 / 3) == Constant(0.333333333333)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("mul(0.5, snip)", "snip"),
        ("mul(0.5, 4, snip)", "snip"),
        ("add(snip, 3.2)", "snip"),
        ("-add(snip, 3.2)", "-snip"),
        ("sub(add(snip, 3.2, nwot), 5)", "add(nwot, snip)"),
        ("add(mul(0.5, 4, snip), nwot)", "add(mul(2, snip), nwot)"),
        ("tanh(sub(snip, 3))", "snip"),
    ],
)
def test_constants_that_change_no_ranking_go(written: str, expected: str) -> None:
    assert str(canonical(parse(written))) == expected


def test_a_constant_inside_stays() -> None:
    assert str(canonical(parse("square(sub(snip, 3))"))) in {
        "square(sub(snip, 3))",
        "abs(sub(snip, 3))",
    }


def test_a_paper_can_print_it() -> None:
    latex = to_latex(parse(WEIGHTED))
    assert r"0.213 \cdot" in latex
    assert r"2.5 \cdot 10^{-7}" in latex
    assert r"\right]_{+}" in latex
    assert "<mn>0.213</mn>" in to_mathml(parse(WEIGHTED))


def test_sympy_has_the_same_value() -> None:
    form = to_sympy(parse(WEIGHTED))
    known = {symbol: ROW[symbol.name] for symbol in form.free_symbols}
    assert float(form.subs(known).evalf()) == pytest.approx(value(parse(WEIGHTED)))
