from __future__ import annotations

import copy
import math
import random
from fractions import Fraction
from typing import Any

import pytest

from primitives import (
    Column,
    Formula,
    FormulaError,
    Leaf,
    Power,
    Term,
    parse,
)
from primitives.facts import range_of
from primitives.formula import MAX_DEPTH, Outer, Sum, chains, multiply
from primitives.reductions import POSITION_REDUCTIONS
from primitives.registry import BINARIES, UNARIES, unary
from primitives.statistics import SIZES, STATISTICS
from tests.random_formulas import COLUMNS, random_score

PAPER = "mul(inner(l1(abslog(J))), sqrt(inner(sqrt(params))), inverse(sqrt(sum(sqrt(softmax(S))))))"


@pytest.mark.slow
def test_printing_and_parsing_are_inverse_for_3_000_random_scores() -> None:
    rng = random.Random(0)
    several = 0
    for _ in range(3_000):
        made = random_score(rng, rng.randint(1, 5))
        again = parse(str(made))
        assert again == made
        assert str(again) == str(made)
        several += not made.is_term
    assert several > 1_500


@pytest.mark.parametrize(
    "text",
    [
        PAPER,
        "mul(sqrt(inner(params)), depth)",
        "-mul(sum(W), inverse(last(fro(G))))",
        "-depth-sqrt-width",
        "add(head-importance, embedding(params), dss++)",
        "sub(mean(mean(W)), log(first(width)))",
    ],
)
def test_a_score_is_printed_back(text: str) -> None:
    assert str(parse(text)) == text


@pytest.mark.parametrize("reduction", POSITION_REDUCTIONS)
def test_a_single_term_is_a_formula_whatever_its_reduction(reduction: str) -> None:
    found = parse(f"-{reduction}(params)")
    assert found.is_term
    assert (found.sign, found.term.reduction, found.sizes) == (-1, reduction, ("params",))


def test_a_formula_tells_what_it_is_made_of() -> None:
    score = parse(f"-mul({PAPER}, inner(l1(abslog(J))), depth)")
    assert [str(term) for term in score.terms] == [
        "inner(l1(abslog(J)))",
        "inner(sqrt(params))",
        "sum(sqrt(softmax(S)))",
    ]
    assert score.columns == ("depth",)
    assert (score.statistics, score.sizes) == (("J", "S"), ("params",))
    assert score.complexity == 14
    assert (-score).sign == 1
    assert str(-score) == str(score)[1:]
    term = parse("-sum(mul(fro(W), width))")
    assert term.terms == (term.term,)
    assert (term.columns, term.statistics, term.sizes) == ((), ("W",), ("width",))
    assert len({score, -score, parse(str(score)), term}) == 3


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("params", 0, r"size of each block.*sum\(params\)"),
        ("mul(sum(W), W)", 12, r"statistic of each block.*sum\(W\)"),
        ("fro(sum(W))", 0, "works inside a block"),
        ("mul(sum(W))", 10, "takes two or more operands"),
        ("mul(sum(W), )", 12, "expected sum"),
        ("sub(a, b, c)", 8, "takes two operands"),
        ("sqrt(a, b)", 6, "takes one operand"),
        ("mul(a, -b)", 7, "expected sum"),
        ("mul(a, inner(inner(W)))", 13, "outside of the expression"),
        ("sum(depth)", 4, "unknown name 'depth'"),
        ("sqrt(summ(W))", 5, "did you mean 'sum'"),
        ("Depth", 0, "no column is called 'Depth'"),
        ("a b", 2, "expected the end"),
        ("neg", 0, "works inside a block"),
    ],
)
def test_an_error_says_where_and_what(text: str, position: int, message: str) -> None:
    with pytest.raises(FormulaError, match=message) as caught:
        parse(text)
    assert caught.value.position == position


def test_depth_is_limited_on_both_sides_of_the_border() -> None:
    outer, inner = MAX_DEPTH - 1, MAX_DEPTH - 1
    deepest = "abs(" * outer + "sum(" + "abs(" * inner + "W" + ")" * (outer + inner + 1)
    assert str(parse(deepest)) == deepest
    for text in (f"abs({deepest})", "abs(" * 4_000, "mul(a, " * 2_000):
        with pytest.raises(FormulaError, match="nested deeper"):
            parse(text)


def test_depth_is_limited_for_formulas_that_operations_make() -> None:
    formula = parse("sum(W)")
    for _ in range(MAX_DEPTH - 1):
        formula = formula.apply("log")
    assert formula.depth == MAX_DEPTH
    with pytest.raises(FormulaError, match=f"deeper than {MAX_DEPTH} levels"):
        formula.apply("log")
    wide = multiply(parse(f"log(column-{number})") for number in range(MAX_DEPTH + 1))
    assert wide.depth == 3, "many brackets, none of them deep"


@pytest.mark.slow
def test_9_000_hostile_strings_give_a_formula_or_one_clear_error() -> None:
    rng = random.Random(1)
    words = [*UNARIES, *BINARIES, *STATISTICS, *SIZES, *POSITION_REDUCTIONS, *COLUMNS]
    words += ["(", ")", ",", "-", " ", "+", "_"]
    parsed = 0
    for number in range(9_000):
        if number % 3:
            text = str(random_score(rng, 3))
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice(["", *words]) + text[at + rng.randint(0, 3) :]
        else:
            text = "".join(rng.choices(words, k=rng.randint(1, 15)))
        found = _parsed_or_message(text)
        if isinstance(found, str):
            assert "\n" not in found
        else:
            parsed += 1
            assert parse(str(found)) == found
    assert parsed > 900


def _parsed_or_message(text: str) -> Formula | str:
    try:
        return parse(text)
    except FormulaError as error:
        return str(error)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Column("Depth"),
        lambda: Column("params"),
        lambda: Column("sqrt"),
        lambda: Column("a b"),
        lambda: Column(""),
        lambda: parse("depth").apply("exp"),
        lambda: parse("-sum(W)").apply("sqrt"),
        lambda: Sum((parse("depth"),)),
        lambda: Sum((parse("-depth"), parse("-width-sum"))),
        lambda: Outer("log", parse("-depth")),
        lambda: Formula(1, ()),
        lambda: Formula(1, (Power(Column("a")), Power(Column("a"), Fraction(2)))),
        lambda: Formula(0, (Power(Column("a")),)),
        lambda: Power(Column("a"), Fraction(1, 3)),
        lambda: parse("mul(a, b)").term,
    ],
)
def test_a_score_with_a_wrong_part_is_refused(build: Any) -> None:
    with pytest.raises(FormulaError):
        build()


@pytest.mark.parametrize("name", ["inner", "params", "head"])
def test_words_of_the_language_cannot_name_a_primitive(name: str) -> None:
    def body(x: Any, xp: Any) -> Any:
        return x

    body.__name__ = name
    with pytest.raises(TypeError, match="is taken"):
        unary(latex="{x}")(body)


def test_a_size_is_not_a_statistic() -> None:
    with pytest.raises(FormulaError, match="is a size"):
        _ = Leaf("params").statistic


@pytest.mark.parametrize(
    ("text", "powers"),
    [
        ("mul(a, sqrt(a), inverse(b))", {"a": "3/2", "b": "-1"}),
        ("inverse(mul(a, square(b)))", {"a": "-1", "b": "-2"}),
        ("square(inverse(sqrt(sqrt(a))))", {"a": "-1/2"}),
        ("mul(a, b, inverse(a))", {"a": "0", "b": "1"}),
        ("sqrt(mul(a, b))", {"sqrt(mul(a, b))": "1"}),
        ("sqrt(square(a))", {"sqrt(square(a))": "1"}),
        ("sqrt(abs(a))", {"abs(a)": "1/2"}),
        ("inverse(log(sub(b, a)))", {"log(sub(b, a))": "-1"}),
        ("square(sub(b, a))", {"sub(b, a)": "2"}),
    ],
)
def test_a_formula_is_a_product_of_powers(text: str, powers: dict[str, str]) -> None:
    formula = parse(text)
    assert {str(p.base): str(p.exponent) for p in formula.powers} == powers
    assert multiply(Formula(1, (power,)) for power in formula.powers) == formula


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("mul(sqrt(a), b, a)", "mul(a, sqrt(a), b)"),
        ("mul(a, mul(b, a))", "mul(square(a), b)"),
        ("inverse(mul(a, square(b)))", "mul(inverse(a), inverse(square(b)))"),
        ("mul(a, b, inverse(a))", "mul(a, inverse(a), b)"),
        ("add(a, sub(b, c))", "sub(add(a, b), c)"),
        ("sub(a, sub(b, sub(c, d)))", "sub(add(a, c), add(b, d))"),
    ],
)
def test_factors_of_one_base_are_merged_and_sums_of_sums_opened(text: str, printed: str) -> None:
    assert str(parse(text)) == printed
    assert str(parse(printed)) == printed


@pytest.mark.parametrize(
    ("exponent", "factors"),
    [
        (Fraction(1), ((),)),
        (Fraction(-1), (("inverse",),)),
        (Fraction(0), ((), ("inverse",))),
        (Fraction(3, 2), ((), ("sqrt",))),
        (Fraction(-6), (("square", "square", "inverse"), ("square", "inverse"))),
        (Fraction(5, 4), ((), ("sqrt", "sqrt"))),
    ],
)
def test_a_power_is_written_with_squares_and_roots(
    exponent: Fraction, factors: tuple[tuple[str, ...], ...]
) -> None:
    assert chains(exponent) == factors


def test_a_formula_survives_copying_and_is_found_by_its_text() -> None:
    formula = parse(f"-{PAPER}")
    again = copy.deepcopy(formula)
    assert again == formula
    assert {formula: 1}[again] == 1
    assert formula != str(formula)
    assert Term("sum", Leaf("W")) != Term("mean", Leaf("W"))


@pytest.mark.parametrize(
    ("text", "low"),
    [("sum(params)", 1.0), ("mean(params)", 1.0), ("inner(params)", 0.5), ("last(params)", 1.0)],
)
def test_the_least_value_of_a_reduction(text: str, low: float) -> None:
    """Of a single block `inner` takes half."""
    assert range_of(parse(text)).low == low


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("mul(sum(log_softmax(S)), sum(fro(W)))", -math.inf, 0.0),
        ("mul(sum(log_softmax(S)), sum(log_softmax(A)))", 0.0, math.inf),
        ("mul(sum(params), last(width))", 1.0, math.inf),
        ("mul(sum(W), last(width))", -math.inf, math.inf),
        ("sub(sum(params), mean(sigmoid(W)))", 0.0, math.inf),
    ],
)
def test_the_range_of_products_and_differences(text: str, low: float, high: float) -> None:
    found = range_of(parse(text))
    assert (found.low, found.high) == (low, high)
