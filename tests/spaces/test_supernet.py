"""The supernet of every family: an architecture inside it is the built model with its weights."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch

import spaces
from spaces.autoformer import AutoFormerArch, AutoFormerLayer, AutoFormerSpace
from spaces.base import Space
from spaces.bignas import BigNasSpace
from spaces.errors import ArchitectureError, SpaceError
from spaces.gpt2 import Gpt2Space
from spaces.sharing import Term
from spaces.supernet import Supernet

VISION = AutoFormerSpace(
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
TEXT = Gpt2Space(
    name="tiny-text",
    n_layers=(1, 2, 3),
    d_model=(8, 12, 16),
    d_inner=(16, 20, 32),
    min_ratio=1,
    n_head=(2, 4),
    d_embed=(-1,),
    div_val=(1,),
    accepted_d_model=(8, 12, 16),
    accepted_d_inner=(16, 20, 32),
    vocabulary=30,
    cutoffs=(),
    context=10,
    batch_shape=(3, 10),
)
CONVOLUTIONS = BigNasSpace(
    name="tiny-convolutions",
    resolutions=(16, 24),
    stems=(4, 8),
    channels=((4, 8), (8, 12, 16)),
    depths=((1, 2), (1, 2, 3)),
    kernels=((3,), (3, 5)),
    expansions=(1, 2),
    strides=(1, 2),
    lasts=(16, 20),
    image=16,
    classes=5,
    n_images=3,
)
FAMILIES = [VISION, TEXT, CONVOLUTIONS]
CASES = [(space, space.sample(random.Random(seed))) for space in FAMILIES for seed in range(8)]


def supernet_of(space: Space[Any]) -> Supernet[Any]:
    """A supernet whose vectors are random too, so that a wrong slice of any is seen."""
    supernet = space.supernet(3)
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for tensor in (*supernet.largest.parameters(), *supernet.largest.buffers()):
            if tensor.ndim == 1:
                tensor.copy_(torch.rand(tensor.shape, generator=generator) + 0.5)
    return supernet


def output(model: Any, batch: torch.Tensor) -> torch.Tensor:
    """The logits of images, the losses of tokens."""
    hidden = model(batch)
    found = model.logits(hidden) if hasattr(model, "logits") else model.token_losses(hidden, batch)
    assert isinstance(found, torch.Tensor)
    return found


@pytest.mark.parametrize("space", FAMILIES, ids=lambda space: space.name)
def test_the_largest_holds_every_architecture(space: Space[Any]) -> None:
    sharing, supernet = space.weight_sharing(), space.supernet(3)
    assert sharing is not None
    largest, smallest = sharing.largest(), sharing.smallest()
    sizes = [space.parameters(arch) for of, arch in CASES if of is space]
    assert space.parameters(smallest) <= min(sizes) <= max(sizes) <= space.parameters(largest)
    assert sum(p.numel() for p in supernet.parameters()) == space.parameters(largest)


@pytest.mark.slow
@pytest.mark.parametrize(("space", "arch"), CASES)
def test_a_subnet_computes_what_the_supernet_computes_for_it(space: Space[Any], arch: Any) -> None:
    supernet, batch = supernet_of(space), space.batch(0)
    built = space.build(arch, 0)
    built.load_state_dict({name: w.detach() for name, w in supernet.inherited(arch).items()})
    subnet = supernet.subnet(arch)
    assert not subnet.training
    with torch.no_grad():
        inside = supernet.call(arch, lambda model: output(model, batch))
        torch.testing.assert_close(inside, output(subnet, batch), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(output(built, batch), output(subnet, batch), rtol=0, atol=0)
        torch.testing.assert_close(supernet(batch, arch), subnet(batch), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("space", "arch"), CASES)
def test_choices_make_the_architecture_again(space: Space[Any], arch: Any) -> None:
    sharing = space.weight_sharing()
    assert sharing is not None
    split = sharing.split(arch)
    assert sharing.joined(split) == arch
    assert len(sharing.terms(arch)) == space.depth(arch) == len(sharing.source(arch))


def test_slices_are_the_first_heads_and_features_of_the_first_blocks() -> None:
    supernet = VISION.supernet(3)
    arch = AutoFormerArch(12, (AutoFormerLayer(3, 2.0), AutoFormerLayer(1, 1.5)))
    whole, found = dict(supernet.largest.named_parameters()), supernet.inherited(arch)
    key = "blocks.1.attention.key.weight"
    assert torch.equal(found[key], whole[key][:6, :12])
    output = "blocks.1.feed_forward.output.weight"
    assert torch.equal(found[output], whole[output][:12, :18])
    assert torch.equal(found["head.weight"], whole["head.weight"][:, :12])
    assert not any(name.startswith("blocks.2") for name in found)


def test_queries_keys_and_values_are_each_inherited_from_their_beginning() -> None:
    supernet = TEXT.supernet(3)
    arch = next(arch for space, arch in CASES if space is TEXT and arch.d_model == 12)
    whole, found = dict(supernet.largest.named_parameters()), supernet.inherited(arch)
    name = "blocks.0.attention.c_attn.weight"
    expected = [whole[name][:12, start : start + 12] for start in (0, 16, 32)]
    assert torch.equal(found[name], torch.cat(expected, dim=1))


def test_kernels_are_cropped_and_stages_keep_their_first_blocks() -> None:
    supernet = CONVOLUTIONS.supernet(3)
    arch = CONVOLUTIONS.from_json(
        {
            "resolution": 16,
            "stem": 4,
            "channels": [4, 12],
            "depths": [1, 2],
            "kernels": [3, 3],
            "last": 16,
        }
    )
    assert supernet.sharing.source(arch) == [0, 2, 3]
    whole, found = dict(supernet.largest.named_parameters()), supernet.inherited(arch)
    # The third block here is the second of its stage, the fourth of the supernet.
    expected = whole["blocks.3.convolution.depthwise.weight"][:24, :, 1:4, 1:4]
    assert torch.equal(found["blocks.2.convolution.depthwise.weight"], expected)
    assert supernet.sharing.terms(arch)[2] == (Term(3, "feed-forward", (12, 12, 3)),)


def test_batch_norms_get_the_statistics_of_their_own_architecture() -> None:
    supernet = supernet_of(CONVOLUTIONS)
    arch = CONVOLUTIONS.sample(random.Random(1))
    batches = [CONVOLUTIONS.batch(seed) for seed in range(3)]
    kept = {name: b.clone() for name, b in supernet.largest.named_buffers()}
    state = supernet.recomputed(arch, batches)
    stems = [supernet.subnet(arch).embedding.projection(_resized(b, arch)) for b in batches]
    means = torch.stack([stem.mean((0, 2, 3)) for stem in stems]).mean(0)
    torch.testing.assert_close(state["embedding.norm.running_mean"], means)
    assert all(torch.equal(kept[name], b) for name, b in supernet.largest.named_buffers())
    subnet = supernet.subnet(arch, state)
    assert torch.equal(subnet.embedding.norm.running_mean, state["embedding.norm.running_mean"])
    with torch.no_grad():
        inside = supernet.call(arch, lambda model: output(model, batches[0]), state)
        torch.testing.assert_close(inside, output(subnet, batches[0]), rtol=1e-5, atol=1e-5)
    assert VISION.supernet(0).recomputed(VISION.sample(random.Random(0)), batches) == {}


def _resized(images: torch.Tensor, arch: Any) -> torch.Tensor:
    size = (arch.resolution, arch.resolution)
    return torch.nn.functional.interpolate(images, size, mode="bilinear", align_corners=False)


def test_a_training_pass_leaves_the_statistics_of_the_supernet_alone() -> None:
    supernet, arch = CONVOLUTIONS.supernet(0), CONVOLUTIONS.sample(random.Random(2))
    kept = {name: b.clone() for name, b in supernet.largest.named_buffers()}
    batch = CONVOLUTIONS.batch()
    scale = supernet.call(arch, lambda model: output(model, 100 * batch), is_training=True)
    same = supernet.call(arch, lambda model: output(model, batch), is_training=True)
    torch.testing.assert_close(scale, same, rtol=0.05, atol=0.05)  # normalised by the batch itself
    assert all(torch.equal(kept[name], b) for name, b in supernet.largest.named_buffers())


def test_a_subnet_has_weights_of_its_own() -> None:
    supernet = VISION.supernet(3)
    before = [p.detach().clone() for p in supernet.parameters()]
    subnet = supernet.subnet(CASES[0][1])
    with torch.no_grad():
        for parameter in subnet.parameters():
            parameter.zero_()
    assert all(torch.equal(a, b) for a, b in zip(before, supernet.parameters(), strict=True))


def test_gradients_of_a_part_reach_the_supernet_and_stay_in_the_slice() -> None:
    supernet = VISION.supernet(0)
    arch = AutoFormerArch(12, (AutoFormerLayer(2, 1.5),))
    supernet(VISION.batch(0), arch).square().sum().backward()
    blocks: Any = supernet.largest.blocks
    weight = blocks[0].attention.query.weight
    assert weight.grad[:12, :12].all()
    assert not weight.grad[12:].any()
    assert not weight.grad[:, 12:].any()
    assert blocks[1].attention.query.weight.grad is None


def test_an_architecture_of_another_space_is_refused() -> None:
    stranger = AutoFormerArch(24, (AutoFormerLayer(2, 1.5),))
    with pytest.raises(ArchitectureError, match="hidden = 24 is outside space tiny-vision"):
        VISION.supernet(0).subnet(stranger)
    with pytest.raises(SpaceError, match="space flexibert has no supernet"):
        spaces.get("flexibert").supernet(0)
