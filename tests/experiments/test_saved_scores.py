"""Saved scores of other people on sets of rows: which sets, and the order of the scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments.lpzero.table4_saved import random_sets, row_sets, saved_scores
from spaces.errors import TableError

IDS = [f"config_{i}_j{j}" for i in (0, 10, 1, 2, *range(3, 10), *range(11, 20)) for j in range(10)]
TARGETS = np.random.default_rng(0).normal(size=len(IDS))


def test_a_set_of_rows_is_there_once_and_has_no_row_twice() -> None:
    sets = [sorted(rows.tolist()) for rows in row_sets(IDS, TARGETS).values()]
    assert len({tuple(rows) for rows in sets}) == len(sets) > 50
    assert all(len(set(rows)) == len(rows) >= 20 for rows in sets)
    assert sets[0] == list(range(200))


def test_numbers_order_rows_otherwise_than_the_table_does() -> None:
    sets = row_sets(IDS, TARGETS)
    assert [IDS[row] for row in sets["first 20, order of table"]][10] == "config_10_j0"
    assert [IDS[row] for row in sets["first 20, order of numbers"]][10] == "config_1_j0"


def test_scores_are_in_the_order_of_the_table(tmp_path: Path) -> None:
    path = tmp_path / "grasp_scores_seed_1111.yaml"
    path.write_text("config_0_j1: 2.5\nconfig_0_j0: -1.0\n")
    assert saved_scores(path, ["config_0_j0", "config_0_j1"]).tolist() == [-1.0, 2.5]
    with pytest.raises(TableError, match="config_0_j2 is missing"):
        saved_scores(path, ["config_0_j2"])


def test_scores_that_rank_as_the_targets_do_so_on_every_random_set() -> None:
    rows = random_sets({"same": TARGETS, "reversed": -TARGETS}, TARGETS, 5)
    assert [row["n"] for row in rows] == [20, 25, 30, 40, 50, 60, 80, 100]
    assert all(row["same"] == pytest.approx((1, 1, 1)) for row in rows)
    assert all(row["reversed"] == pytest.approx((-1, -1, -1)) for row in rows)
