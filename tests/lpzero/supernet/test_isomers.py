"""Isomers, their greedy representative against all of them, and the mean best rank."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lpzero.errors import FitnessError
from lpzero.supernet import Isomers, Saliency, allocate, isomers, mean_best_rank, representative
from spaces.autoformer import AutoFormerArch, AutoFormerLayer, AutoFormerSpace
from spaces.sharing import Term

TWO = AutoFormerSpace(
    name="two", hidden=(8, 12), n_layers=(2, 3, 4), heads=(2, 1), ratios=(1.5, 2.0), head_width=4
)
THREE = AutoFormerSpace(
    name="three", hidden=(8,), n_layers=(4,), heads=(1, 2, 3), ratios=(1.0, 2.0, 3.0), head_width=4
)


def drawn(space: AutoFormerSpace, seed: int) -> Saliency:
    """Tables as a pass could leave them: positive, and greater for larger choices."""
    rng = np.random.default_rng(seed)
    L, H = max(space.n_layers), len(space.hidden)

    def table(choices: tuple[float, ...]) -> np.ndarray:
        steps = rng.lognormal(0, 2, (L, H, len(choices)))
        grown = steps.cumsum(1).cumsum(2)
        return grown[:, :, np.argsort(np.argsort(choices))]

    values = {
        Term(layer, part, (hidden, choice)): float(numbers[layer, at, place])
        for part, choices, numbers in (
            ("attention", space.heads, table(space.heads)),
            ("feed-forward", space.ratios, table(space.ratios)),
        )
        for layer in range(L)
        for at, hidden in enumerate(space.hidden)
        for place, choice in enumerate(choices)
    }
    return Saliency(space, values, lambda arch: {})


def members(group: Isomers) -> Iterator[AutoFormerArch]:
    orders = (set(itertools.permutations(choices)) for _, choices in group.choices)
    for heads, ratios in itertools.product(*orders):
        layers = zip(heads, ratios, strict=True)
        yield AutoFormerArch(group.width, tuple(AutoFormerLayer(*pair) for pair in layers))


def test_isomers_have_equal_sizes() -> None:
    arch = TWO.sample(random.Random(3))
    group = isomers(TWO, arch)
    same = list(members(group))
    assert arch in same
    assert {isomers(TWO, other) for other in same} == {group}
    assert len({(TWO.parameters(other), TWO.flops(other)) for other in same}) == 1


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(space=st.sampled_from([TWO, THREE]), seed=st.integers(0, 10**6))
def test_the_representative_is_the_best_of_all_isomers(space: AutoFormerSpace, seed: int) -> None:
    saliency = drawn(space, seed)
    group = isomers(space, space.sample(random.Random(seed)))
    found = representative(saliency, group)
    assert isomers(space, found) == group
    every = list(members(group))
    best = saliency.scores(every, normalised=True).max()
    assert saliency.scores([found], normalised=True)[0] == pytest.approx(best, rel=1e-12)


def greedy(values: np.ndarray, counts: list[int]) -> list[int]:
    """Algorithm 1 of PreNAS for two choices: heads are given one by one where they score most."""
    chosen = [0] * len(values)
    for _ in range(counts[1]):
        gains = [v[1] - v[0] if c == 0 else -np.inf for v, c in zip(values, chosen, strict=True)]
        chosen[int(np.argmax(gains))] = 1
    return chosen


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10**6), larger=st.integers(0, 6))
def test_with_two_choices_it_is_the_greedy_algorithm(seed: int, larger: int) -> None:
    values = np.random.default_rng(seed).lognormal(0, 2, (6, 2)).cumsum(1)
    assert allocate(values, [6 - larger, larger]).tolist() == greedy(values, [6 - larger, larger])


def test_larger_choices_go_where_the_gain_is() -> None:
    values = np.array([[1.0, 2.0], [5.0, 5.5], [0.0, 3.0], [0.0, 1.0]])
    assert allocate(values, [2, 2]).tolist() == [1, 0, 1, 0]  # of equal gains the lower layer
    assert allocate(values, [4, 0]).tolist() == [0, 0, 0, 0]
    # The second layer gains more by the last step, the first by both.
    assert allocate(np.array([[0.0, 10.0, 11.0], [0.0, 0.0, 5.0]]), [1, 0, 1]).tolist() == [2, 0]


def test_mean_best_rank_by_hand() -> None:
    groups = ["a", "a", "a", "b", "b", "alone"]
    targets = np.array([3.0, 1.0, 2.0, 7.0, 9.0, 5.0])
    best = mean_best_rank(targets, targets, groups)
    worst = mean_best_rank(-targets, targets, groups)
    assert (best, worst) == (0.0, 1.0)
    # In group a the favourite is the second of three, in b the better of two: (1 + 0) / (2 + 1).
    scores = np.array([1.0, 2.0, 3.0, 1.0, 2.0, 0.0])
    assert mean_best_rank(scores, targets, groups) == pytest.approx(1 / 3)
    # All are favourites: the mean of the ranks, (1 + 0.5) / 3.
    assert mean_best_rank(np.ones(6), targets, groups) == pytest.approx(0.5)


def test_mean_best_rank_needs_groups() -> None:
    with pytest.raises(FitnessError, match="no group has two architectures"):
        mean_best_rank(np.ones(2), np.ones(2), ["a", "b"])
    with pytest.raises(FitnessError, match="2 scores, 3 targets and 2 groups"):
        mean_best_rank(np.ones(2), np.ones(3), ["a", "b"])
