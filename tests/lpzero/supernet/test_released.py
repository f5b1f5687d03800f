"""The public selector of PreNAS: its candidates, its placement and its score."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import spaces
from lpzero.supernet.released import ReleasedSelector, _counts, _placed
from spaces.autoformer import AutoFormerArch, AutoFormerLayer, AutoFormerSpace

TINY = AutoFormerSpace(
    name="autoformer-tiny",
    hidden=(12, 16),
    n_layers=(2, 3),
    heads=(1, 2),
    ratios=(1.5, 2.0),
    image=12,
    patch=4,
    classes=5,
    head_width=6,
    n_images=2,
)


@pytest.fixture(scope="module")
def selector() -> ReleasedSelector:
    return ReleasedSelector.of(TINY, 0, n_images=4)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "expected"),
    [("autoformer-tiny", 1770), ("autoformer-small", 57918), ("autoformer-base", 17421)],
)
def test_the_candidates_are_as_many_as_in_the_public_code(name: str, expected: int) -> None:
    space = spaces.get(name)
    n = max(space.n_layers)  # type: ignore[attr-defined]
    zeros = [np.zeros((n, len(c))) for c in (space.heads, space.ratios)]  # type: ignore[attr-defined]
    found = ReleasedSelector(space, {}, *zeros).candidates()  # type: ignore[arg-type]
    assert len(found) == expected
    for arch in found[:: len(found) // 50]:
        space.validate(arch)


def test_cuts_are_distinct_so_that_the_middle_choice_is_never_empty() -> None:
    assert list(_counts((1, 2), 2)) == [[0, 2], [1, 1], [2, 0]]
    assert list(_counts((1, 2, 3), 2)) == [[0, 1, 1], [0, 2, 0], [1, 1, 0]]


def test_the_largest_choice_goes_to_the_layers_that_gain_most_by_it() -> None:
    gains = np.array([[0.0, 5.0, 1.0], [0.0, 1.0, 9.0], [0.0, 4.0, 3.0]])
    assert _placed(gains, [1, 1, 1]) == [1, 2, 0]
    assert _placed(gains, [0, 1, 2]) == [1, 2, 2]


def test_the_score_of_the_largest_is_the_sum_of_all_it_counts(selector: ReleasedSelector) -> None:
    left_out = ("class_token", "position", "head.bias")
    whole = sum(
        float(p.sum())
        for name, p in selector.products.items()
        if not any(part in name for part in left_out)
    )
    whole += float(selector.products["head.bias"].sum())  # five classes, fewer than the width
    assert selector.scores([TINY.weight_sharing().largest()])[0] == pytest.approx(whole)


def test_the_score_of_a_subnet_is_that_of_its_slices(selector: ReleasedSelector) -> None:
    arch = AutoFormerArch(12, (AutoFormerLayer(1, 1.5), AutoFormerLayer(2, 2.0)))
    model = TINY.build(arch, 0)
    total = 0.0
    for name, parameter in model.named_parameters():
        if "class_token" in name or "position" in name:
            continue
        shape = (parameter.flatten(1) if parameter.ndim > 1 else parameter).shape
        total += float(selector.products[name][tuple(slice(n) for n in shape)].sum())
    assert selector.scores([arch])[0] == pytest.approx(total)


def test_bins_are_those_of_the_public_code(selector: ReleasedSelector) -> None:
    millions = [(low // 10**6, high // 10**6) for low, high in selector.bins]
    assert millions == list(itertools.pairwise(range(5, 13)))
