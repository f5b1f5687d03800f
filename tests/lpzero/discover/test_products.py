"""Campaigns on products of terms: the space, its variation, the beam, the choice of the winner."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import spaces
from lpzero.discover import campaign as running
from lpzero.discover.discovery import Campaign
from lpzero.discover.language import Language
from lpzero.discover.report import choose_stable
from lpzero.discover.settings import preset
from lpzero.discover.variation import as_global_rng
from lpzero.judgement import counters
from lpzero.judgement.correlation import agreement
from lpzero.judgement.ranks import rank
from lpzero.runs import layout
from lpzero.scores.branch_table import branch_table, rows_of
from lpzero.scores.chains import bare_chains, surviving
from lpzero.scores.formula_rivals import best_count
from lpzero.scores.products import EXPONENTS
from lpzero.scores.values import Values
from lpzero.sketches.sketch import Sketch
from primitives.canonical import canonical
from primitives.errors import Rejected
from primitives.expressions import drop_dead
from primitives.parser import parse
from spaces.tables import split
from tests.lpzero import random_sketches
from tests.lpzero.discover.toolboxes import toolbox_of, variation_of
from tests.lpzero.small_campaign import discovery, sketches, table

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("_searched_whole")]

COMPARED = (layout.JOURNAL, layout.HALL, layout.HALL_CSV, layout.HISTORY, layout.CHECKPOINT,
            layout.CONFIG, layout.RESULT, layout.SCORES)  # fmt: skip
SMALL: dict[str, Any] = {"terms": 3, "population": 16, "offspring": 8, "generations": 3}
LANGUAGE = Language(preset("default", terms=3))
VARIATION = variation_of(LANGUAGE)
TOOLBOX = toolbox_of(LANGUAGE)


def products(out: Path | None = None, **options: Any) -> Campaign:
    return discovery(out, **(SMALL | {"choose": "stable"} | options))


def other_seed() -> list[Sketch]:
    """Sketches of the table's architectures with other numbers; a third of them the same."""
    made = table()
    return [
        random_sketches.sketch(i if i % 3 == 0 else i + 500, made.space.depth(arch))
        for i, arch in enumerate(made.archs)
    ]


def of_rows(make: Callable[[], Sequence[Sketch]], rows: Sequence[int]) -> list[Sketch]:
    made = make()
    return [made[row] for row in rows]


@pytest.fixture
def repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Campaigns have sketches of a second seed."""
    sources = [partial(of_rows, make) for make in (sketches, other_seed)]
    monkeypatch.setattr(Campaign, "_sketch_sources", lambda self, index, on: sources)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Campaign]:
    """A campaign that nothing disturbed."""
    out = tmp_path_factory.mktemp("products") / "campaign"
    return out, products(out).run()


def assert_equal(out: Path, whole: Path) -> None:
    for name in COMPARED:
        assert (out / name).read_bytes() == (whole / name).read_bytes(), name


@given(st.integers(0, 10**9), st.integers(2, 4), st.integers(0, 2), st.integers(0, 2))
@settings(max_examples=30)
def test_draws_are_live_and_inside(seed: int, terms: int, unaries: int, depth: int) -> None:
    asked = preset("default", terms=terms, unaries=unaries, depth=depth, same_statistic=True)
    language = Language(asked)
    rng = random.Random(seed)
    drawn = (language.draw(rng) for _ in range(8))
    for formula in [formula for formula in drawn if language.why_outside(formula) is None]:
        assert formula.sign == 1
        assert 1 <= len(formula.terms) <= terms
        assert all(drop_dead(term.expression) is not None for term in formula.terms)
        assert parse(str(formula)) == formula


@given(st.integers(0, 10**9))
@settings(max_examples=30)
def test_variation_stays_inside_and_changes_something(seed: int) -> None:
    rng = random.Random(seed)
    first, second = inside(rng), inside(rng)
    with as_global_rng(rng):
        children = [TOOLBOX.mate(first, second), TOOLBOX.mutate(first)]
    for child in children:
        assert LANGUAGE.why_outside(child) is None
        assert child.sign == 1
        assert parse(str(child)) == child
    assert children[1] != first


@given(st.integers(0, 10**9))
@settings(max_examples=30)
def test_a_mutation_changes_one_factor(seed: int) -> None:
    rng = random.Random(seed)
    parent = inside(rng)
    with as_global_rng(rng):
        child = TOOLBOX.mutate(parent)
    assert n_changed(parent, child) <= 2


@given(st.integers(0, 10**9))
@settings(max_examples=15, deadline=None)
def test_neighbours_change_one_factor(seed: int) -> None:
    parent = inside(random.Random(seed))
    found = list(VARIATION.neighbours(parent))
    assert found
    for child in found:
        assert LANGUAGE.why_outside(child) is None
        assert n_changed(parent, child) <= 2


def test_neighbours_vary_exponent_reduction_chain_and_number_of_factors() -> None:
    start = parse("mul(sum(square(W)), sqrt(inner(params)))")
    found = {str(canonical(formula)) for formula in VARIATION.neighbours(start)}
    for text in (
        "mul(sum(square(W)), inner(params))",
        "mul(mean(square(W)), sqrt(inner(params)))",
        "mul(abs(sum(W)), sqrt(inner(params)))",
        "mul(sum(square(A)), sqrt(inner(params)))",
        "mul(sum(square(W)), sqrt(inner(heads)))",
        "sum(square(W))",
    ):
        assert str(canonical(parse(text))) in found, text


def inside(rng: random.Random) -> Any:
    """A random product of the space with exponents that a mutation may choose."""
    while True:
        formula = LANGUAGE.draw(rng)
        exponents = [exponent for _, exponent in LANGUAGE.factors_of(formula)]
        is_pruned = isinstance(LANGUAGE.examine(formula), Rejected)
        if LANGUAGE.why_outside(formula) is not None or is_pruned:
            continue
        if set(exponents) <= set(EXPONENTS):
            return formula


def n_changed(parent: Any, child: Any) -> int:
    """How many terms have another exponent: a factor in the place of another changes two."""
    before, after = (dict(LANGUAGE.factors_of(formula)) for formula in (parent, child))
    shared = before.keys() & after.keys()
    # A common factor of all exponents does not change the ranking.
    scales = {after[term] / before[term] for term in shared} | {1}
    return min(
        sum(before.get(t, 0) * scale != after.get(t, 0) for t in before.keys() | after.keys())
        for scale in scales
    )


def test_the_first_population_has_the_beams_best_and_nothing_falls_below_it(
    whole: tuple[Path, Campaign],
) -> None:
    _, found = whole
    (fitness,) = found.objective.tables_fitness
    beam = fitness.products
    assert beam[0].value == max(one.value for one in beam)
    best = beam[0].factors.formula(fitness.terms)
    first = [c for c in found.outcome_.hall.entries if c.operator == "beam"]
    assert str(canonical(best)).lstrip("-") in {str(c.key) for c in first}
    fitnesses = [row["fitness"] for row in found.history_]
    assert fitnesses == sorted(fitnesses)
    assert fitnesses[0] >= beam[0].value - 1e-9
    assert max(c.fitness[0] for c in found.outcome_.state.population) == fitnesses[-1]


def test_no_two_formulas_kept_have_one_canonical_form(whole: tuple[Path, Campaign]) -> None:
    outcome = whole[1].outcome_
    for kept in (outcome.hall.entries, outcome.state.population):
        keys = [str(canonical(c.formula)).lstrip("-") for c in kept]
        assert len(keys) == len(set(keys))
    assert any(len(c.formula.terms) > 1 for c in outcome.hall.entries)


def test_equal_seeds_give_equal_directories(tmp_path: Path, whole: tuple[Path, Campaign]) -> None:
    products(tmp_path / "again", jobs=2).run()
    assert_equal(tmp_path / "again", whole[0])


class Killed(BaseException):
    """Stands for kill -9."""


@pytest.mark.parametrize("saves", [True, False], ids=["after a checkpoint", "before one"])
def test_a_killed_campaign_resumes_to_the_same_bytes(
    tmp_path: Path,
    whole: tuple[Path, Campaign],
    monkeypatch: pytest.MonkeyPatch,
    saves: bool,
) -> None:
    def kill(progress: running.Progress) -> None:
        if progress.generation == 1:
            raise Killed

    monkeypatch.setattr(running, "_SAVE_SECONDS", -1.0 if saves else 1e9)
    with pytest.raises(Killed):
        products(tmp_path / "c", callbacks=[kill]).run()
    products(tmp_path / "c", resume=True).run()
    assert_equal(tmp_path / "c", whole[0])


@pytest.mark.usefixtures("repeated")
def test_a_killed_nested_campaign_resumes_to_the_same_bytes_with_more_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def kill(progress: running.Progress) -> None:
        if progress.generation == 1:
            raise Killed

    given = {"choose": "nested", "permutations": 3}
    whole = products(tmp_path / "whole", **given).run()
    assert whole.result_["chosen_on"] == "nested"
    monkeypatch.setattr(running, "_SAVE_SECONDS", 1e9)
    with pytest.raises(Killed):
        products(tmp_path / "killed", callbacks=[kill], **given).run()
    products(tmp_path / "killed", resume=True, jobs=2, **given).run()
    assert_equal(tmp_path / "killed", tmp_path / "whole")


@pytest.mark.usefixtures("repeated")
@pytest.mark.parametrize("threshold", [0.1, 1.0])
def test_the_winner_is_the_best_known_among_those_that_repeat(threshold: float) -> None:
    found = products(stable=threshold).run()
    (fitness,) = found.objective.tables_fitness
    pool = {*found.outcome_.hall.entries, *found.outcome_.state.population}
    chosen = choose_stable(found.objective, pool)
    text = {c.id: str(found.objective.canonical(c.formula)) for c in pool}
    measured = {c.id: repeats(text[c.id]) for c in pool}
    least = min(threshold, max(measured.values()))
    # Correlations of 1 differ in their last digit here and there.
    stable = {i for i, value in measured.items() if value >= least - 1e-12}
    assert {c.id for c in chosen} == stable
    rhos = [train_valid_rho(found, text[c.id]) for c in chosen]
    assert rhos == sorted(rhos, reverse=True)
    result = found.result_
    assert result["best"]["formula"] == text[chosen[0].id]
    assert result["stability"]["least"] == pytest.approx(measured[chosen[0].id])
    if len(chosen) < 2:
        assert result["ensemble"] is None
    else:
        members = [text[c.id] for c in chosen[:20]]
        assert result["ensemble"]["members"] == members
        assert set(result["ensemble"]["judged"][fitness.table.name]) >= {"train", "test"}


def test_without_a_second_seed_stability_is_not_known(whole: tuple[Path, Campaign]) -> None:
    result = whole[1].result_
    assert result["stability"] is None
    assert result["chosen_on"] == "stable"
    assert result["verdict"].startswith("It ")
    assert result["best"]["formula"] == result["ensemble"]["members"][0]


@lru_cache(maxsize=2)
def evaluator(make: Callable[[], Sequence[Sketch]]) -> Values:
    return Values(branch_table(make(), bare_chains()), counters.factors(table()))


def score(text: str, make: Callable[[], Sequence[Sketch]]) -> Any:
    scores = evaluator(make).score(parse(text))
    assert not isinstance(scores, Rejected)
    return scores


def repeats(text: str) -> float:
    first, second = (rank(score(text, made)) for made in (sketches, other_seed))
    return float(np.corrcoef(first, second)[0, 1])


def train_valid_rho(found: Campaign, text: str) -> float:
    rows = found.objective.tables_fitness[0].train_valid_rows
    pair = rank(score(text, sketches)[rows]), rank(table().targets[rows])
    return round(float(np.corrcoef(*pair)[0, 1]), 9)


GOOD = np.arange(8.0) ** 2


def test_scores_that_are_constant_or_not_finite_do_not_repeat() -> None:
    scores = np.stack([GOOD, np.ones(8), np.where(GOOD > 40, np.nan, GOOD)])
    assert agreement(scores, scores).tolist() == pytest.approx([1.0, 0.0, 0.0])


def test_rows_of_a_branch_table_are_the_table_of_those_rows() -> None:
    chains = surviving(1)
    made = sketches()
    depths = np.array([one.n_blocks for one in made])
    shallow = np.flatnonzero(depths < depths.max())[:9]
    part = rows_of(branch_table(made, chains), shallow)
    alone = branch_table(made, chains, [int(row) for row in shallow])
    assert part.has_block.shape == part.sizes["heads"].shape
    for name in ("counts", "means", "products", "ends", "sizes", "end_sizes"):
        mine, theirs = getattr(part, name), getattr(alone, name)
        assert mine.keys() == theirs.keys()
        for key in mine:
            assert np.array_equal(mine[key], theirs[key], equal_nan=True), (name, key)


def test_the_best_count_needs_no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    made = table()

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a network is built")

    monkeypatch.setattr(type(spaces.get("nano-gpt2")), "build", refuse)
    parts = split(made, 0)
    known = np.sort(np.concatenate([parts.train, parts.valid]))
    found = best_count(made, parts.train, known)
    formula = parse(str(found.formula))
    assert str(formula) == str(found.formula)
    stated = [
        {"blocks": made.space.block_sizes(arch), "ends": made.space.end_sizes(arch)}
        for arch in made.archs
    ]
    with_sizes = [
        Sketch({**one.header, "sizes": sizes}, one.numbers)
        for one, sizes in zip(sketches(), stated, strict=True)
    ]
    branches = branch_table(with_sizes, bare_chains())
    scores = Values(branches, counters.factors(made)).score(formula)
    assert not isinstance(scores, Rejected)
    assert np.array_equal(
        rank(np.round(np.log(np.abs(scores)), 9) * np.sign(scores)), rank(np.round(found.scores, 9))
    )
    rho = np.corrcoef(rank(found.scores[known]), rank(made.targets[known]))[0, 1]
    assert rho > 0
