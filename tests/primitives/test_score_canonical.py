from __future__ import annotations

import random

import pytest

from primitives import Formula, Rejected, parse, score
from primitives.canonical import canonical
from primitives.pruning import ALL_RULES, OUTER_RULES, check
from tests.formula_keys import key_up_to_sign
from tests.primitives.conftest import make_network
from tests.random_formulas import COLUMNS, random_score

DEPTH = frozenset({"depth"})
PAPER = "mul(inner(l1(abslog(J))), sqrt(inner(sqrt(params))), inverse(sqrt(sum(sqrt(softmax(S))))))"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PAPER, PAPER),
        ("mul(sqrt(inner(params)), depth)", "mul(depth, sqrt(inner(params)))"),
        ("mul(mul(sum(fro(W)), last(width)), depth)", "mul(depth, last(width), sum(fro(W)))"),
        ("sqrt(mul(sum(l1(W)), last(params)))", "mul(last(params), sum(l1(W)))"),
        ("inverse(mul(sum(l1(W)), last(params)))", "-mul(last(params), sum(l1(W)))"),
        ("mul(square(sum(fro(W))), sum(width))", "mul(sum(fro(W)), sqrt(sum(width)))"),
        ("mul(sum(fro(W)), sum(fro(W)), sum(fro(W)))", "sum(fro(W))"),
        ("mul(inverse(sum(fro(W))), sum(width))", "-mul(sum(fro(W)), inverse(sum(width)))"),
        ("mul(sum(fro(W)), sum(width), inverse(sum(fro(W))))", "sum(width)"),
        ("square(sum(W))", "abs(sum(W))"),
        ("abs(mul(sum(W), sum(fro(W))))", "mul(abs(sum(W)), sum(fro(W)))"),
        ("log(sqrt(sum(params)))", "sum(params)"),
        ("-log(inverse(sum(params)))", "sum(params)"),
        ("log(mean(sigmoid(W)))", "mean(sigmoid(W))"),
        ("abs(log(mean(sigmoid(W))))", "-mean(sigmoid(W))"),
        ("abs(log(sum(fro(W))))", "abs(log(sum(fro(W))))"),
        ("mul(sum(neg(W)), inverse(sum(neg(G))))", "mul(inverse(sum(G)), sum(W))"),
        ("mul(abs(sum(log_softmax(S))), sum(W))", "-mul(sum(W), sum(log_softmax(S)))"),
        ("sqrt(abs(sum(log_softmax(S))))", "-sum(log_softmax(S))"),
        ("mul(sqrt(abs(last(log_softmax(S)))), sum(W))",
         "mul(sqrt(abs(last(log_softmax(S)))), sum(W))"),
        ("mul(last(sqrt(params)), sum(fro(W)))", "mul(sqrt(last(params)), sum(fro(W)))"),
        ("sub(sum(neg(W)), add(depth, sum(G)))", "-add(depth, sum(G), sum(W))"),
        ("add(sum(neg(W)), depth)", "sub(depth, sum(W))"),
        ("sub(last(W), first(W))", "-sub(first(W), last(W))"),
        ("mul(sum(fro(W)), sqrt(square(square(last(fro(G))))))",
         "mul(last(fro(G)), sqrt(sum(fro(W))))"),
    ],
)  # fmt: skip
def test_the_canonical_form(text: str, expected: str) -> None:
    assert str(canonical(parse(text))) == expected


def test_what_is_known_of_a_column_is_used() -> None:
    root, twin = parse("sqrt(mul(depth, sum(params)))"), parse("mul(sum(params), depth)")
    assert str(canonical(root)) == "sqrt(mul(depth, sum(params)))"
    assert canonical(root, DEPTH) == canonical(twin, DEPTH)


def test_a_single_term_keeps_its_canonical_form_and_class() -> None:
    formula = canonical(parse("mean(add(square(neg(H)), log_softmax(fro(A))))"))
    assert str(formula) == "mean(square(H))"
    assert canonical(parse("sqrt(sum(l1(W)))")).is_term


def test_the_key_up_to_sign_merges_a_ratio_and_its_inverse() -> None:
    one, other = (
        parse("mul(sum(fro(W)), inverse(last(width)))"),
        parse("-mul(inverse(sum(fro(W))), last(width))"),
    )
    assert key_up_to_sign(one) == key_up_to_sign(other)


def _in_order(one: list[float], other: list[float]) -> bool:
    """What is clearly smaller in one list is not clearly larger in the other."""

    def below(x: float, y: float) -> bool:
        return x < y - 1e-9 * max(abs(x), abs(y))

    pairs = [(a, b) for a in zip(one, other, strict=True) for b in zip(one, other, strict=True)]
    return not any(below(a[0], b[0]) and below(b[1], a[1]) for a, b in pairs)


def _kept(rng: random.Random) -> Formula:
    while True:
        made = random_score(rng, rng.randint(2, 4))
        if check(made, max_factors=99) is None and canonical(made) != made:
            return made


@pytest.mark.slow
def test_the_canonical_form_is_stable_and_ranks_as_the_formula_does() -> None:
    rng = random.Random(3)
    networks = [make_network(seed, rows=2, columns=3) for seed in range(6)]
    drawn = [{name: rng.uniform(-3, 3) for name in COLUMNS} for _ in networks]
    sized = [{name: abs(value) for name, value in row.items()} for row in drawn]
    compared = 0
    for _ in range(400):
        formula = _kept(rng)
        for columns, positive in ((drawn, frozenset[str]()), (sized, frozenset(COLUMNS))):
            reduced = canonical(formula, positive)
            assert canonical(reduced, positive) == reduced
            rule = check(reduced, ALL_RULES & frozenset(OUTER_RULES), 99)
            assert rule is None or rule.rule == "constant-factor", (str(formula), str(reduced))
            pairs = [
                (score(formula, network, columns=row), score(reduced, network, columns=row))
                for network, row in zip(networks, columns, strict=True)
            ]
            there = [(a, b) for a, b in pairs if not isinstance(a, Rejected)]
            assert all(not isinstance(b, Rejected) or a == 0 for a, b in there), str(formula)
            numbers = [(a, b) for a, b in there if not isinstance(b, Rejected)]
            mine, theirs = [float(a) for a, _ in numbers], [float(b) for _, b in numbers]
            assert _in_order(mine, theirs), (str(formula), str(reduced))
            compared += len(numbers) > 2
    assert compared > 400


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("mul(sum(W), sum(W), depth)", "mul(square(sum(W)), depth)"),
        ("mul(sum(W), sum(neg(W)), depth)", "mul(square(sum(W)), depth)"),
        (
            "mul(sum(W), abs(sum(W)), abs(sum(W)), sum(W), depth)",
            "mul(square(square(sum(W))), depth)",
        ),
    ],
)
def test_equal_factors_of_either_sign_are_a_square(text: str, same: str) -> None:
    assert key_up_to_sign(parse(text)) == key_up_to_sign(parse(same))
    assert key_up_to_sign(parse(text)) != key_up_to_sign(parse("mul(sum(W), abs(sum(W)), depth)"))
