from __future__ import annotations

import random
import time

import pytest

from primitives import BINARIES, STATISTICS, UNARIES, Formula, FormulaError, parse
from primitives.formula import MAX_DEPTH
from primitives.parser import MAX_LENGTH
from tests.random_formulas import random_formula, random_tree


@pytest.mark.slow
def test_printing_and_parsing_are_inverse_for_10_000_random_formulas() -> None:
    rng = random.Random(0)
    for number in range(10_000):
        made = random_formula(rng, 4) if number % 2 else random_tree(rng, 8)
        again = parse(str(made))
        assert again == made
        assert str(again) == str(made)


@pytest.mark.parametrize(
    "text",
    [
        "sum(add(square(inverse(H)), log_softmax(fro(A))))",
        "-mean(add(square(W), square(softmax(G))))",
        "mean(mean(W))",
    ],
)
def test_the_canonical_text_is_printed_back(text: str) -> None:
    assert str(parse(text)) == text


def test_white_space_does_not_matter() -> None:
    assert str(parse(" -\tmean ( add( W ,\n G ) ) ")) == "-mean(add(W, G))"


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("", 0, "end of the text"),
        ("W", 0, "sum"),
        ("summ(W)", 0, "did you mean 'sum'"),
        ("sum(sqare(W))", 4, "did you mean 'square'"),
        ("sum(ad(W, G))", 4, "did you mean 'add'"),
        ("sum(w)", 4, "unknown name 'w'"),
        ("sum(sum(W))", 4, "outside of the expression"),
        ("sum(W", 5, "to close sum"),
        ("sum(W))", 6, "expected the end"),
        ("sum(add(W))", 9, "takes two operands"),
        ("sum(square(W, G))", 12, "takes one operand"),
        ("sum(W G)", 6, "to close sum"),
        ("--sum(W)", 1, "expected sum"),
        ("sum(W; G)", 5, "unexpected character ';'"),
        ("sum(\u0394)", 4, "unexpected character"),
        ("sum(square)", 10, "after square"),
    ],
)
def test_an_error_says_where_and_what(text: str, position: int, message: str) -> None:
    with pytest.raises(FormulaError, match=message) as caught:
        parse(text)
    assert caught.value.position == position
    assert f"at character {position}" in str(caught.value)


def test_depth_is_limited_and_the_limit_is_reachable() -> None:
    deepest = "sum(" + "abs(" * (MAX_DEPTH - 1) + "W" + ")" * MAX_DEPTH
    assert parse(deepest).complexity == MAX_DEPTH
    with pytest.raises(FormulaError, match="nested deeper"):
        parse("sum(" + "abs(" * MAX_DEPTH + "W" + ")" * (MAX_DEPTH + 1))


def test_a_million_brackets_are_refused_at_once() -> None:
    start = time.process_time()
    for text in ("(" * 1_000_000, "sum(" + "abs(" * 4_000, "-" * MAX_LENGTH):
        with pytest.raises(FormulaError):
            parse(text)
    assert time.process_time() - start < 1


@pytest.mark.parametrize("value", [b"sum(W)", None, 3, ["sum(W)"]])
def test_only_text_is_parsed(value: object) -> None:
    with pytest.raises(FormulaError, match="is text"):
        parse(value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text", ["sum(__import__('os').getcwd())", "sum(exec(W))", "sum(W.__class__)", "sum(1)"]
)
def test_python_is_not_a_formula(text: str) -> None:
    with pytest.raises(FormulaError):
        parse(text)


@pytest.mark.slow
def test_20_000_hostile_strings_give_a_formula_or_one_clear_error() -> None:
    rng = random.Random(1)
    words = [*UNARIES, *BINARIES, *STATISTICS, "sum", "mean", "(", ")", ",", "-", " "]
    parsed, slowest = 0, 0.0
    for number in range(20_000):
        text = _hostile(rng, words, number % 4)
        start = time.process_time()
        outcome = _parsed_or_message(text)
        slowest = max(slowest, time.process_time() - start)
        if isinstance(outcome, Formula):
            parsed += 1
            assert parse(str(outcome)) == outcome
        else:
            assert outcome
            assert "\n" not in outcome
    assert slowest < 1
    assert parsed > 200  # the mutations are mild enough to reach the accepting side too


def _parsed_or_message(text: str) -> Formula | str:
    try:
        return parse(text)
    except FormulaError as error:
        return str(error)


def _hostile(rng: random.Random, words: list[str], kind: int) -> str:
    if kind == 0:
        return rng.randbytes(rng.randint(0, 60)).decode("latin-1")
    if kind == 1:
        return "".join(rng.choices(words, k=rng.randint(1, 20)))
    text = str(random_formula(rng, 3))
    for _ in range(rng.randint(1, 2)):
        at = rng.randrange(len(text))
        piece = rng.choice(["", "", rng.choice(words), chr(rng.randrange(256)), text[:at]])
        text = text[:at] + piece + text[at + rng.randint(0, 2) :]
    return text
