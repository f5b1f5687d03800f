"""The rows of a nano table from made-up trainings: targets and the noise ceiling."""

from __future__ import annotations

import json

import pytest
from scipy.stats import spearmanr

from spaces.training.recipes import TablePlan
from spaces.training.table_rows import noise, to_table
from spaces.training.trainer import Recipe

PLAN = TablePlan("nano-gpt2", "causal", Recipe(steps=1, learning_rate=1e-3), n_archs=6, n_seeds=2,
                 n_repeated=4, n_repeated_seeds=4)  # fmt: skip
RUNS = {
    (index, seed): {
        "index": index,
        "seed": seed,
        "target": float((37 * index * index + 101 * seed + 11 * index * seed) % 97),
        "seconds": 1.0,
        "steps": 1,
    }
    for index in range(PLAN.n_archs)
    for seed in PLAN.seeds_of(index)
}


def target(index: int, *seeds: int) -> float:
    return sum(RUNS[index, seed]["target"] for seed in seeds) / len(seeds)  # type: ignore[misc]


def test_a_target_is_the_mean_of_the_first_seeds_alone() -> None:
    rows = json.loads(to_table(PLAN, RUNS, {}))["rows"]
    assert [row["target"] for row in rows] == [target(index, 0, 1) for index in range(6)]
    assert [len(row["runs"]) for row in rows] == [4, 4, 4, 4, 2, 2]
    assert target(0, 0, 1) != target(0, 0, 1, 2, 3)


def test_the_ceiling_is_between_independent_trainings() -> None:
    found = noise(PLAN, RUNS)
    means = [[target(i, *seeds) for i in range(4)] for seeds in ((0, 1), (2, 3))]
    expected = spearmanr(*means).statistic
    assert abs(expected) < 1
    assert found["rho_between_targets"] == pytest.approx(expected, abs=1e-4)
    assert list(found["rho_between_seeds"]) == ["0-1", "0-2", "1-2", "0-3", "1-3", "2-3"]
    single = [[target(i, seed) for i in range(4)] for seed in (1, 3)]
    between = found["rho_between_seeds"]["1-3"]
    assert between == pytest.approx(spearmanr(*single).statistic, abs=1e-4)
