"""Tokens as a square grid and back, for models that have convolutions between token operations."""

from __future__ import annotations

import math

from torch import Tensor


def as_grid(x: Tensor) -> Tensor:
    """(B, g g, d) to (B, d, g, g)."""
    g = math.isqrt(x.shape[1])
    grid: Tensor = x.transpose(1, 2).unflatten(2, (g, g))
    return grid


def as_tokens(x: Tensor) -> Tensor:
    """(B, d, g, g) to (B, g g, d)."""
    # Not flatten and transpose: of a batch of one, their gradient has strides with which torch 2.13
    # computes wrong gradients of a BatchNorm in eval mode.
    return x.permute(0, 2, 3, 1).flatten(1, 2)
