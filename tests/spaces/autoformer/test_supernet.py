"""The supernet: every architecture inside it is the model that `build` gives, with its weights."""

from __future__ import annotations

import random

import pytest
import torch

from spaces.autoformer import AutoFormerArch, AutoFormerLayer, AutoFormerSpace
from spaces.autoformer.supernet import Supernet, largest
from spaces.errors import ArchitectureError

SPACE = AutoFormerSpace(
    name="tiny-vision",
    hidden=(12, 16),
    n_layers=(1, 2, 3),
    heads=(1, 2, 3),
    ratios=(1.5, 2.0),
    image=12,
    patch=4,
    classes=5,
    head_width=6,
)
SAMPLES = [SPACE.sample(random.Random(seed)) for seed in range(12)]


@pytest.fixture(scope="module")
def supernet() -> Supernet:
    return SPACE.supernet(3)


def test_the_largest_holds_every_architecture(supernet: Supernet) -> None:
    whole = largest(SPACE)
    SPACE.validate(whole)
    assert SPACE.parameters(whole) == max(SPACE.parameters(arch) for arch in [*SAMPLES, whole])
    assert sum(p.numel() for p in supernet.parameters()) == SPACE.parameters(whole)


@pytest.mark.slow
@pytest.mark.parametrize("arch", SAMPLES)
def test_a_subnet_is_the_built_model_with_inherited_weights(
    supernet: Supernet, arch: AutoFormerArch
) -> None:
    images = SPACE.batch(0)
    built = SPACE.build(arch, 0)
    built.load_state_dict(
        {name: w.detach().clone() for name, w in supernet.inherited(arch).items()}
    )
    subnet = supernet.subnet(arch)
    with torch.no_grad():
        expected = built(images)
        torch.testing.assert_close(subnet(images), expected, rtol=0, atol=0)
        torch.testing.assert_close(supernet(images, arch), expected)
        torch.testing.assert_close(subnet.logits(expected), built.logits(expected))
    assert not subnet.training


def test_slices_are_the_first_heads_and_features_of_the_first_blocks(supernet: Supernet) -> None:
    arch = AutoFormerArch(12, (AutoFormerLayer(3, 2.0), AutoFormerLayer(1, 1.5)))
    whole, found = dict(supernet.largest.named_parameters()), supernet.inherited(arch)
    assert torch.equal(
        found["blocks.1.attention.key.weight"], whole["blocks.1.attention.key.weight"][:6, :12]
    )
    assert torch.equal(
        found["blocks.1.feed_forward.output.weight"],
        whole["blocks.1.feed_forward.output.weight"][:12, :18],
    )
    assert torch.equal(found["head.weight"], whole["head.weight"][:, :12])
    assert not any(name.startswith("blocks.2") for name in found)


def test_a_subnet_has_weights_of_its_own(supernet: Supernet) -> None:
    arch = SAMPLES[0]
    before = [p.detach().clone() for p in supernet.parameters()]
    subnet = supernet.subnet(arch)
    with torch.no_grad():
        for parameter in subnet.parameters():
            parameter.zero_()
    assert all(torch.equal(a, b) for a, b in zip(before, supernet.parameters(), strict=True))


def test_gradients_of_a_part_reach_the_supernet_and_stay_in_the_slice() -> None:
    supernet = SPACE.supernet(0)
    arch = AutoFormerArch(12, (AutoFormerLayer(2, 1.5),))
    supernet(SPACE.batch(0), arch).square().sum().backward()
    weight = supernet.largest.blocks[0].attention.query.weight
    assert weight.grad[:12, :12].all()
    assert not weight.grad[12:].any()
    assert not weight.grad[:, 12:].any()
    assert supernet.largest.blocks[1].attention.query.weight.grad is None


def test_an_architecture_of_another_space_is_refused(supernet: Supernet) -> None:
    stranger = AutoFormerArch(24, (AutoFormerLayer(2, 1.5),))
    with pytest.raises(ArchitectureError, match="hidden = 24 is outside space tiny-vision"):
        supernet.subnet(stranger)
