"""The pooling-based vision transformer in plain torch, read top to bottom.

Heo et al. 2021 (PiT): overlapping patches, a class token, three stages of pre-norm blocks. Between
stages the grid of tokens is halved and widened. Shapes: B images, g tokens along a side, T = g g +
1, w the width of a stage, n heads, f MLP width. Blocks have taps (see `spaces.taps`) for the
statistics A, H and S. Pooling belongs to the first block of the stage it leads to, so that the
blocks in sequence are the whole model from the embedding to the last norm.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from spaces.autoformer.model import FeedForward
from spaces.initialisation import allocate
from spaces.taps import EMBEDDING, HEAD, EndWeight, Tap, table

if TYPE_CHECKING:
    from spaces.pit.space import PitArch, PitSpace

LAYER_NORM_EPS = 1e-6
INIT_STD = 0.02


class Pit(nn.Module):
    """Images (B, 3, H, W) to the final hidden state (B, T, w) of the last stage."""

    def __init__(self, space: PitSpace, arch: PitArch) -> None:
        super().__init__()
        widths = space.widths(arch)
        self.embedding = PatchEmbedding(space.patch, space.stride, space.grids[0], widths[0])
        self.blocks = nn.ModuleList()
        before = widths[0]
        for width, heads, depth in zip(widths, arch.heads, arch.depths, strict=True):
            for index in range(depth):
                is_first = index == 0 and len(self.blocks) > 0
                pool = Pooling(before, width) if is_first else nn.Identity()
                self.blocks.append(Block(pool, width, heads, width * arch.ratio))
            before = width
        self.norm = nn.LayerNorm(before, eps=LAYER_NORM_EPS)
        self.head = nn.Linear(before, space.classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self.embedding(images)
        for block in self.blocks:
            x = block(x)
        hidden: Tensor = self.norm(x)
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        """(B, T, w) to (B, classes): the head of the class token."""
        scores: Tensor = self.head(hidden[:, 0])
        return scores

    def ends(self) -> dict[str, list[EndWeight]]:
        """The patches' projection and the positions; the head of the classes."""
        projection, position = self.embedding.projection.weight, self.embedding.position
        return {
            EMBEDDING: [EndWeight(projection), EndWeight(position, features=1)],
            HEAD: [table(self.head.weight)],
        }


class PatchEmbedding(nn.Module):
    """Overlapping patches with positions, after a class token: (B, 3, H, W) to (B, T, w)."""

    def __init__(self, patch: int, stride: int, grid: int, w: int) -> None:
        super().__init__()
        self.projection = nn.Conv2d(3, w, patch, stride=stride)
        self.position = nn.Parameter(torch.empty(1, w, grid, grid))
        self.class_token = nn.Parameter(torch.empty(1, 1, w))

    def forward(self, images: Tensor) -> Tensor:
        patches = (self.projection(images) + self.position).flatten(2).transpose(1, 2)
        return torch.cat([self.class_token.expand(len(images), -1, -1), patches], dim=1)


class Block(nn.Module):
    """Pooling if a stage starts here; then attention and MLP, each after a norm."""

    def __init__(self, pool: nn.Module, w: int, heads: int, f: int) -> None:
        super().__init__()
        self.pool = pool
        self.attention_norm = nn.LayerNorm(w, eps=LAYER_NORM_EPS)
        self.attention = Attention(w, heads)
        self.feed_forward_norm = nn.LayerNorm(w, eps=LAYER_NORM_EPS)
        self.feed_forward = FeedForward(w, f)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(x)
        x = x + self.attention(self.attention_norm(x))
        y: Tensor = x + self.feed_forward(self.feed_forward_norm(x))
        return y


class Pooling(nn.Module):
    """The grid halved and widened by a depth-wise convolution, the class token by a Linear.

    Every output channel reads one input channel, so the new width is a multiple of the old.
    """

    def __init__(self, before: int, w: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(before, w, 3, stride=2, padding=1, groups=before)
        self.class_token = nn.Linear(before, w)

    def forward(self, x: Tensor) -> Tensor:
        g = math.isqrt(x.shape[1] - 1)
        grid = x[:, 1:].transpose(1, 2).unflatten(2, (g, g))  # (B, w, g, g)
        pooled = self.convolution(grid).flatten(2).transpose(1, 2)
        return torch.cat([self.class_token(x[:, :1]), pooled], dim=1)


class Attention(nn.Module):
    """Self-attention, every token to every token."""

    def __init__(self, w: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(w, 3 * w)
        self.output = nn.Linear(w, w)
        self.tap_q, self.tap_k, self.tap_v, self.tap_s = Tap("H"), Tap("H"), Tap("H"), Tap("S")

    def forward(self, x: Tensor) -> Tensor:
        B, T, w = x.shape
        q, k, v = self.qkv(x).split(w, dim=-1)
        q, k, v = self.tap_q(q), self.tap_k(k), self.tap_v(v)
        q, k, v = (y.view(B, T, self.heads, -1).transpose(1, 2) for y in (q, k, v))
        scores = q @ k.transpose(-1, -2) / math.sqrt(w // self.heads)  # (B, n, T, T)
        mixed = self.tap_s(scores.softmax(-1)) @ v
        y: Tensor = self.output(mixed.transpose(1, 2).reshape(B, T, w))
        return y


def build(space: PitSpace, arch: PitArch, seed: int) -> Pit:
    """The untrained model: weights, positions and class token N(0, 0.02), biases 0."""
    return allocate(lambda: Pit(space, arch), seed, INIT_STD)
