"""A pool of architectures: every one of them can be reached, isomers included."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

import spaces
from lpzero.search import Constraints
from lpzero.search.environment import Sampler

SPACE = spaces.get("autoformer-tiny")


def isomers(arch: Any) -> list[Any]:
    """Its layers turned round: everything that is counted stays, the order does not."""
    layers = arch.layers
    return [replace(arch, layers=layers[i:] + layers[:i]) for i in range(len(layers))]


@pytest.fixture(scope="module")
def sampler() -> Sampler:
    rng = random.Random(0)
    pool = [turned for _ in range(4) for turned in isomers(SPACE.sample(rng))]
    return Sampler(SPACE, Constraints(), lambda arch: 0.0, pool)


def test_a_member_stays_where_it_is(sampler: Sampler) -> None:
    assert sampler.pool is not None
    assert [sampler.snap_to_pool(arch) for arch in sampler.pool] == sampler.pool


def test_every_member_can_be_drawn(sampler: Sampler) -> None:
    assert sampler.pool is not None
    rng = random.Random(1)
    drawn = sampler.draw(len(sampler.pool), lambda: sampler.sample(rng))
    assert set(drawn) == set(sampler.pool)


def test_an_architecture_outside_the_pool_is_replaced_by_the_most_similar_isomer(
    sampler: Sampler,
) -> None:
    assert sampler.pool is not None
    for member in sampler.pool[::5]:
        first, second, *rest = member.layers
        swapped = replace(member, layers=(second, first, *rest))
        settled = sampler.snap_to_pool(swapped)
        alike = [
            sum(a == b for a, b in zip(swapped.layers, other.layers, strict=False))
            for other in (settled, member)
        ]
        assert alike[0] >= alike[1]


def test_an_architecture_at_a_bound_is_within_it() -> None:
    arch = SPACE.sample(random.Random(0))
    size = SPACE.parameters(arch)
    for bound, is_allowed in [
        ((size, size), True),
        ((None, size), True),
        ((size, None), True),
        ((size + 1, None), False),
        ((None, size - 1), False),
    ]:
        constraints = Constraints({"parameters": bound})
        assert constraints.allows(SPACE, arch, lambda arch: 0.0) == is_allowed
