"""The AutoFormer vision transformer in plain torch, read top to bottom.

Chen et al. 2021 (AutoFormer): a pre-norm encoder with a class token, absolute positions and, in
every layer, relative positions of keys and values in two dimensions. Shapes: B images, g patches
along a side, T = g g + 1 tokens, h hidden, n heads, w head width, f MLP width. Blocks have taps
(see `spaces.taps`) for the statistics A, H and S.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from spaces.initialisation import allocate
from spaces.taps import EMBEDDING, HEAD, EndWeight, Tap, table

if TYPE_CHECKING:
    from spaces.autoformer.space import AutoFormerArch, AutoFormerSpace

INIT_STD = 0.02


class AutoFormer(nn.Module):
    """Images (B, 3, H, W) to the final hidden state (B, T, h)."""

    def __init__(self, space: AutoFormerSpace, arch: AutoFormerArch) -> None:
        super().__init__()
        h = arch.hidden
        self.embedding = PatchEmbedding(space.patch, space.grid, h)
        self.blocks = nn.ModuleList(
            Block(h, layer.heads, space.head_width, space.inner(arch, layer), space.clip)
            for layer in arch.layers
        )
        self.norm = nn.LayerNorm(h)
        self.head = nn.Linear(h, space.classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self.embedding(images)
        for block in self.blocks:
            x = block(x)
        hidden: Tensor = self.norm(x)
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        """(B, T, h) to (B, classes): the head of the mean over patches, as AutoFormer trains."""
        scores: Tensor = self.head(hidden[:, 1:].mean(1))
        return scores

    def ends(self) -> dict[str, list[EndWeight]]:
        """The patches' projection and the positions; the head of the classes."""
        projection, position = self.embedding.projection.weight, self.embedding.position
        return {
            EMBEDDING: [EndWeight(projection), table(position)],
            HEAD: [table(self.head.weight)],
        }


class PatchEmbedding(nn.Module):
    """Patches, projected, after a class token; positions added: (B, 3, H, W) to (B, T, h)."""

    def __init__(self, patch: int, grid: int, h: int) -> None:
        super().__init__()
        self.projection = nn.Conv2d(3, h, patch, stride=patch)
        self.class_token = nn.Parameter(torch.empty(1, 1, h))
        self.position = nn.Parameter(torch.empty(1, grid * grid + 1, h))

    def forward(self, images: Tensor) -> Tensor:
        patches = self.projection(images).flatten(2).transpose(1, 2)
        first = self.class_token.expand(len(images), -1, -1)
        return torch.cat([first, patches], dim=1) + self.position


class Block(nn.Module):
    """Norm before attention and before the MLP, each added to the stream."""

    def __init__(self, h: int, heads: int, width: int, f: int, clip: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(h)
        self.attention = Attention(h, heads, width, clip)
        self.feed_forward_norm = nn.LayerNorm(h)
        self.feed_forward = FeedForward(h, f)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        y: Tensor = x + self.feed_forward(self.feed_forward_norm(x))
        return y


class Attention(nn.Module):
    """Self-attention with relative positions of the keys in scores and values."""

    def __init__(self, h: int, heads: int, width: int, clip: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(h, heads * width) for _ in range(3))
        self.key_positions = RelativePositions(width, clip)
        self.value_positions = RelativePositions(width, clip)
        self.output = nn.Linear(heads * width, h)
        self.tap_q, self.tap_k, self.tap_v, self.tap_s = Tap("H"), Tap("H"), Tap("H"), Tap("S")

    def forward(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        q, k, v = self.tap_q(self.query(x)), self.tap_k(self.key(x)), self.tap_v(self.value(x))
        q, k, v = (y.view(B, T, self.heads, -1).transpose(1, 2) for y in (q, k, v))  # (B, n, T, w)
        scores = q @ k.transpose(-1, -2) + self.key_positions.scores(q)
        probabilities = self.tap_s((scores / math.sqrt(q.shape[-1])).softmax(-1))  # (B, n, T, T)
        mixed = probabilities @ v + self.value_positions.values(probabilities)
        y: Tensor = self.output(mixed.transpose(1, 2).reshape(B, T, -1))
        return y


class RelativePositions(nn.Module):
    """A vector for every pair of tokens: one for their rows' distance plus one for their columns'.

    Row 0 of each table is for pairs with the class token, the others for distances from -clip to
    clip. The vectors of all pairs are never materialised: summing over the keys of one row or
    column first gives the same result and is g times cheaper.
    """

    def __init__(self, width: int, clip: int) -> None:
        super().__init__()
        self.clip = clip
        self.vertical = nn.Parameter(torch.empty(2 * clip + 2, width))
        self.horizontal = nn.Parameter(torch.empty(2 * clip + 2, width))

    def scores(self, q: Tensor) -> Tensor:
        """Inner products of queries (B, n, T, w) with the vectors of their pairs: (B, n, T, T)."""
        rows, columns, first = self._vectors(q)
        patches = _as_grid(q[:, :, 1:])  # (B, n, g, g, w)
        by_row = torch.einsum("bnrcw,rsw->bnrcs", patches, rows)
        by_column = torch.einsum("bnrcw,ctw->bnrct", patches, columns)
        inner = (by_row.unsqueeze(-1) + by_column.unsqueeze(-2)).flatten(4).flatten(2, 3)
        with_first = (q * first).sum(-1, keepdim=True)  # (B, n, T, 1)
        below = torch.cat([with_first[:, :, 1:], inner], dim=-1)
        return torch.cat([with_first[:, :, :1].expand(-1, -1, -1, q.shape[2]), below], dim=2)

    def values(self, probabilities: Tensor) -> Tensor:
        """The vectors of the pairs weighted (B, n, T, T) and added up over keys: (B, n, T, w)."""
        rows, columns, first = self._vectors(probabilities)
        g = len(rows)
        inner = _as_grid(probabilities[:, :, 1:, 1:]).unflatten(-1, (g, g))  # (B, n, g, g, g, g)
        by_row = torch.einsum("bnrcs,rsw->bnrcw", inner.sum(-1), rows)
        by_column = torch.einsum("bnrct,ctw->bnrcw", inner.sum(-2), columns)
        patches = (by_row + by_column).flatten(2, 3) + probabilities[:, :, 1:, :1] * first
        return torch.cat([probabilities[:, :, :1].sum(-1, keepdim=True) * first, patches], dim=2)

    def _vectors(self, like: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The vectors of rows and of columns (g, g, w), and of pairs with the class token (w,)."""
        g = math.isqrt(like.shape[2] - 1)
        places = _places(g, self.clip).to(self.vertical.device)
        first = self.vertical[0] + self.horizontal[0]
        return self.vertical[places], self.horizontal[places], first


def _as_grid(x: Tensor) -> Tensor:
    """(B, n, g g, ...) to (B, n, g, g, ...)."""
    g = math.isqrt(x.shape[2])
    squared: Tensor = x.unflatten(2, (g, g))
    return squared


@lru_cache(maxsize=16)
def _places(g: int, clip: int) -> Tensor:
    """The table's row for a query at i and a key at j, (g, g), with numbers wherever it is run."""
    at = torch.arange(g, device="cpu")
    return (at[None, :] - at[:, None]).clamp(-clip, clip) + clip + 1


class FeedForward(nn.Module):
    """h to f, GELU, back to h."""

    def __init__(self, h: int, f: int) -> None:
        super().__init__()
        self.input = nn.Linear(h, f)
        self.output = nn.Linear(f, h)
        self.tap_a = Tap("A")

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.output(self.tap_a(functional.gelu(self.input(x))))
        return y


def build(space: AutoFormerSpace, arch: AutoFormerArch, seed: int) -> AutoFormer:
    """The untrained encoder: weights, tables, positions and class token N(0, 0.02), biases 0.

    AutoFormer truncates the normal distribution at 100 standard deviations, which has no effect.
    """
    return allocate(lambda: AutoFormer(space, arch), seed, INIT_STD)
