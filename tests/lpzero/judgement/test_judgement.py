"""Judgements: the properties they must have, and what has no judgement."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from lpzero.arrays import FloatArray
from lpzero.errors import FitnessError
from lpzero.judgement.judgement import judge
from tests.lpzero.judgement.score_rows import Seed, score_rows


@pytest.mark.slow
@given(seed=Seed)
def test_a_monotone_rescaling_changes_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, targets = rng.permutation(40) / 8 + 1.0, rng.permutation(40).astype(float)
    scores[:8] = scores[8:16]
    # Steps: sizes that differ by less than six digits show would tie in one form alone.
    sizes, groups = rng.permutation(40) / 8 + 1.0, rng.integers(0, 4, 40)
    rescaled = judge(np.exp(scores) * 3, targets**3, np.log(sizes), groups)
    assert rescaled == judge(scores, targets, sizes, groups)


@pytest.mark.slow
@given(seed=Seed)
def test_the_order_of_architectures_changes_nothing(seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, targets = rng.integers(0, 9, 40).astype(float), rng.integers(0, 9, 40).astype(float)
    sizes, groups, order = rng.random(40), rng.integers(0, 4, 40), rng.permutation(40)
    first = judge(scores, targets, parameters=sizes, groups=groups)
    second = judge(scores[order], targets[order], parameters=sizes[order], groups=groups[order])
    for field in (
        "rho",
        "rho_untied",
        "tau",
        "top_precision",
        "rho_given_params",
        "rho_within",
        "n_within",
    ):
        assert getattr(second, field) == pytest.approx(getattr(first, field), abs=1e-12)


@settings(max_examples=20)
@given(seed=Seed)
def test_every_number_of_a_judgement_is_finite(seed: int) -> None:
    rng = np.random.default_rng(seed)
    row = score_rows(seed, 4, 12)[seed % 4]
    judged = judge(
        row, rng.integers(0, 2, 12).astype(float), parameters=row, groups=rng.integers(0, 2, 12)
    )
    for value in flat(dataclasses.astuple(judged)):
        assert value is None or isinstance(value, str) or math.isfinite(value)


def flat(values: Any) -> list[Any]:
    nested = ([*flat(v)] if isinstance(v, tuple) else [v] for v in values)
    return [value for part in nested for value in part]


@pytest.mark.parametrize(("value", "flaw"), [(np.nan, "non-finite"), (2.0, "constant")])
def test_a_flawed_score_is_judged_as_zero_and_says_so(value: float, flaw: str) -> None:
    judged = judge(
        np.full(10, value), np.arange(10.0), parameters=np.arange(10.0), groups=np.zeros(10, int)
    )
    assert judged.flaw == flaw
    assert (judged.rho, judged.rho_untied, judged.tau) == (0, 0, 0)
    assert (judged.rho_given_params, judged.rho_within) == (0, 0)
    assert judged.n_within == 10


@pytest.mark.parametrize(
    ("scores", "targets", "message"),
    [
        (np.ones(3), np.ones(4), "do not match"),
        (np.ones(1), np.ones(1), "needs 2 to"),
        (np.ones(3), np.array([1.0, np.nan, 2.0]), "target 1 is nan, expected a finite number"),
    ],
)
def test_what_cannot_be_compared_is_an_error(
    scores: FloatArray, targets: FloatArray, message: str
) -> None:
    with pytest.raises(FitnessError, match=message):
        judge(scores, targets, targets, np.zeros(len(targets), dtype=int))
