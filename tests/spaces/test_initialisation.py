"""Untrained weights: which spread each matrix has, and what vectors start with."""

from __future__ import annotations

import math

import pytest
import torch

import spaces
from spaces.flexibert import FlexiBertArch, Layer
from spaces.gpt2 import Gpt2Arch


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


@pytest.mark.parametrize("operation", ["sdp", "dsc5"])
def test_norms_start_at_one_and_biases_at_zero(operation: str) -> None:
    arch = FlexiBertArch(32, (Layer(operation, 2, 64, 1),))
    for name, p in spaces.NANO_FLEXIBERT.build(arch, 0).named_parameters():
        if p.ndim == 1:
            is_norm = name.endswith("norm.weight")
            assert torch.equal(p, torch.full_like(p, 1.0 if is_norm else 0.0)), name
        else:
            assert spread(p) == pytest.approx(0.02, rel=0.2), name
