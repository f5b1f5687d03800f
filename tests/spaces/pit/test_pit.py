"""PiT: published sizes, what pooling does, and blocks that share their stage's heads."""

from __future__ import annotations

import itertools
import random

import pytest
import torch

import spaces
from spaces.errors import ArchitectureError
from spaces.pit import PitArch, PitBlock, PitSpace

TINY = PitSpace(
    name="tiny-pit",
    base_dims=(2, 4),
    ratios=(1, 2),
    depths=((1, 2), (1,), (1, 2)),
    heads=(1, 2, 4),
    image=18,
    patch=4,
    stride=2,
    classes=5,
    n_images=3,
)


@pytest.mark.parametrize(
    ("base_dim", "heads", "millions", "billions"),
    # T-Razor's Table II prints PiT-Ti, PiT-XS and PiT-S with one decimal.
    [(32, (2, 4, 8), 4.9, 0.7), (48, (2, 4, 8), 10.6, 1.4), (48, (3, 6, 12), 23.5, 2.9)],
)
def test_the_published_sizes_come_out(
    base_dim: int, heads: tuple[int, ...], millions: float, billions: float
) -> None:
    space = PitSpace(base_dims=(base_dim,), heads=heads)
    arch = PitArch(base_dim, 4, (2, 6, 4), heads)
    space.validate(arch)
    # PiT-Ti has 4,847,272, which 4.85 and 4.9 round alike.
    assert space.parameters(arch) / 1e6 == pytest.approx(millions, abs=0.054)
    assert round(space.multiply_adds(arch) / 1e9, 1) == billions


def test_the_space_has_the_size_its_ranges_give() -> None:
    # heads that never fall are ten of twenty-seven
    assert spaces.PIT.cardinality() == 4 * 4 * 27 * 10
    assert len(spaces.PIT.head_choices()) == 10


def test_cardinality_is_the_count() -> None:
    archs = {
        PitArch(base_dim, ratio, depths, heads)
        for base_dim, ratio in itertools.product(TINY.base_dims, TINY.ratios)
        for depths in itertools.product(*TINY.depths)
        for heads in itertools.product(TINY.heads, repeat=3)
        if heads[1] % heads[0] == 0 == heads[2] % heads[1]
    }
    assert TINY.cardinality() == len(archs)
    rng = random.Random(0)
    assert {TINY.sample(rng) for _ in range(3000)} == archs


def test_heads_that_do_not_fit_the_stage_before_are_refused() -> None:
    with pytest.raises(ArchitectureError, match=r"heads\[2\] = 2 .* multiple of the 4"):
        TINY.validate(PitArch(2, 2, (1, 1, 1), (1, 4, 2)))


def test_each_stage_halves_the_grid_and_widens_the_tokens() -> None:
    arch = PitArch(2, 2, (2, 1, 1), (1, 2, 4))
    model = TINY.build(arch, 0)
    assert TINY.grids == (8, 4, 2)
    x = model.embedding(TINY.batch())
    shapes = []
    with torch.no_grad():
        for block in model.blocks:
            x = block(x)
            shapes.append(tuple(x.shape))
        assert torch.equal(model(TINY.batch()), model.norm(x))
    assert shapes == [(3, 65, 2), (3, 65, 2), (3, 17, 4), (3, 5, 8)]
    assert model.logits(model.norm(x)).shape == (3, 5)


def test_pooling_sees_neighbours_in_the_grid_and_keeps_the_class_token_apart() -> None:
    model = TINY.build(PitArch(2, 2, (1, 1, 1), (1, 2, 4)), 0)
    pool = model.blocks[1].pool
    x = torch.randn(1, 65, 2, generator=torch.Generator().manual_seed(0))
    moved = x.clone()
    moved[:, 1 + 8 * 4 + 4] += 1.0  # row 4, column 4 of eight
    with torch.no_grad():
        changed = (pool(moved) - pool(x)).abs().amax(-1)[0] > 1e-7
        assert not changed[0]
        # stride 2, three wide: only the output at (2, 2) of four has (4, 4) in its window
        assert changed[1:].nonzero().squeeze(1).tolist() == [2 * 4 + 2]
        moved = x.clone()
        moved[:, 0] += 1.0
        assert ((pool(moved) - pool(x)).abs().amax(-1)[0] > 0).tolist() == [True] + [False] * 16


@pytest.mark.parametrize(
    ("index", "heads", "expected"),
    [
        (0, 8, (8, 8, 8)),
        (1, 8, (8, 8, 8)),
        (2, 2, (2, 2, 8)),
        (2, 8, (4, 8, 8)),
        (12, 2, (2, 2, 2)),
        (12, 4, (4, 4, 4)),
        (0, 2, (2, 4, 8)),
    ],
)
def test_an_exchanged_block_takes_its_stage_along(
    index: int, heads: int, expected: tuple[int, ...]
) -> None:
    arch = PitArch(24, 4, (2, 8, 4), (4, 4, 8))
    changed = spaces.PIT.with_block(arch, index, PitBlock(heads, 6))
    assert changed == PitArch(24, 6, (2, 8, 4), expected)
    spaces.PIT.validate(changed)
    assert spaces.PIT.blocks(changed)[index] == PitBlock(heads, 6)


def test_any_block_at_any_place_stays_inside_the_space() -> None:
    rng = random.Random(1)
    for _ in range(300):
        arch, donor = spaces.PIT.sample(rng), spaces.PIT.sample(rng)
        index = rng.randrange(spaces.PIT.depth(arch))
        block = rng.choice(spaces.PIT.blocks(donor))
        changed = spaces.PIT.with_block(arch, index, block)
        spaces.PIT.validate(changed)
        assert spaces.PIT.blocks(changed)[index] == block


def test_a_child_has_every_stage_from_a_parent() -> None:
    rng = random.Random(2)
    for _ in range(300):
        first, second = spaces.PIT.sample(rng), spaces.PIT.sample(rng)
        child = spaces.PIT.crossover(first, second, rng)
        spaces.PIT.validate(child)
        for name in ("depths", "heads"):
            stages = zip(*(getattr(arch, name) for arch in (child, first, second)), strict=True)
            assert all(mine in (a, b) for mine, a, b in stages)


def test_mutation_reaches_every_chain_of_heads() -> None:
    rng, arch, seen = random.Random(3), spaces.PIT.sample(random.Random(0)), set()
    for _ in range(400):
        arch = spaces.PIT.mutate(arch, 0.5, rng)
        seen.add(arch.heads)
    assert seen == set(spaces.PIT.head_choices())
