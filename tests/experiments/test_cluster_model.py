"""The model of work on many workers: hand-worked numbers, and what limits it."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from experiments.benchmarks.cluster_model import BANDWIDTH, EMPTY_WORK, Timed, extrapolated, models

# 100 items of 2 seconds, 3 seconds before them; an item costs the driver 10 ms and the scheduler 5.
EMPTY = Timed(EMPTY_WORK, 1, 500, 9.0, 5.0, 2.5, 1.0, 1.0, 10, 500)
ONE = Timed("work", 1, 100, 210.0, 4.0, 0.7, 200.0, 200.0, 50_000_000, 20_000)
TWO = replace(ONE, workers=2, wall=110.0, busiest=101.0)


def test_every_part_is_as_worked_by_hand() -> None:
    [model] = models([EMPTY, ONE, TWO])
    assert (model.serial, model.item) == (pytest.approx(3.0), pytest.approx(2.0))
    assert model.per_item == pytest.approx(0.015)
    assert model.seconds(1) == pytest.approx(3 + 2 * 0.05 + 200)
    assert model.seconds(2) == pytest.approx(3 + 3 * 0.05 + 100)
    assert model.seconds(3) == pytest.approx(3 + (2 + math.log2(3)) * 0.05 + 34 * 2)  # 34 turns
    assert model.seconds(1000) == pytest.approx(3 + (2 + math.log2(1000)) * 0.05 + 2)
    assert model.moved(4) == 4 * 50_000_000 + 20_000
    assert BANDWIDTH == 1e9


@pytest.mark.parametrize(
    ("changed", "workers", "limit"),
    [
        ({}, 4, "items in workers"),
        ({}, 60, "only 100 items"),
        ({"driver": 300.0}, 4, "serial part"),
        ({"sent_once": 10**12}, 4, "sending"),
        ({"all_workers": 1.0}, 4, "items in the driver"),
    ],
)
def test_the_largest_part_is_what_limits(
    changed: dict[str, float], workers: int, limit: str
) -> None:
    empty = EMPTY if "all_workers" not in changed else replace(EMPTY, scheduler=25.0)
    [model] = models([empty, replace(ONE, **changed)])  # type: ignore[arg-type]
    assert model.limit(workers) == limit


def test_measured_critical_paths_stand_beside_the_model() -> None:
    lines = extrapolated([EMPTY, ONE, TWO]).splitlines()
    [two] = [line for line in lines if line.startswith("| work | 2 |")]
    assert two == "| work | 2 | 105.0 | 103.15 | 2.0 | items in workers | 100.0 |"
    [thousand] = [line for line in lines if line.startswith("| work | 1000 |")]
    assert thousand.split("|")[3].strip() == "-"
