"""The two-step selector against a look at every architecture."""

from __future__ import annotations

import itertools
import random
from collections import Counter, defaultdict

import numpy as np
import pytest

import spaces
from lpzero.errors import InputError
from lpzero.supernet import (
    Saliency,
    candidates,
    draw,
    isomers,
    representative,
    representatives,
    select,
)
from lpzero.supernet.isomers import TOTALS, likeness
from lpzero.supernet.saliency import Gains
from lpzero.supernet.selection import MOST_GROUPS, N_SAMPLED, n_groups
from spaces.autoformer import AutoFormerArch, AutoFormerLayer, AutoFormerSpace
from tests.lpzero.supernet.test_isomers import THREE, drawn
from tests.spaces.bignas.test_bignas import TINY as BIGNAS_TINY

SPACE = AutoFormerSpace(
    name="two",
    hidden=(8, 12),
    n_layers=(2, 3),
    heads=(1, 2),
    ratios=(1.5, 2.0),
    head_width=4,
    image=12,
    patch=4,
    classes=5,
)
SALIENCY = drawn(SPACE, 5)


def every() -> list[AutoFormerArch]:
    layers = [AutoFormerLayer(*pair) for pair in itertools.product(SPACE.heads, SPACE.ratios)]
    return [
        AutoFormerArch(hidden, chosen)
        for hidden, n in itertools.product(SPACE.hidden, SPACE.n_layers)
        for chosen in itertools.product(layers, repeat=n)
    ]


def test_every_group_has_one_representative() -> None:
    found = representatives(SALIENCY)
    groups = {isomers(SPACE, arch) for arch in every()}
    assert len(found) == len(groups)
    assert {isomers(SPACE, arch) for arch in found} == groups
    assert all(representative(SALIENCY, isomers(SPACE, arch)) == arch for arch in found)


@pytest.mark.parametrize("size", ["parameters", "flops", "multiply-adds"])
@pytest.mark.parametrize("per_bin", [1, 3])
def test_two_steps_equal_a_look_at_everything(size: str, per_bin: int) -> None:
    measure = {
        "parameters": SPACE.parameters,
        "flops": SPACE.flops,
        "multiply-adds": SPACE.multiply_adds,
    }[size]
    archs = every()
    sizes = [measure(arch) for arch in archs]
    edges = np.linspace(min(sizes), max(sizes) + 1, 5).tolist()
    found = select(SALIENCY, edges, per_bin, size)
    expected = []
    for low, high in itertools.pairwise(edges):
        groups = defaultdict(list)
        for arch, n in zip(archs, sizes, strict=True):
            if low <= n < high:
                groups[isomers(SPACE, arch)].append(arch)
        elected = [
            max(group, key=lambda arch: SALIENCY.scores([arch], True)[0])
            for group in groups.values()
        ]
        elected.sort(key=lambda arch: -SALIENCY.scores([arch])[0])
        expected += elected[:per_bin]
    assert [SALIENCY.scores([p.arch])[0] for p in found] == pytest.approx(
        [SALIENCY.scores([arch])[0] for arch in expected]
    )
    for p in found:
        assert p.low <= p.size == measure(p.arch) < p.high
        assert p.score == SALIENCY.scores([p.arch])[0]


def test_usual_bins_are_a_million_parameters() -> None:
    space = AutoFormerSpace(n_layers=(2, 3))
    found = select(drawn(space, 0))
    assert len(found) > 1
    for p in found:
        assert p.high - p.low == 1_000_000
        assert p.low % 1_000_000 == 0
    assert [p.low for p in found] == sorted({p.low for p in found})


@pytest.mark.slow
def test_widths_and_depths_are_drawn_alike() -> None:
    preferred = select(SALIENCY, [0, 10**9], per_bin=100)
    wide = Counter((p.arch.hidden, len(p.arch.layers)) for p in preferred)
    assert len(wide) > 1
    assert len(set(wide.values())) > 1
    rng = random.Random(0)
    archs = [p.arch for p in preferred]
    drawn_archs = [draw(SPACE, archs, rng) for _ in range(3000)]
    seen = Counter((a.hidden, len(a.layers)) for a in drawn_archs)
    assert set(seen) == set(wide)
    assert max(seen.values()) < 1.2 * min(seen.values())


def test_bad_requests_are_refused() -> None:
    with pytest.raises(InputError, match="no default bins of flops; give their edges"):
        select(SALIENCY, size="flops")
    with pytest.raises(InputError, match="size 'latency' is unknown; use one of parameters"):
        select(SALIENCY, size="latency")
    with pytest.raises(InputError, match="expected two or more edges in ascending order"):
        select(SALIENCY, [3, 1])
    with pytest.raises(InputError, match="0 architectures per bin"):
        select(SALIENCY, per_bin=0)
    with pytest.raises(InputError, match="cannot draw"):
        draw(SPACE, [], random.Random(0))


def test_a_bin_has_its_lower_edge_and_not_its_upper_one() -> None:
    sizes = sorted({SPACE.parameters(arch) for arch in every()})
    low, middle, high = sizes[0], sizes[len(sizes) // 2], sizes[-1]
    found = select(SALIENCY, [low, middle, high], per_bin=1000)
    in_first, in_second = ({p.size for p in found if p.low == edge} for edge in (low, middle))
    assert min(in_first) == low
    assert max(in_first) < middle == min(in_second)
    assert max(in_second) < high


@pytest.mark.slow
def test_spaces_without_isomers_or_with_too_many_are_sampled() -> None:
    gpt2, convolutions = spaces.get("nano-gpt2"), BIGNAS_TINY
    assert n_groups(SPACE) == len(representatives(SALIENCY))
    assert n_groups(gpt2) > MOST_GROUPS
    found = candidates(Saliency.of(gpt2))
    assert 100 < len(found) <= N_SAMPLED
    assert len({isomers(gpt2, arch) for arch in found}) == len(found)
    drawn_archs = candidates(Saliency.of(convolutions))
    assert len(drawn_archs) == convolutions.cardinality()  # a tiny one is exhausted


@pytest.mark.slow
def test_by_totals_the_best_of_all_with_the_same_sums_is_elected() -> None:
    saliency = drawn(THREE, 9)
    layers = [AutoFormerLayer(*pair) for pair in itertools.product(THREE.heads, THREE.ratios)]
    groups = defaultdict(list)
    for chosen in itertools.product(layers, repeat=4):
        key = sum(layer.heads for layer in chosen), sum(layer.ratio for layer in chosen)
        groups[key].append(AutoFormerArch(8, chosen))
    found = representatives(saliency, TOTALS)
    assert len(found) == len(groups) == n_groups(THREE, TOTALS) == 81
    assert n_groups(THREE) == 225
    for arch in found:
        key = sum(layer.heads for layer in arch.layers), sum(layer.ratio for layer in arch.layers)
        best = saliency.scores(groups.pop(key), normalised=True).max()
        assert saliency.scores([arch], normalised=True)[0] == pytest.approx(best, rel=1e-12)
        assert representative(saliency, isomers(THREE, arch), TOTALS) == arch
    assert not groups


def test_the_published_spaces_have_the_groups_of_appendix_b() -> None:
    small = spaces.get("autoformer-small")
    assert (n_groups(small), n_groups(small, TOTALS)) == (101_118, 6_585)
    tiny = spaces.get("autoformer-tiny")  # two choices per layer: both groupings are one
    assert n_groups(tiny) == n_groups(tiny, TOTALS) == 1_770


def test_passes_are_averaged_and_say_how_alike_they_elect() -> None:
    passes = drawn(THREE, 1), drawn(THREE, 2), drawn(THREE, 3)
    gains = Gains(passes)
    for factor in ("heads", "ratio"):
        single = [one.table(factor, 8, 4) / one.totals[:4, None] for one in passes]
        np.testing.assert_allclose(gains.table(factor, 8, 4), sum(single) / 3)
    group = isomers(THREE, THREE.sample(random.Random(4)))
    arch = representative(gains, group)
    others = [representative(one, group) for one in passes]
    same = [
        (mine.heads == its.heads) + (mine.ratio == its.ratio)
        for other in others
        for mine, its in zip(arch.layers, other.layers, strict=True)
    ]
    assert likeness(gains, arch) == pytest.approx(sum(same) / (3 * 8))
    assert 0 < sum(same) < 3 * 8
    assert likeness(Gains(passes[:1]), arch) is None
    assert Gains((passes[0], passes[0])).agreement() == pytest.approx(1.0)
    assert Gains(passes[:1]).agreement() is None
