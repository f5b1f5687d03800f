"""Shunted ViT: published sizes, stages, and keys merged at two scales."""

from __future__ import annotations

import itertools
import random

import pytest
import torch

import spaces
from spaces.errors import ArchitectureError
from spaces.shunted import SHUNTED, ShuntedArch, ShuntedBlock, ShuntedSpace

TINY = ShuntedSpace(
    name="tiny-shunted",
    bases=(8, 12),
    stems=(0, 1),
    depths=((1,), (1, 2), (1,), (1,)),
    heads=(2, 4),
    ratios=(1,),
    image=64,
    classes=5,
    n_images=3,
)


def released(stem: int, depths: tuple[int, ...]) -> ShuntedArch:
    stages = (
        (ShuntedBlock(2, ratio),) * depth for ratio, depth in zip((8, 8, 4, 4), depths, strict=True)
    )
    return ShuntedArch(64, stem, tuple(stages))


@pytest.mark.parametrize(
    ("stem", "depths", "parameters", "billions"),
    [
        (0, (1, 2, 4, 1), 11_553_576, 2.147),
        (1, (2, 4, 12, 1), 22_401_256, 4.993),
        (2, (3, 4, 24, 2), 39_614_376, 8.150),
    ],
)
def test_the_published_sizes_come_out(
    stem: int, depths: tuple[int, ...], parameters: int, billions: float
) -> None:
    arch = released(stem, depths)
    SHUNTED.validate(arch)
    assert SHUNTED.parameters(arch) == parameters
    assert round(SHUNTED.multiply_adds(arch) / 1e9, 3) == billions


def test_cardinality_is_the_count() -> None:
    blocks = [ShuntedBlock(heads, 1) for heads in TINY.heads]
    archs = {
        ShuntedArch(base, stem, stages)
        for base, stem in itertools.product(TINY.bases, TINY.stems)
        for depths in itertools.product(*TINY.depths)
        for stages in itertools.product(*(itertools.product(blocks, repeat=n) for n in depths))
    }
    assert TINY.cardinality() == len(archs)
    rng = random.Random(0)
    assert {TINY.sample(rng) for _ in range(4000)} == archs


def test_each_stage_halves_the_grid_and_doubles_the_width() -> None:
    model = TINY.build(TINY.sample(random.Random(1)), 0)
    assert TINY.grids == (16, 8, 4, 2)
    seen = []
    for block in model.blocks:
        block.register_forward_hook(lambda _, __, output: seen.append(tuple(output.shape[1:])))
    with torch.no_grad():
        hidden = model(TINY.batch())
    d = hidden.shape[-1] // 8
    assert seen == [(256, d), (64, 2 * d), (64, 2 * d), (16, 4 * d), (4, 8 * d)][: len(seen)] or (
        seen == [(256, d), (64, 2 * d), (16, 4 * d), (4, 8 * d)]
    )
    assert model.logits(hidden).shape == (3, 5)


def test_half_of_the_heads_see_coarser_tokens() -> None:
    arch = ShuntedArch(8, 0, ((ShuntedBlock(4, 1),),) * 4)
    model = TINY.build(arch, 0)
    attention, shapes = model.blocks[0].attention, {}
    for name in ("tap_s", "tap_s_fine"):
        getattr(attention, name).register_forward_hook(
            lambda _, __, output, name=name: shapes.update({name: tuple(output.shape)})
        )
    with torch.no_grad():
        model(TINY.batch())
    assert shapes == {"tap_s": (3, 2, 256, 4), "tap_s_fine": (3, 2, 256, 16)}


def test_wrong_stages_are_named() -> None:
    fields = TINY.to_json(TINY.sample(random.Random(0)))
    with pytest.raises(ArchitectureError, match=r"depth of stages\[1\] = 3 is outside"):
        TINY.from_json(fields | {"stages": [[{"heads": 2, "ratio": 1}]] * 1 + [
            [{"heads": 2, "ratio": 1}] * 3] + [[{"heads": 2, "ratio": 1}]] * 2})  # fmt: skip
    with pytest.raises(ArchitectureError, match=r"^stages: got 3"):
        TINY.from_json(fields | {"stages": 3})
    assert "shunted" in spaces.names()
