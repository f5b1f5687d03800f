"""Pruning follows the declared properties, and it is safe: nothing of its own is lost."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from primitives import (
    UNARIES,
    Apply,
    Combine,
    Expression,
    Formula,
    Rejected,
    UnknownPrimitiveError,
    branch,
    parse,
    score,
    whole,
)
from primitives.enumeration import statistic_pairs
from primitives.expressions import chain_of, drop_dead
from primitives.naive import evaluate
from primitives.pruning import DEFAULT_RULES, RULES, check, check_expression, without
from primitives.space_size import measure
from primitives.statistics import STATISTICS

CALLABLE = [name for name in UNARIES if name != "disconnect"]


def rule_of(text: str, rules: Any = DEFAULT_RULES) -> str | None:
    found = check(parse(text), rules)
    return found.rule if found else None


# Table 6 of LPZero, row by row. Rows without an entry relate a primitive to a word outside the
# language (sigmoid and the logistic function, min-max and normalisation, deviation and variance):
# there is no second primitive to prune.
TABLE_6 = [
    ("log, exp: inverse", "sum(log(exp(W)))", "inverse-pair"),
    ("log, exp: inverse", "sum(exp(log(sigmoid(W))))", "inverse-pair"),
    ("log, exp: inverse", "sum(l1(exp(log(S))))", "inverse-pair"),
    ("abs, abs(log): derivative", "sum(abs(log(square(W))))", "equivalent"),
    ("abs, abs(log): derivative", "sum(abs(abslog(W)))", "no-effect"),
    ("square, sqrt: inverse", "sum(sqrt(square(W)))", "inverse-pair"),
    ("square, sqrt: inverse", "sum(square(sqrt(W)))", "inverse-pair"),
    ("ReLU, identity: special case", "sum(relu(exp(W)))", "no-effect"),
    ("inverse, identity: inverse", "sum(inverse(inverse(W)))", "inverse-pair"),
    ("norm_sum, average: equivalent", "sum(norm_sum(W))", "equivalent"),
    ("softmax, log_softmax: derivative", "sum(log(softmax(W)))", "equivalent"),
    ("L1-norm, abs: generalization", "sum(l1(abs(W)))", "absorbed"),
    ("L1-norm, abs: generalization", "sum(l1(mean(W)))", "degenerate-scalar"),
    ("F-norm, Euclidean norm: equivalent", "sum(fro(mean(W)))", "degenerate-scalar"),
    ("negation, log: conflict", "sum(log(neg(square(W))))", "conflict"),
    ("negation, sqrt: conflict", "sum(sqrt(neg(exp(W))))", "conflict"),
    ("identity (if zero), inverse: conflict", "sum(inverse(relu(W)))", "inverse-of-zeros"),
    ("negation (for positive), sqrt: conflict", "sum(sqrt(neg(S)))", "conflict"),
]


@pytest.mark.parametrize(("row", "text", "rule"), TABLE_6)
def test_every_row_of_table_6_follows(row: str, text: str, rule: str) -> None:
    assert rule_of(text) == rule


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("sum(neg(neg(W)))", "inverse-pair"),
        *[
            (f"sum(abs({f}(W)))", "no-effect")
            for f in ("abs", "square", "exp", "softmax", "sigmoid", "relu")
        ],
        ("sum(relu(neg(square(W))))", "conflict"),
        ("sum(log(relu(W)))", "absorbed"),
        ("sum(inverse(log(W)))", "inverse-of-zeros"),
        ("sum(inverse(minmax(W)))", "inverse-of-zeros"),
        *[
            (f"sum({f}(fro(W)))", "degenerate-scalar")
            for f in ("softmax", "zscore", "minmax", "std", "mean")
        ],
        ("sum(mean(softmax(W)))", "constant"),
        ("sum(l1(softmax(W)))", "constant"),
        ("sum(softmax(W))", "constant"),
        ("sum(mul(zscore(W), A))", "constant"),
        ("sum(mul(zscore(W), fro(G)))", "constant"),
        ("sum(relu(log(S)))", "conflict"),
        ("sum(add(disconnect(W), disconnect(A)))", "both-disconnected"),
        ("sum(add(W, abs(square(A))))", "no-effect"),
        ("sum(exp(add(W, abs(square(A)))))", "no-effect"),
        ("sum(sub(exp(W), exp(identity(W))))", "cancels"),
        ("sum(add(square(inverse(H)), log_softmax(fro(A))))", "degenerate-scalar"),
    ],
)
def test_a_redundant_formula_is_pruned_by_the_rule_that_says_why(text: str, rule: str) -> None:
    assert rule_of(text) == rule


@pytest.mark.parametrize(
    "text",
    [
        "-mean(add(square(W), square(softmax(G))))",
        "sum(square(inverse(H)))",
        "sum(mul(zscore(W), zscore(G)))",
        "sum(square(sub(W, mean(W))))",
        "sum(exp(log(W)))",
        "sum(l1(relu(W)))",
        "sum(inverse(sqrt(S)))",
        "sum(add(W, disconnect(A)))",
        "sum(neg(W))",
        "sum(abs(log(W)))",
    ],
)
def test_a_formula_with_something_to_say_is_kept(text: str) -> None:
    assert rule_of(text) is None


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.name)
def test_every_rule_rejects_its_example(rule: Any) -> None:
    assert rule_of(rule.example, set(RULES)) == rule.name
    assert rule_of(rule.example, set(RULES) - {rule.name}) != rule.name


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES.values() if rule.kept is not None], ids=lambda rule: rule.name
)
def test_every_rule_keeps_what_stands_for_its_example(rule: Any) -> None:
    assert rule_of(rule.kept) is None


def test_a_rule_can_be_turned_off() -> None:
    assert rule_of("sum(abs(exp(W)))", without("no-effect")) is None


def test_an_unknown_rule_is_refused_with_a_hint() -> None:
    with pytest.raises(UnknownPrimitiveError, match="did you mean 'no-effect'"):
        without("no-efect")


# --- Safety -------------------------------------------------------------------------------------


def _architectures(make_architecture: Any) -> list[Any]:
    """Alike in depth and shape, so that what only counts is constant; within the guards."""
    return [make_architecture(seed, scale=0.3 + 0.25 * seed) for seed in range(7)]


def _outputs(expression: Expression, architectures: list[Any]) -> NDArray[np.float64]:
    """The branch's result on every tensor of every architecture, one after another."""
    parts = []
    for blocks in architectures:
        for block in blocks:
            values = evaluate(expression, block)
            parts.append(np.concatenate([np.broadcast_to(v.values, (4, 6)) for v in values]))
    return np.stack(parts)


def _digest(values: NDArray[np.float64]) -> bytes:
    """Equal for arrays that agree to 7 digits, up to sign."""
    flat = values.reshape(-1)
    first = flat[np.argmax(np.abs(flat) > 1e-9)]
    rounded = np.round(flat * np.sign(first) / np.abs(flat).max(), 7) + 0.0
    return rounded.tobytes() + str(np.round(np.log(np.abs(flat).max()), 6)).encode()


def _represent_chains(
    statistic: str, architectures: list[Any]
) -> tuple[dict[Expression, Expression | None], list[str]]:
    """Each pruned chain of up to two -> a kept chain of the same output up to sign.

    None: the output is the same constant for all. The second result lists chains with neither.
    """
    kept: dict[bytes, Expression] = {}
    pruned: dict[Expression, str] = {}
    for chain in product(CALLABLE, repeat=2):
        expression = drop_dead(branch(statistic, *chain))
        assert expression is not None
        found = check_expression(expression)
        if found is None:
            kept[_digest(_outputs(expression, architectures))] = expression
        else:
            pruned[expression] = found.rule
    table: dict[Expression, Expression | None] = {}
    lost = []
    for expression, rule in pruned.items():
        values = _outputs(expression, architectures)
        if np.ptp(values) <= 1e-9 or rule == "constant":
            assert np.ptp(values.mean(axis=(1, 2))) <= 1e-9
            table[expression] = None
        elif (stand_in := kept.get(_digest(values))) is not None:
            table[expression] = stand_in
        elif rule != "inverse-of-zeros":
            lost.append(f"{expression} ({rule})")
    return table, lost


@pytest.mark.slow
@pytest.mark.parametrize("statistic", ["W", "S"])
def test_every_pruned_chain_is_constant_or_equals_a_kept_one(
    statistic: str, make_architecture: Any
) -> None:
    table, lost = _represent_chains(statistic, _architectures(make_architecture))
    assert lost == []
    assert len(table) > 120


def _affine(vector: list[float | Rejected]) -> tuple[float, ...] | None:
    """The score vector with shift, scale and sign taken out; None if constant or not finite."""
    if any(isinstance(v, Rejected) for v in vector):
        return None
    values = np.array(vector, dtype=float)
    spread = np.ptp(values)
    if spread <= 1e-9 * max(1.0, float(np.abs(values).max())):
        return None
    centred = (values - values.mean()) / spread
    return tuple(np.round(centred * np.sign(centred[np.argmax(np.abs(centred))]), 5) + 0.0)


@pytest.mark.slow
def test_every_pruned_formula_with_chains_of_one_is_represented(make_architecture: Any) -> None:
    """All 26,460 formulas, on their scores alone: no knowledge of the rules goes in."""
    architectures = [make_architecture(seed, 1, 1, scale=0.3 + 0.3 * seed) for seed in range(5)]
    kept: set[tuple[float, ...] | None] = {None}
    pruned: list[tuple[Formula, tuple[float, ...] | None]] = []
    branches = {
        (s, f): _outputs_one(s, f, architectures) for s in STATISTICS for f in [*CALLABLE, ""]
    }
    for left, right in statistic_pairs():
        aligned = {left, right} == {"W", "G"}
        for f, g in product(UNARIES, repeat=2):
            for operation in ("add", "sub", "mul", "matmul"):
                formula = Formula.of(operation, (left, [f]), (right, [g]))
                vector = _affine(_quick(branches, formula, aligned, architectures))
                if check(formula) is None:
                    kept.add(vector)
                else:
                    pruned.append((formula, vector))
    lost = [str(formula) for formula, vector in pruned if vector not in kept]
    assert lost == []
    assert len(pruned) == 26_460 - measure(1).kept


def _outputs_one(statistic: str, operation: str, architectures: list[Any]) -> list[Any]:
    chain = [operation] if operation else []
    return [evaluate(branch(statistic, *chain), blocks[0])[0] for blocks in architectures]


def _quick(branches: Any, formula: Formula, aligned: bool, architectures: list[Any]) -> list[Any]:
    """Scores from ready-made branches where means suffice, from the evaluator otherwise."""
    assert isinstance(formula.term.expression, Combine)
    first, second = formula.term.expression.left, formula.term.expression.right
    assert isinstance(first, Apply)
    assert isinstance(second, Apply)
    if aligned or "disconnect" in (first.operation, second.operation):
        return [score(formula, blocks) for blocks in architectures]
    sides = []
    for side in (first, second):
        found = chain_of(side)
        assert found is not None
        sides.append([float(m.values.mean()) for m in branches[found[0], found[1][0]]])
    combine = {"add": np.add, "sub": np.subtract}.get(
        formula.term.expression.operation, np.multiply
    )
    return [float(v) for v in combine(*map(np.array, sides))]


@pytest.mark.slow
def test_a_sample_of_pruned_formulas_with_chains_of_two_is_represented(
    make_architecture: Any,
) -> None:
    architectures = _architectures(make_architecture)[:5]
    tables = {s: _represent_chains(s, architectures)[0] for s in STATISTICS}
    rng = random.Random(11)
    checked = compared = 0
    while checked < 200:
        operation = rng.choice(["add", "sub", "mul", "matmul"])
        left, right = ((rng.choice(list(STATISTICS)), rng.choices(CALLABLE, k=2)) for _ in range(2))
        formula = Formula.of(operation, left, right, rng.choice(["sum", "mean"]))
        found = check(formula)
        if found is None or "inverse-of-zeros" in (found.rule, *_rules_of(formula)):
            continue
        checked += 1
        vector = _affine([score(formula, blocks) for blocks in architectures])
        if vector is None:
            continue
        compared += 1
        options = _stand_ins(formula, tables)
        assert any(
            check(option) is None
            and _affine([score(option, blocks) for blocks in architectures]) == vector
            for option in options
        ), f"{formula} is pruned by {found.rule} but none of {[str(o) for o in options]} is it"
    assert compared > 60


def _rules_of(formula: Formula) -> list[str]:
    assert isinstance(formula.term.expression, Combine)
    sides = (drop_dead(formula.term.expression.left), drop_dead(formula.term.expression.right))
    found = [check_expression(side) for side in sides if side is not None]
    return [f.rule for f in found if f is not None]


def _with(formula: Formula, expression: Expression) -> Formula:
    return Formula.of_term(formula.term.reduction, expression, formula.sign)


def _stand_ins(formula: Formula, tables: Any) -> list[Formula]:
    """What the formula becomes if pruned branches are replaced and empty ones dropped."""
    assert isinstance(formula.term.expression, Combine)
    sides: list[Expression | None] = []
    for side in (formula.term.expression.left, formula.term.expression.right):
        expression = drop_dead(side)
        assert expression is not None
        leaf = chain_of(expression)
        assert leaf is not None
        sides.append(tables[leaf[0]].get(expression, expression))
    alone = [_with(formula, side) for side in sides if side is not None]
    if None in sides:
        return alone
    left, right = sides
    operations = [formula.term.expression.operation]
    if operations[0] in ("add", "sub"):
        operations = ["add", "sub"]  # a stand-in may have the opposite sign
    both = [_with(formula, Combine(o, left, right)) for o in operations]  # type: ignore[arg-type]
    return [*both, *alone]


# --- What pruning does give up, said openly -------------------------------------------------------


def test_inverse_of_zeros_gives_up_a_count_in_units_of_the_guard(make_architecture: Any) -> None:
    for seed in range(5):
        values = make_architecture(seed, 1, 1)[0]["W"][0].values
        found = score(parse("sum(inverse(relu(W)))"), [{"W": [whole(values)]}])
        assert found == pytest.approx(1e9 * np.mean(values <= 0), rel=1e-6)


def test_a_constant_term_gives_up_a_count_of_blocks(make_architecture: Any) -> None:
    for n_blocks in (1, 2, 5):
        blocks = make_architecture(n_blocks, n_blocks)
        pruned = score(parse("sum(add(square(W), softmax(fro(A))))"), blocks)
        kept = score(parse("sum(square(W))"), blocks)
        assert isinstance(kept, float)
        assert pruned == pytest.approx(kept + n_blocks)


def test_a_constant_result_depends_on_shapes_only(make_architecture: Any) -> None:
    scores = {
        rows: {
            score(parse("sum(l1(softmax(W)))"), make_architecture(seed, rows=rows))
            for seed in range(3)
        }
        for rows in (3, 5)
    }
    for found in scores.values():
        assert max(found) - min(found) < 1e-9


def test_an_undone_exponential_gives_up_only_what_the_guard_clips() -> None:
    x = np.array([[-80.0, -3.0], [2.0, 60.0]])
    found = score(parse("sum(log(exp(W)))"), [{"W": [whole(x)]}])
    assert found == pytest.approx(np.clip(x, -50, 50).mean())


def test_a_rescaled_mean_ranks_differently_where_sizes_differ() -> None:
    """Why that rule is off by default: the sum sees the width, the mean does not."""
    narrow, wide = np.full((2, 2), 0.9), np.full((2, 8), 0.5)
    sums = [score(parse("sum(l1(relu(W)))"), [{"W": [whole(x)]}]) for x in (narrow, wide)]
    means = [score(parse("sum(mean(relu(W)))"), [{"W": [whole(x)]}]) for x in (narrow, wide)]
    assert sums[0] < sums[1]  # type: ignore[operator]
    assert means[0] > means[1]  # type: ignore[operator]


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("sum(abs(mul(W, G)))", None),
        ("sum(abs(mul(square(W), G)))", None),
        ("sum(abs(mul(square(W), exp(G))))", "no-effect"),
        ("sum(add(sub(W, W), A))", "zero-term"),
        ("sum(mul(mean(W), sub(G, G)))", "constant"),
    ],
)
def test_what_is_known_of_products_and_differences(text: str, rule: str | None) -> None:
    found = check(parse(text))
    assert (found and found.rule) == rule
