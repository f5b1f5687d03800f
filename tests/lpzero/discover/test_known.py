"""Keys that states share: each sees what a copy of its own would hold."""

from __future__ import annotations

import random

import pytest

from lpzero.discover.evolution import KnownKeys


def test_every_state_sees_what_a_copy_would_hold() -> None:
    rng = random.Random(0)
    states: list[tuple[KnownKeys, dict[str, int]]] = [(KnownKeys(), {})]
    branched = 0
    for number in range(60):
        # Mostly the last state goes on, sometimes an earlier one, from which two futures follow.
        at = len(states) - 1 if rng.random() < 0.7 else rng.randrange(len(states))
        branched += at != len(states) - 1
        known, copy = states[at]
        start = 1 + max(copy.values(), default=-1)
        fresh = {f"formula {number} {i}": start + 2 * i for i in range(rng.randrange(4))}
        states.append((known.extended(fresh), {**copy, **fresh}))
    assert branched > 5
    everything = {key for _, copy in states for key in copy}
    assert len(everything) > 60
    for known, copy in states:
        assert known == copy
        assert list(known.items()) == list(copy.items())
        assert len(known) == len(copy)
        assert {key for key in everything if key in known} == copy.keys()
        assert [known.get(key) for key in copy] == list(copy.values())


def test_states_that_follow_each_other_share_one_dictionary() -> None:
    known = KnownKeys({"first": 0})
    second = known.extended({"second": 1})
    assert second._ids is known._ids
    other = known.extended({"other": 1})  # the second future of the first state
    assert other._ids is not known._ids


@pytest.mark.parametrize("fresh", [{"first": 9}, {"new": 3}, {"new": 0}])
def test_a_known_key_or_an_old_id_is_refused(fresh: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="fresh formulas"):
        KnownKeys({"first": 3}).extended(fresh)
