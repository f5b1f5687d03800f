"""Splits depend on content and seed alone, respect depth, and keep the test part closed."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import spaces
from spaces.base import Space
from spaces.errors import TableError
from spaces.tables import split
from spaces.tables.table import Table, make_table


def a_table(n: int, repeats: int = 1, space: Space[Any] = spaces.NANO_FLEXIBERT) -> Table:
    rng = random.Random(1)
    archs = [space.sample(rng) for _ in range(n)] * repeats
    rows = [(str(i), arch, float(i)) for i, arch in enumerate(archs)]
    return make_table("made-up", space, rows, "t", "none")


@pytest.mark.parametrize(
    ("n", "sizes"), [(10, (5, 2, 3)), (96, (48, 19, 29)), (500, (250, 100, 150))]
)
@pytest.mark.parametrize("seed", [0, 1, 99])
def test_the_parts_cover_the_table_in_their_shares(
    n: int, sizes: tuple[int, int, int], seed: int
) -> None:
    drawn = split(a_table(n), seed)
    parts = (drawn.train, drawn.valid, drawn.open_test())
    assert tuple(map(len, parts)) == sizes
    assert sorted(np.concatenate(parts).tolist()) == list(range(n))


def test_every_depth_is_divided_alike() -> None:
    table = a_table(300)
    drawn = split(table, 3)
    depths = table.groups("depth")
    parts = {0.5: drawn.train, 0.2: drawn.valid, 0.3: drawn.open_test()}
    for share, rows in parts.items():
        inside, everywhere = np.bincount(depths[rows]), np.bincount(depths)
        assert np.abs(inside - share * everywhere).max() <= 2


def test_equal_architectures_stay_together() -> None:
    table = a_table(60, repeats=3)
    drawn = split(table, 0)
    parts = [
        {table.archs[i] for i in rows} for rows in (drawn.train, drawn.valid, drawn.open_test())
    ]
    assert sum(map(len, parts)) == len(set(table.archs))


def test_the_seed_and_the_content_decide() -> None:
    table = a_table(50)
    assert split(table, 5).train.tolist() == split(a_table(50), 5).train.tolist()
    assert split(table, 5).train.tolist() != split(table, 6).train.tolist()


def test_the_draw_is_pinned_for_ever() -> None:
    # A change here changes every reported result.
    assert split(a_table(20, space=spaces.FLEXIBERT), 0).valid.tolist() == [4, 6, 14, 16]


OTHER_PROCESS = """
import random, spaces
from spaces.tables import split
from spaces.tables.table import make_table
space, rng = spaces.NANO_FLEXIBERT, random.Random(1)
rows = [(str(i), space.sample(rng), float(i)) for i in range(50)]
print(split(make_table("made-up", space, rows, "t", "none"), 5).train.tolist())
"""


@pytest.mark.slow
def test_another_process_draws_the_same() -> None:
    command = [sys.executable, "-c", OTHER_PROCESS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(split(a_table(50), 5).train.tolist())


def test_too_small_a_table_is_an_error() -> None:
    with pytest.raises(TableError, match="made-up has 9 rows, a split needs at least 10"):
        split(a_table(9), 0)


def test_the_test_part_stays_closed_until_opened() -> None:
    table = a_table(50)
    drawn = split(table, 0)
    hidden = drawn.hide_test(table)
    assert not drawn.is_open
    rows = drawn.open_test()
    assert len(rows) == 15
    assert drawn.is_open
    assert np.flatnonzero(np.isnan(hidden.targets)).tolist() == rows.tolist()
    assert np.isfinite(hidden.targets[np.concatenate([drawn.train, drawn.valid])]).all()


def test_rows_cannot_be_overwritten() -> None:
    with pytest.raises(ValueError, match="read-only"):
        split(a_table(10), 0).train[0] = 1
