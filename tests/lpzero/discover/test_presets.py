"""Presets `paper` and `released`: Algorithm 1 to the letter, and the authors' code."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from lpzero.discover.candidate import Candidate, Verdict
from lpzero.discover.discovery import Campaign
from lpzero.discover.evolution import Evolution, State
from lpzero.discover.language import Language
from lpzero.discover.settings import PRESETS, Settings, preset
from lpzero.errors import InputError
from lpzero.export.source import RunRecords
from lpzero.judgement.correlation import spearman
from lpzero.runs.run import open_run
from primitives.errors import Rejected
from primitives.expressions import Combine, chain_of
from primitives.formula import Formula
from primitives.parser import parse
from spaces.errors import TableError
from spaces.tables.splits import split, whole_table_split
from tests.lpzero.discover.test_evolution import Oracle, evolve, tried
from tests.lpzero.small_campaign import sketches, table


class Signless(Oracle):
    """A judge that fits no sign."""

    def _judge(self, text: str) -> Verdict | Rejected:
        found = super()._judge(text)
        return found if isinstance(found, Rejected) else found._replace(sign=1)


def branches(formula: Formula) -> list[tuple[str, tuple[str, ...]]]:
    assert isinstance(formula.term.expression, Combine)
    found = chain_of(formula.term.expression.left), chain_of(formula.term.expression.right)
    return [one for one in found if one is not None]


@pytest.mark.parametrize("name", ["paper", "released"])
def test_every_formula_has_chains_of_two_and_a_mean_over_blocks(name: str) -> None:
    states = evolve(preset(name, population=10, generations=40), Signless())
    found = tried(states)
    assert {child.operator for child in found} >= {"random", "crossover", "mutation"}
    for child in found:
        assert child.formula.term.reduction == "mean"
        assert child.formula.sign == 1
        assert [len(chain) for _, chain in branches(child.formula)] == [2, 2]


def test_the_released_preset_pairs_a_statistic_with_itself_and_prunes_nothing() -> None:
    asked = PRESETS["released"]
    assert (asked.pool, asked.rules, asked.same_statistic) == (0.5, (), True)
    found = tried(evolve(preset("released", population=40, generations=1)))
    pairs = [[statistic for statistic, _ in branches(child.formula)] for child in found]
    assert any(a == b for a, b in pairs)
    assert all(child.rejected in (None, "constant-score") for child in found)


def test_binary_operations_are_drawn_with_the_released_weights() -> None:
    language, rng = Language(PRESETS["released"]), random.Random(0)
    counted = Counter(language.draw_binary(rng) for _ in range(4000))
    shares = {name: n / 4000 for name, n in counted.items()}
    assert shares == pytest.approx({"add": 0.6, "sub": 0.3, "matmul": 0.05, "mul": 0.05}, abs=0.03)


def test_the_offspring_replaces_the_worst_even_if_it_is_worse() -> None:
    asked = preset("released", population=10, generations=60)
    states = evolve(asked)
    worse = 0
    for before, after in pairwise(states):
        new = [child for child in after.tried if child.is_scored]
        if not new:
            continue
        ordered = sorted(before.population, key=lambda c: (-c.fitness[0], c.complexity, c.id))
        assert {c.id for c in after.population} == {c.id for c in ordered[:-1]} | {new[0].id}
        worse += new[0].fitness[0] < ordered[-1].fitness[0]
    assert worse


def test_opposite_signs_are_two_formulas_if_the_sign_is_not_fitted() -> None:
    written, fitted = (
        Language(preset("paper", sign=sign, chains="up-to")) for sign in ("as-written", "fitted")
    )
    one, other = (
        Formula.of_term("mean", Combine("sub", *pair))
        for pair in _swapped("mean(sub(square(W), square(A)))")
    )
    keys = [language.examine(f).key for language in (written, fitted) for f in (one, other)]  # type: ignore[union-attr]
    assert keys[0] != keys[1]
    assert keys[2] == keys[3]


def _swapped(text: str) -> list[tuple]:  # type: ignore[type-arg]
    expression = parse(text).term.expression
    assert isinstance(expression, Combine)
    return [(expression.left, expression.right), (expression.right, expression.left)]


def campaign(out: Path, name: str = "paper", **settings: object) -> Campaign:
    asked = {"population": 12, "generations": 12, "archs": 12, "permutations": 0, **settings}
    return Campaign(table(40), preset=name, out=out, sketches=[sketches(40)], **asked)


@pytest.mark.slow
def test_fitness_without_a_fitted_sign_is_the_signed_rho_and_resuming_keeps_it(
    tmp_path: Path,
) -> None:
    run = campaign(tmp_path / "a").run()
    rows = run.objective.tables_fitness[0]
    population = run.outcome_.state.population
    assert all(child.formula.sign == 1 for child in population)
    whole = [
        json.loads(line) for line in (tmp_path / "a" / "journal.jsonl").read_text().splitlines()
    ]
    scored = [Candidate.from_json(line) for line in whole if "fitness" in line]
    assert any(child.fitness[0] < 0 for child in scored)
    evolution = Evolution(run.settings, run.objective)
    for child in scored[:6]:
        scores = np.asarray(rows.values.score(child.formula))[rows.rows]
        rho = spearman(scores, rows.table.targets[rows.rows])
        assert child.fitness[0] == pytest.approx(rho, abs=1e-6)
        assert child.key is not None
        verdict = evolution.replayed([child])[child.key]
        assert (verdict.sign, verdict.fitness) == (1, child.fitness)  # type: ignore[union-attr]


def test_settings_from_before_these_options_mean_what_they_meant() -> None:
    stored = Settings().to_json()
    assert not {"sign", "reductions", "chains", "survivors", "whole_table"} & stored.keys()
    assert Settings.from_json(stored) == Settings()
    assert Settings.from_json(PRESETS["paper"].to_json()) == PRESETS["paper"]


@pytest.mark.slow
def test_rows_of_the_whole_table_are_train_and_the_rest_is_unseen(tmp_path: Path) -> None:
    run = campaign(tmp_path / "w", whole_table=True).run()
    fitness = run.objective.tables_fitness[0]
    test = fitness.parts.open_test()
    assert len(fitness.rows) == 12
    assert not set(fitness.rows) & set(test)
    assert np.isnan(fitness.table.targets[test]).all()
    usual = split(table(40), 0)
    assert set(fitness.rows) & (set(usual.valid) | set(usual.open_test()))
    assert run.result_["tables"][0]["n"]["test"] == len(test) == 20
    exported = RunRecords(open_run(tmp_path / "w")).chosen()  # type: ignore[arg-type]
    assert exported is not None
    assert [figures.split_seed for figures in exported.provenance.figures] == [None]


def test_a_split_of_the_whole_table_depends_on_its_seed_and_leaves_rows_to_test_on() -> None:
    one, other = (whole_table_split(table(40), seed, 12) for seed in (0, 1))
    parts = [*one.train, *one.valid, *one.open_test()]
    assert sorted(parts) == list(range(40))
    assert one.train.tolist() != other.train.tolist()
    with pytest.raises(TableError, match="left to test on"):
        whole_table_split(table(40), 0, 30)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"whole_table": True}, "--archs"),
        ({"sign": "as-written"}, "--terms 1"),
        ({"chains": "exact"}, "--terms 1"),
        ({"reductions": ("mean",)}, "--terms 1"),
    ],
)
def test_options_that_do_not_go_together_are_refused(changes: dict[str, object], told: str) -> None:
    with pytest.raises(InputError, match=told):
        preset("default", **changes)


def test_a_step_of_the_released_preset_without_a_score_keeps_the_population() -> None:
    evolution = Evolution(preset("released", population=10), Oracle())
    rng = random.Random(0)
    state = evolution.step(State(), rng)
    for _ in range(30):
        after = evolution.step(state, rng)
        assert len(after.population) == 10
        state = after
