from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest

from primitives import (
    UNARIES,
    Formula,
    FormulaError,
    Rejected,
    TensorError,
    branch,
    cut,
    parse,
    score,
)
from primitives.canonical import key
from primitives.properties import Gives
from primitives.pruning import check
from primitives.symbolic import score_sympy, to_sympy
from tests.random_formulas import random_formula, random_tree


@pytest.mark.slow
def test_the_sympy_form_keeps_the_score(make_architecture: Any) -> None:
    blocks = make_architecture(0, scale=1.0)
    rng = random.Random(2)
    compared = 0
    while compared < 120:
        formula = random_formula(rng, 2) if compared % 3 else random_tree(rng, 5)
        ours = score(formula, blocks)
        if isinstance(ours, Rejected) or check(formula) is not None:
            continue  # a pruned formula may be rounding noise and nothing else
        form = to_sympy(formula)
        expected = pytest.approx(ours, rel=1e-5, abs=1e-8)
        assert score_sympy(form, blocks) == expected, str(formula)
        compared += 1


@pytest.mark.slow
def test_chains_that_sympy_finds_equal_share_a_key() -> None:
    by_form: dict[Any, set[str]] = {}
    local = [name for name, f in UNARIES.items() if f.traits.gives is Gives.SAME]
    for chain in product(local, repeat=2):
        formula = Formula.of_term("sum", branch("W", *chain))
        by_form.setdefault(to_sympy(formula), set()).add(key(formula))
    assert len(by_form) < len(local) ** 2
    assert [keys for keys in by_form.values() if len(keys) > 1] == []


def test_guards_are_part_of_the_form() -> None:
    assert "50" in str(to_sympy(parse("sum(exp(W))")))
    assert "Piecewise" in str(to_sympy(parse("sum(log(W))")))


def test_unaligned_statistics_meet_as_block_means() -> None:
    assert str(to_sympy(parse("sum(matmul(W, A))"))).count("block_mean") == 3
    assert str(to_sympy(parse("sum(mul(W, G))"))) == "sum(block_mean(G*W))"


def test_a_cut_tensor_is_refused(make_architecture: Any) -> None:
    formula = parse("sum(W)")
    block = {"W": [cut(make_architecture(0)[0]["W"][0].values, 8)]}
    with pytest.raises(TensorError, match="whole"):
        score_sympy(to_sympy(formula), [block])


def test_a_formula_with_nothing_left_has_no_form() -> None:
    with pytest.raises(FormulaError, match="disconnected"):
        to_sympy(parse("sum(disconnect(W))"))
