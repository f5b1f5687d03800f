from __future__ import annotations

from typing import Any

import pytest

from primitives import Apply, Combine, Formula, FormulaError, Leaf, branch, parse
from primitives.expressions import chain_of, depth, drop_dead


def test_the_papers_form_is_two_branches() -> None:
    made = Formula.of("add", ("H", ["inverse", "square"]), ("A", ["fro", "log_softmax"]))
    assert str(made) == "sum(add(square(inverse(H)), log_softmax(fro(A))))"


def test_formulas_are_values() -> None:
    assert len({parse("sum(W)"), parse("sum(W)"), parse("mean(W)"), parse("-sum(W)")}) == 3


def test_negation_flips_the_sign_only() -> None:
    assert str(-parse("sum(W)")) == "-sum(W)"
    assert -parse("-sum(W)") == parse("sum(W)")


def test_complexity_counts_nodes() -> None:
    assert parse("sum(add(square(W), G))").complexity == 4


@pytest.mark.parametrize("changes", [{"reduction": "max"}, {"sign": 0}, {"sign": 2}])
def test_a_formula_with_a_wrong_part_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(FormulaError):
        Formula.of_term(**{"reduction": "sum", "expression": Leaf("W"), **changes})


@pytest.mark.parametrize(
    "build",
    [
        lambda: Leaf("X"),
        lambda: Apply("add", Leaf("W")),
        lambda: Combine("square", Leaf("W"), Leaf("G")),
    ],
)
def test_nodes_take_declared_names_only(build: Any) -> None:
    with pytest.raises(LookupError):
        build()


def test_chains_are_read_back_from_branches() -> None:
    assert chain_of(branch("H", "inverse", "square")) == ("H", ("inverse", "square"))
    assert chain_of(parse("sum(abs(add(W, G)))").term.expression) is None


def test_depth_counts_levels() -> None:
    assert depth(parse("sum(add(W, square(square(G))))").term.expression) == 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sum(add(W, disconnect(A)))", "W"),
        ("sum(add(exp(disconnect(W)), square(A)))", "square(A)"),
        ("sum(square(add(disconnect(W), identity(A))))", "square(A)"),
        ("sum(identity(W))", "W"),
        ("sum(mul(disconnect(W), disconnect(A)))", "None"),
    ],
)
def test_dead_branches_and_identities_are_dropped(text: str, expected: str) -> None:
    assert str(drop_dead(parse(text).term.expression)) == expected
