"""Columns in formulas: names, evaluation, and the beam against plain enumeration."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from scipy.stats import spearmanr

from lpzero.errors import InputError
from lpzero.judgement.ranks import rank_targets
from lpzero.scores.columns import (
    Columns,
    as_ranks,
    common_facts,
    formula_names,
    parts_of,
    select,
    sum_of,
)
from lpzero.scores.products import COLUMN_EXPONENTS, of_columns, search
from lpzero.scores.terms import term_table
from lpzero.scores.values import Values
from primitives.errors import Rejected
from primitives.naive import score as naive_score
from primitives.parser import parse
from primitives.tensors import NetworkValues

RNG = np.random.default_rng(5)
N = 60
VALUES = {
    "size": RNG.uniform(1, 9, N),
    "cost": RNG.uniform(100, 900, N),
    "loss": -RNG.uniform(1, 5, N),
    "change": RNG.normal(size=N),
}
TARGETS = np.log(VALUES["size"]) - 0.5 * np.log(VALUES["cost"]) + 0.4 * RNG.normal(size=N)
COLUMNS = Columns(VALUES)
FACTS = common_facts([COLUMNS])


def test_headings_become_names_of_the_language() -> None:
    found = formula_names(
        ["params", "Layer 1 (mean)", "2nd", "dss++", "signed_log", "val_accuracy"]
    )
    assert list(found.values()) == [
        "params_column", "layer_1_mean", "c_2nd", "dss++", "signed_log_column", "val_accuracy",
    ]  # fmt: skip
    for name in found.values():
        assert str(parse(name)) == name
    with pytest.raises(InputError, match="'A b' and 'a-b!' would both be called a_b"):
        formula_names(["A b", "a-b!"])


def test_columns_are_selected_by_heading_or_by_name() -> None:
    table = {"Grad Norm": 1, "params": 2}
    assert select(table, ["params", "grad_norm"], "t") == {"params_column": 2, "grad_norm": 1}
    with pytest.raises(InputError, match="table t has no column 'gradnorm'; did you mean"):
        select(table, ["gradnorm"], "t")


@pytest.mark.parametrize(
    "text",
    [
        "mul(size, inverse(sqrt(cost)))",
        "-sub(add(signed_log(change), log(size)), log(square(loss)))",
        "mul(abs(loss), sqrt(abs(loss)), change)",
        "sqrt(change)",
        "log(loss)",
    ],
)
def test_scores_of_columns_are_those_of_the_naive_reference(text: str) -> None:
    formula = parse(text)
    found = Values(columns=VALUES).score(formula)
    network = NetworkValues([{}])
    for row in range(N):
        beside = {name: float(of[row]) for name, of in VALUES.items()}
        expected = naive_score(formula, network, columns=beside)
        if isinstance(found, Rejected):
            if isinstance(expected, Rejected):
                return  # one row without a score rejects the formula
        else:
            assert found[row] == pytest.approx(expected, rel=1e-12)
    assert not isinstance(found, Rejected)


def test_a_formula_that_reads_a_network_has_no_score_on_columns() -> None:
    found = Values(columns=VALUES).score(parse("mul(size, sum(l1(W)))"))
    assert isinstance(found, Rejected)
    assert found.rule == "missing-network"
    with pytest.raises(InputError, match="names column 'speed'; columns given: change, cost"):
        Values(columns=VALUES).score(parse("mul(size, speed)"))


@pytest.mark.slow
def test_the_beam_over_columns_finds_the_best_of_all_products_of_two() -> None:
    terms = term_table(Values(columns=VALUES))
    assert {str(term) for term in terms.terms} == set(VALUES)
    found = search(terms.logs, rank_targets(TARGETS), of_columns(2))[0]
    best = max(
        abs(spearmanr(np.abs(VALUES[a]) ** float(p) * np.abs(VALUES[b]) ** float(q), TARGETS)[0])
        for a, b in combinations(VALUES, 2)
        for p, q in product(COLUMN_EXPONENTS, repeat=2)
    )
    assert found.value == pytest.approx(best, abs=1e-9)


def test_a_column_that_changes_sign_enters_products_as_its_magnitude() -> None:
    terms = term_table(Values(columns=VALUES))
    assert terms.positive == {"size", "cost"}
    place = [str(term) for term in terms.terms].index("change")
    assert np.array_equal(terms.values[place], np.abs(VALUES["change"]))


def test_sums_hold_only_what_is_defined_and_no_plain_product() -> None:
    texts = {str(tree) for tree in FACTS.summands}
    assert {"signed_log(change)", "log(size)", "log(sqrt(abs(loss)))"} <= texts
    assert "log(square(loss))" in texts
    zero = common_facts([Columns({"gap": np.array([0.0, 1.0])})])
    assert [str(tree) for tree in zero.summands] == ["signed_log(gap)"]
    assert sum_of([parse("log(size)"), parse("-log(cost)")]) is None
    made = sum_of([parse("-signed_log(size)"), parse("-log(cost)")])
    assert str(made) == "add(log(cost), signed_log(size))"
    assert made is not None
    assert parts_of(parse(str(made))) == parts_of(made)


def test_ranks_say_in_their_name_that_they_are_ranks() -> None:
    found = as_ranks({"cost": np.array([30.0, 10.0, 20.0, 20.0])})
    assert list(found) == ["rank-of-cost"]
    assert found["rank-of-cost"].tolist() == [1.0, 0.25, 0.625, 0.625]
    facts = common_facts([Columns(found)])
    assert [str(tree) for tree in facts.summands] == [
        "rank-of-cost", "sqrt(rank-of-cost)", "square(rank-of-cost)",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "scores"),
    [
        ("mul(sqrt(synflow), inverse(jacov))", [np.sqrt(2) / 3, 2 / -4, 4 / -5]),
        ("sub(signed_log(grasp), log(synflow))", [np.log(3 / 2), -np.log(2 * 4), -np.log(16)]),
        ("sqrt(mul(synflow, synflow))", [2.0, 4.0, 16.0]),
    ],
)
def test_formulas_of_former_releases_keep_their_scores(text: str, scores: list[float]) -> None:
    of = {"synflow": [2.0, 4.0, 16.0], "jacov": [3.0, -4.0, -5.0], "grasp": [2.0, -1.0, 0.0]}
    values = Values(columns={name: np.array(column) for name, column in of.items()})
    assert np.allclose(values.scores([parse(text)])[0], scores)
    assert parse(str(parse(text))) == parse(text)
