"""Which rows a campaign's measures are taken on."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import pytest

from lpzero.discover.settings import preset
from lpzero.discover.table_fitness import REPEATED_ROWS, TableFitness, fitness_rows
from lpzero.judgement.correlation import spearman
from lpzero.judgement.measures import RHO, RHO_WITHIN
from lpzero.scores.branch_table import branch_table
from lpzero.scores.chains import surviving
from lpzero.scores.values import Values
from lpzero.sketches.sketch import Sketch
from primitives.parser import parse
from spaces.tables import split
from tests.lpzero.small_campaign import sketches, table

FORMULA = parse("sum(add(exp(W), A))")


def of_rows(rows: Sequence[int]) -> list[Sketch]:
    made = sketches()
    return [made[row] for row in rows]


@pytest.fixture(scope="module")
def fitness() -> TableFitness:
    settings = preset("default", unaries=1, terms=1, choose="valid")
    return TableFitness(table(), split(table(), 0), of_rows, settings)


@cache
def scored() -> np.ndarray:
    """The scores of the formula on all rows."""
    scores = Values(branch_table(sketches(), surviving(1))).score(FORMULA)
    assert isinstance(scores, np.ndarray)
    return scores


def rho(rows: np.ndarray) -> float:
    """Rho of the formula on these rows, scored on all."""
    scores = scored()
    return spearman(scores[rows], table().targets[rows])


@pytest.mark.slow
def test_fitness_is_of_train_rows_and_valid_of_valid_rows(fitness: TableFitness) -> None:
    parts = split(table(), 0)
    [found] = fitness.measure([FORMULA])
    assert found[0] == pytest.approx(rho(parts.train), abs=1e-12)  # type: ignore[index]
    assert fitness.on_valid(FORMULA, RHO) == pytest.approx(rho(parts.valid), abs=1e-12)
    assert abs(rho(parts.train) - rho(parts.valid)) > 0.01, "the two can be told apart"


def test_valid_rows_without_groups_give_rho_instead(fitness: TableFitness) -> None:
    assert fitness._valid_measures.n_within == 0
    assert fitness.on_valid(FORMULA, RHO_WITHIN) == fitness.on_valid(FORMULA, RHO) != 0


def test_formulas_are_chosen_on_train_and_valid_rows(fitness: TableFitness) -> None:
    parts = split(table(), 0)
    known = sorted([*parts.train.tolist(), *parts.valid.tolist()])
    assert fitness.train_valid_rows.tolist() == known
    scores = np.stack([table().targets, -table().targets])
    # The test targets of a campaign are hidden, so they cannot have taken part.
    assert fitness.train_valid_rho(scores).tolist() == [1.0, -1.0]


def test_fewer_rows_are_a_sample_of_the_training_rows() -> None:
    parts = split(table(), 0)
    few = fitness_rows(table(), parts, preset("default", archs=12))
    assert len(few) == len(set(few.tolist())) == 12
    assert set(few.tolist()) < set(parts.train.tolist())
    assert few.tolist() == sorted(few.tolist())
    assert few.tolist() != parts.train[:12].tolist(), "not the first ones"
    other = split(table(), 1)
    assert fitness_rows(table(), other, preset("default", archs=12)).tolist() != few.tolist()


@pytest.mark.slow
def test_the_sketches_of_the_second_seed_are_looked_up_once() -> None:
    calls = []

    def second_seed(rows: Sequence[int]) -> list[Sketch]:
        calls.append(1)
        return of_rows(rows)

    settings = preset("default", unaries=1, terms=2, choose="stable")
    fitness = TableFitness(table(), split(table(), 0), of_rows, settings, other_seeds=[second_seed])
    assert fitness.two_seeds == (fitness.values, fitness.second_seed)
    assert fitness.second_seed is not None
    assert len(calls) == 1


@pytest.mark.slow
def test_few_rows_of_a_second_seed_tell_how_far_values_repeat() -> None:
    asked: list[list[int]] = []

    def second_seed(rows: Sequence[int]) -> list[Sketch]:
        asked.append(list(rows))
        return of_rows(rows)

    given = {"unaries": 1, "terms": 2}
    for n_seeds in (1, 2):
        settings = preset("default", weights_seeds=n_seeds, **given)
        fitness = TableFitness(
            table(), split(table(), n_seeds), of_rows, settings, other_seeds=[second_seed]
        )
        assert len(fitness.levels) > 0
        assert len(fitness.seeds) == n_seeds
        first, second = fitness.repeated_scores([FORMULA])
        assert np.array_equal(first, second)
    few, every = asked
    assert len(few) == min(REPEATED_ROWS, len(table()))
    assert few == sorted(set(few))
    assert every == list(range(len(table())))
