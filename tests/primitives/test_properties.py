"""Every relation that a primitive declares holds on tensors: pruning relies on nothing else."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from primitives import UNARIES
from primitives.properties import Freedom, Interval
from primitives.registry import Unary

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 4))


def declaring(trait: str) -> Any:
    """Run a test for each primitive that declares the trait."""
    found = [f for f in UNARIES.values() if getattr(f.traits, trait)]
    assert found, f"no primitive declares {trait}"
    return pytest.mark.parametrize("f", found, ids=[f.name for f in found])


def inside(interval: Interval) -> NDArray[np.float64]:
    """Gentle numbers within the interval."""
    low, high = max(interval.low, -5.0), min(interval.high, 5.0)
    return RNG.uniform(low, high, size=(5, 4))


@declaring("undoes")
def test_what_it_undoes_is_undone(f: Unary) -> None:
    for pair in f.traits.undoes:
        x = inside(pair.domain)
        assert f(UNARIES[pair.name](x)) == pytest.approx(x, rel=1e-9)
        assert pair.exact in pair.domain


@declaring("defined_as")
def test_its_definition_is_itself(f: Unary) -> None:
    definition = f.traits.defined_as
    assert definition is not None
    x = value = inside(definition.domain)
    for operation in definition.chain:
        value = np.asarray(UNARIES[operation](value))
    assert np.asarray(f(x)) == pytest.approx(value, rel=1e-9)


def _changed(x: NDArray[np.float64], freedom: Freedom) -> NDArray[np.float64]:
    return x + RNG.normal(size=(1, 4)) if freedom is Freedom.COLUMN_SHIFT else 3 * x + 2


@declaring("ignores")
def test_it_ignores_what_it_says_it_ignores(f: Unary) -> None:
    for freedom in f.traits.ignores:
        assert f(_changed(X, freedom)) == pytest.approx(np.asarray(f(X)))


@declaring("makes")
def test_it_changes_no_more_than_it_says(f: Unary) -> None:
    if f.traits.makes is Freedom.COLUMN_SHIFT:
        assert np.ptp(f(X) - X, axis=0) == pytest.approx(np.zeros(4))
    else:
        slope, offset = np.polyfit(X.reshape(-1), np.asarray(f(X)).reshape(-1), 1)
        assert slope > 0
        assert f(X) == pytest.approx(slope * X + offset)


@declaring("steady")
def test_what_it_calls_steady_does_not_depend_on_values(f: Unary) -> None:
    for name, value in f.traits.steady:
        found = [np.mean(UNARIES[name](f(RNG.normal(size=(5, 4))))) for _ in range(4)]
        assert found == pytest.approx([found[0]] * 4, abs=1e-12)
        assert value is None or found[0] == pytest.approx(value, abs=1e-12)


@declaring("always_has_zero")
def test_it_has_a_zero_if_it_says_so(f: Unary) -> None:
    assert (f(X) == 0).any()


@declaring("grows")
def test_a_sum_grows_with_the_element_count_as_it_says(f: Unary) -> None:
    doubled = np.concatenate([X, X], axis=1)
    assert f(doubled) == pytest.approx(f(X) * 2**f.traits.grows)
