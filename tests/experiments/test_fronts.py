"""MAPD by hand, and as published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.etas.fronts import found_mapd, mapd
from lpzero.proxies import Measurements, get
from lpzero.search.improvement import front
from spaces.tables import load


def test_mapd_of_what_searches_found() -> None:
    perplexities, costs = np.array([40.0, 30.0, 35.0, 20.0]), np.array([1.0, 2.0, 3.0, 4.0])
    # The true front: 40 at 1, 30 at 2, 20 at 4. The third found costs more than the second and is
    # worse, so it does not count.
    found, at = np.array([44.0, 30.0, 33.0]), np.array([1.0, 2.4, 3.0])
    assert found_mapd(found, at, perplexities, costs) == pytest.approx((0.1 + 0.0) / 2)
    assert found_mapd(perplexities, costs, perplexities, costs) == 0.0


def naive_front(quality: Any, cost: Any) -> set[int]:
    def beats(i: int, j: int) -> bool:
        no_worse = quality[i] >= quality[j] and cost[i] <= cost[j]
        return no_worse and (quality[i] > quality[j] or cost[i] < cost[j])

    rows = range(len(cost))
    return {j for j in rows if not any(beats(i, j) for i in rows)}


@pytest.mark.parametrize("seed", range(5))
def test_the_front_is_what_nothing_beats(seed: int) -> None:
    rng = np.random.default_rng(seed)
    quality, cost = rng.permutation(30).astype(float), rng.permutation(30).astype(float)
    assert set(front(quality, cost)) == naive_front(quality, cost)


def test_mapd_by_hand() -> None:
    perplexities = np.array([50.0, 40.0, 44.0, 30.0])
    costs = np.array([1.0, 2.0, 2.5, 4.0])
    # True front: rows 0, 1, 3. A proxy that prefers row 2 to row 1 puts 0, 2 and 3 on its front.
    scores = np.array([1.0, 0.5, 3.0, 4.0])
    assert mapd(scores, perplexities, costs) == pytest.approx((0 + 4 / 40 + 0) / 3)
    assert mapd(-perplexities, perplexities, costs) == 0


def test_mapd_of_decoder_parameters_is_as_published(real_data: Path) -> None:
    table = load("gpt2-lm1b-corei7-pareto", real_data)
    scores = get("decoder-parameters").score(table.space, table.archs, Measurements())
    # 0.6% in Table 5 of ETAS, of LTS, which ranks by decoder parameters
    assert mapd(scores, -table.targets, table.extra["latency"]) == pytest.approx(0.006, abs=5e-4)


def test_of_equal_cost_only_the_better_is_in_the_front() -> None:
    quality, cost = np.array([1.6, 2.0, 1.5, 3.0]), np.array([5.0, 5.0, 4.0, 9.0])
    assert front(quality, cost).tolist() == [2, 1, 3]
