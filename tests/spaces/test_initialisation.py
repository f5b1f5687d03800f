"""Untrained weights: which spread each matrix has, and what vectors start with."""

from __future__ import annotations

import math

import pytest
import torch

import spaces
from spaces.flexibert import FlexiBertArch, Layer
from spaces.gpt2 import Gpt2Arch
from spaces.initialisation import ByName, drawn_as
from spaces.openlm import OpenLmArch


def spread(parameter: torch.Tensor) -> float:
    return float(parameter.detach().double().square().mean().sqrt())


def test_gpt2_shrinks_residual_projections_with_depth_and_has_narrow_projections() -> None:
    model = spaces.GPT2.build(Gpt2Arch(128, (2,) * 8, (256,) * 8, 128, 2), 0)
    found = {name: spread(p) for name, p in model.named_parameters() if p.ndim >= 2}
    residual = 0.02 / math.sqrt(2 * 8)
    for name, value in found.items():
        expected = 0.02
        if name.endswith("c_proj.weight"):
            expected = residual
        elif "projection" in name:
            expected = 0.01
        assert value == pytest.approx(expected, rel=0.15), name
    assert sum("c_proj" in name for name in found) == 16


def test_openlm_divides_by_the_inputs_and_the_outputs_of_blocks_by_their_place() -> None:
    model = spaces.get("openlm").build(OpenLmArch(96, 4, 4), 0)
    found = {name: spread(p) for name, p in model.named_parameters() if p.ndim >= 2}
    for name, value in found.items():
        expected = 1 / math.sqrt(256 if "feed_forward.output" in name else 96)
        if ".output." in name:
            expected /= math.sqrt(2 * (int(name.split(".")[1]) + 1))
        assert value == pytest.approx(expected, rel=0.05), name
    assert sum(".output." in name for name in found) == 8


@pytest.mark.parametrize("operation", ["sdp", "dsc5"])
def test_norms_start_at_one_and_biases_at_zero(operation: str) -> None:
    arch = FlexiBertArch(32, (Layer(operation, 2, 64, 1),))
    for name, p in spaces.NANO_FLEXIBERT.build(arch, 0).named_parameters():
        if p.ndim == 1:
            is_norm = name.endswith("norm.weight")
            assert torch.equal(p, torch.full_like(p, 1.0 if is_norm else 0.0)), name
        else:
            assert spread(p) == pytest.approx(0.02, rel=0.2), name


@pytest.mark.slow
def test_weights_drawn_by_name_depend_on_name_and_shape_alone() -> None:
    short = Gpt2Arch(128, (2,) * 4, (256, 512, 256, 256), 128, 1)
    long = Gpt2Arch(128, (4,) * 4, (256, 256, 256, 256), 256, 1)
    first, second, other = (
        dict(spaces.GPT2.build(arch, ByName(seed)).named_parameters())
        for arch, seed in ((short, 0), (long, 0), (long, 1))
    )
    alike = [n for n in first.keys() & second.keys() if first[n].shape == second[n].shape]
    matrices = [name for name in alike if first[name].ndim >= 2]
    assert len(matrices) == 14 + 1  # all of the blocks but two; the positions
    for name in alike:
        assert torch.equal(first[name], second[name]), name
    drawn = [second[name].flatten()[:1000] for name in matrices]
    assert len({tuple(numbers.tolist()) for numbers in drawn}) == len(matrices)
    assert not any(torch.equal(second[name], other[name]) for name in matrices)
    # Larger than the list of numbers, which is 16.8 million long.
    large = Gpt2Arch(128, (2,) * 2, (256,) * 2, 512, 1)
    table = dict(spaces.GPT2.build(large, ByName(0)).named_parameters())["embedding.tables.0"]
    assert table.numel() > 2**24
    assert spread(table[-2000:]) == pytest.approx(0.02, rel=0.01)
    assert len(torch.unique(table[:, :3].detach(), dim=0)) == len(table)
    assert float(table.detach().mean().abs()) < 1e-4


def test_a_weight_that_was_changed_is_no_longer_as_drawn() -> None:
    arch = FlexiBertArch(32, (Layer("sdp", 2, 64, 1),))
    model = spaces.NANO_FLEXIBERT.build(arch, ByName(3))
    [weight] = [p for n, p in model.named_parameters() if n.endswith("attention.query.weight")]
    found = drawn_as(weight)
    assert found is not None
    assert (found.seed, found.shape) == (3, tuple(weight.shape))
    with torch.no_grad():
        weight.mul_(2)
    assert drawn_as(weight) is None
    plain = spaces.NANO_FLEXIBERT.build(arch, 3)
    assert all(drawn_as(parameter) is None for parameter in plain.parameters())
