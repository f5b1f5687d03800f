"""Every model against a plain one in NumPy, with random weights and biases."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

from spaces.autoformer import AutoFormerArch, AutoFormerLayer, AutoFormerSpace
from spaces.base import Space
from spaces.flexibert import FlexiBertSpace
from spaces.flexibert.space import OPERATIONS, FlexiBertArch, Layer
from spaces.gpt2 import Gpt2Space
from spaces.gpt2.space import EMBED_LIKE_MODEL, Gpt2Arch
from spaces.openlm import OpenLmArch, OpenLmSpace
from spaces.pit import PitArch, PitSpace
from spaces.transformer_xl import TransformerXlSpace
from tests.spaces import plain_models

GPT2 = Gpt2Space(
    name="tiny-gpt2",
    n_layers=(2,),
    d_model=(8,),
    d_inner=(16, 24),
    accepted_d_model=(8,),
    accepted_d_inner=(12, 20),
    n_head=(2, 4),
    d_embed=(4, 8),
    div_val=(1, 2),
    vocabulary=23,
    cutoffs=(7, 15),
    context=9,
)
TRANSFORMER_XL = TransformerXlSpace(
    name="tiny-transformer-xl",
    n_layers=(2,),
    d_model=(8,),
    d_inner=(16, 24),
    accepted_d_model=(8,),
    accepted_d_inner=(12, 20),
    n_head=(2, 4),
    d_embed=(4, 8),
    div_val=(1, 2),
    vocabulary=23,
    cutoffs=(7, 15),
    context=5,
    memory=2,
)
OPENLM = OpenLmSpace(
    name="tiny-openlm", widths=(12,), depths=(2,), heads=(2, 4, 5), vocabulary=23, context=9
)
FLEXIBERT = FlexiBertSpace(
    name="tiny-flexibert",
    hidden=(8, 16),
    n_layers=(1, 2),
    ffn=(12, 20),
    vocabulary=23,
    context=9,
    embedding=8,
)
PIT = PitSpace(
    name="tiny-pit",
    base_dims=(2,),
    ratios=(2,),
    depths=((1,), (2,), (1,)),
    heads=(1, 2, 4),
    image=14,
    patch=4,
    stride=2,
    classes=5,
)
AUTOFORMER = AutoFormerSpace(
    name="tiny-vision",
    hidden=(12,),
    n_layers=(2,),
    heads=(1, 2),
    ratios=(1.5, 2.0),
    image=12,
    patch=4,
    classes=5,
    head_width=6,
    clip=1,
)
TOKENS = np.array([3, 6, 7, 14, 15, 22, 0])


def model_and_parameters(space: Space[Any], arch: Any) -> tuple[nn.Module, dict[str, Any]]:
    """The model in float64 with every parameter random, and these by name."""
    model = space.build(arch, 0).double()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) / 3)
    return model, {name: p.detach().numpy() for name, p in model.named_parameters()}


def check(hidden: torch.Tensor, expected: Any) -> None:
    np.testing.assert_allclose(hidden.detach().numpy()[0], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("d_embed", "div_val"), [(4, 2), (4, 1), (EMBED_LIKE_MODEL, 1)])
def test_gpt2_is_the_plain_decoder(d_embed: int, div_val: int) -> None:
    arch = Gpt2Arch(8, (2, 4), (12, 20), d_embed, div_val)
    model, parameters = model_and_parameters(GPT2, arch)
    check(model(torch.tensor(TOKENS[None])), plain_models.gpt2(parameters, arch, TOKENS))


@pytest.mark.parametrize(("d_embed", "div_val"), [(4, 2), (EMBED_LIKE_MODEL, 1)])
@pytest.mark.parametrize("memory", [0, 2, 4])
def test_transformer_xl_is_the_plain_decoder_over_several_segments(
    memory: int, d_embed: int, div_val: int
) -> None:
    space = replace(TRANSFORMER_XL, context=3 + memory, memory=memory)
    arch = Gpt2Arch(8, (2, 4), (12, 20), d_embed, div_val)
    model, parameters = model_and_parameters(space, arch)
    expected = plain_models.transformer_xl(parameters, arch, TOKENS, 3, memory)
    check(model(torch.tensor(TOKENS[None])), expected)


def test_the_memory_of_transformer_xl_is_not_differentiated() -> None:
    model, _ = model_and_parameters(TRANSFORMER_XL, Gpt2Arch(8, (2, 4), (12, 20), 4, 1))
    block = model.blocks[0]
    x = torch.randn(1, 7, 8, dtype=torch.float64, requires_grad=True)
    (gradient,) = torch.autograd.grad(block(x)[0, 4].square().sum(), x)  # of the second segment
    assert gradient[0].abs().sum(-1).ne(0).tolist() == [False] * 3 + [True] * 2 + [False] * 2
    changed = x.detach().clone()
    changed[0, 1] += 1  # in the memory of the second segment, but not of the third
    moved = (block(changed) - block(x)).abs().sum(-1)[0] > 1e-6
    assert moved.tolist() == [False, True, True, True, True, True, False]


def test_segments_are_counted_in_the_flops_of_transformer_xl() -> None:
    arch = Gpt2Arch(8, (2, 4), (12, 20), 4, 2)
    model = TRANSFORMER_XL.build(arch, 0)
    for tokens in (2, 3, 7, 11):
        counter = FlopCounterMode(display=False)
        with counter, torch.no_grad():
            model(torch.zeros(1, tokens, dtype=torch.int64))
        assert TRANSFORMER_XL.flops(arch, tokens) == counter.get_total_flops()


@pytest.mark.parametrize("heads", [2, 4, 5])  # of widths 6, 3 (odd) and 2 (less than the model)
def test_openlm_is_the_plain_decoder_and_its_head_is_its_own(heads: int) -> None:
    model, parameters = model_and_parameters(OPENLM, OpenLmArch(12, 2, heads))
    tokens = torch.tensor(TOKENS[None])
    hidden = model(tokens)
    expected = plain_models.openlm(parameters, OpenLmArch(12, 2, heads), TOKENS)
    check(hidden, expected)
    logits = expected[:-1] @ parameters["head.weight"].T
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    losses = -np.log(chances[np.arange(len(TOKENS) - 1), TOKENS[1:]])
    check(model.token_losses(hidden, tokens), losses)


@pytest.mark.parametrize("hidden", [8, 16])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_flexibert_is_the_plain_encoder(operation: str, hidden: int) -> None:
    arch = FlexiBertArch(hidden, (Layer(operation, 4, 12, 3), Layer("sdp", 2, 20, 1)))
    model, parameters = model_and_parameters(FLEXIBERT, arch)
    check(model(torch.tensor(TOKENS[None])), plain_models.flexibert(parameters, arch, TOKENS))


def test_pit_is_the_plain_model_and_its_class_token_has_the_logits() -> None:
    arch = PitArch(2, 2, (1, 2, 1), (1, 2, 4))
    model, parameters = model_and_parameters(PIT, arch)
    image = np.random.default_rng(0).normal(size=(3, 14, 14))
    hidden = model(torch.tensor(image[None]))
    expected = plain_models.pit(parameters, arch, image, PIT.stride)
    check(hidden, expected)
    logits = parameters["head.weight"] @ expected[0] + parameters["head.bias"]
    check(model.logits(hidden), logits)


def test_autoformer_is_the_plain_model_and_the_mean_of_patches_has_the_logits() -> None:
    arch = AutoFormerArch(12, (AutoFormerLayer(2, 1.5), AutoFormerLayer(1, 2.0)))
    model, parameters = model_and_parameters(AUTOFORMER, arch)
    image = np.random.default_rng(0).normal(size=(3, 12, 12))
    hidden = model(torch.tensor(image[None]))
    expected = plain_models.autoformer(parameters, arch, image, AUTOFORMER.patch, AUTOFORMER.clip)
    check(hidden, expected)
    logits = parameters["head.weight"] @ expected[1:].mean(0) + parameters["head.bias"]
    check(model.logits(hidden), logits)


@pytest.mark.parametrize("space", [GPT2, TRANSFORMER_XL], ids=lambda space: space.name)
@pytest.mark.parametrize(("d_embed", "div_val"), [(4, 2), (4, 1), (EMBED_LIKE_MODEL, 1)])
def test_the_adaptive_softmax_is_a_distribution_over_words(
    d_embed: int, div_val: int, space: Gpt2Space
) -> None:
    """Of each next token, -log of its cluster's share and of its share in the cluster."""
    model, p = model_and_parameters(space, Gpt2Arch(8, (2, 4), (12, 20), d_embed, div_val))
    everything = [np.array([0, word]) for word in range(GPT2.vocabulary)]
    losses = []
    for pair in everything:
        tokens = torch.tensor(pair[None])
        losses.append(model.token_losses(model(tokens), tokens).item())
    assert np.exp(-np.array(losses)).sum() == pytest.approx(1, abs=1e-12)
    tokens = torch.tensor([[0, 9]])  # the third word of the second cluster
    hidden = model(tokens).detach().numpy()[0, 0]
    tables = [p[f"embedding.tables.{i}"] for i in range(3 if div_val > 1 else 1)]
    if div_val == 1:
        tables = np.split(tables[0], [7, 15])
    narrow = hidden @ p["head.projection"] if "head.projection" in p else hidden
    head = np.concatenate([tables[0] @ narrow, p["head.cluster_weight"] @ narrow])
    head += np.concatenate([p["head.bias"][:7], p["head.cluster_bias"]])
    index = 1 if div_val > 1 else 0
    name = f"embedding.projections.{index}"
    inside = tables[1] @ (hidden @ p[name] if name in p else hidden) + p["head.bias"][7:15]
    expected = head[7] - np.log(np.exp(head).sum()) + inside[2] - np.log(np.exp(inside).sum())
    assert losses[9] == pytest.approx(-expected, rel=1e-9)
