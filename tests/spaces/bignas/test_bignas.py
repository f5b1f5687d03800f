"""The convolutional BigNAS space: published sizes, resizing, and stages that share their fields."""

from __future__ import annotations

import itertools
import random

import pytest
import torch

from spaces.bignas import BIGNAS, BigNasArch, BigNasBlock, BigNasSpace

TINY = BigNasSpace(
    name="tiny-bignas",
    resolutions=(16, 24),
    stems=(4, 8),
    channels=((4, 8), (8,)),
    depths=((1, 2), (1, 2)),
    kernels=((3,), (3, 5)),
    expansions=(1, 2),
    strides=(1, 2),
    lasts=(16,),
    image=16,
    classes=5,
    n_images=3,
)
SMALLEST, LARGEST = (
    BigNasArch(
        pick(BIGNAS.resolutions),
        pick(BIGNAS.stems),
        *(tuple(map(pick, getattr(BIGNAS, f))) for f in ("channels", "depths", "kernels")),
        pick(BIGNAS.lasts),
    )
    for pick in (min, max)
)
# EfficientNet-B0 (Tan and Le 2019)
B0 = BigNasArch(
    224, 32, (16, 24, 40, 80, 112, 192, 320), (1, 2, 2, 3, 3, 4, 1), (3, 3, 5, 3, 5, 5, 3), 1280
)


@pytest.mark.parametrize(
    ("arch", "parameters", "millions"),
    [(SMALLEST, 3_747_412, 206.7), (LARGEST, 10_892_790, 1843.0), (B0, 5_288_548, 385.8)],
)
def test_the_published_sizes_come_out(arch: BigNasArch, parameters: int, millions: float) -> None:
    BIGNAS.validate(arch)
    assert BIGNAS.parameters(arch) == parameters
    assert round(BIGNAS.multiply_adds(arch) / 1e6, 1) == millions


def test_cardinality_is_the_count() -> None:
    staged = [itertools.product(*getattr(TINY, f)) for f in ("channels", "depths", "kernels")]
    archs = {
        BigNasArch(*fields)
        for fields in itertools.product(TINY.resolutions, TINY.stems, *staged, TINY.lasts)
    }
    assert TINY.cardinality() == len(archs)
    rng = random.Random(0)
    assert {TINY.sample(rng) for _ in range(3000)} == archs


def test_images_are_resized_to_the_networks_own_side() -> None:
    arch = BigNasArch(24, 4, (4, 8), (1, 1), (3, 3), 16)
    model = TINY.build(arch, 0)
    with torch.no_grad():
        hidden = model(TINY.batch())
        own = torch.nn.functional.interpolate(TINY.batch(), (24, 24), mode="bilinear")
        assert torch.equal(hidden, model(own))
    assert hidden.shape == (3, 36, 8)
    assert model.logits(hidden).shape == (3, 5)


def test_an_untrained_batch_norm_changes_nothing_but_its_epsilon() -> None:
    model = TINY.build(TINY.sample(random.Random(0)), 0)
    norm = model.blocks[0].convolution.depthwise_norm
    x = torch.randn(2, norm.num_features, 3, 3)
    torch.testing.assert_close(norm(x), x, rtol=1e-3, atol=1e-3)


def test_gradients_of_one_image_are_those_of_the_definition() -> None:
    """torch has computed wrong ones for strides that a batch of one can have."""
    model = TINY.build(TINY.sample(random.Random(0)), 0)
    hidden = model(TINY.batch()[:1])
    cotangent = torch.randn(hidden.shape, generator=torch.Generator().manual_seed(0))
    bias = model.blocks[-1].convolution.project_norm.bias
    [gradient] = torch.autograd.grad((hidden * cotangent).sum(), [bias])
    torch.testing.assert_close(gradient, cotangent.sum((0, 1)))


def test_an_exchanged_block_takes_its_stage_along() -> None:
    changed = BIGNAS.with_block(B0, 1, BigNasBlock(5, 216, 3))
    assert changed.channels == (16, 24, 40, 80, 112, 216, 320)
    assert changed.kernels == (3, 3, 5, 3, 5, 3, 3)
    rng = random.Random(1)
    for _ in range(200):
        arch = BIGNAS.sample(rng)
        index = rng.randrange(BIGNAS.depth(arch))
        drawn = BIGNAS.redraw_block(arch, index, rng)
        BIGNAS.validate(drawn)
        stage = BIGNAS.blocks(arch)[index].stage
        others = [b for b in BIGNAS.blocks(drawn) if b.stage != stage]
        assert others == [b for b in BIGNAS.blocks(arch) if b.stage != stage]
