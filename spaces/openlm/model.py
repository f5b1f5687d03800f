"""The OpenLM decoder, read top to bottom.

Recipe: Gadre et al. (2024), mlfoundations/scaling. Norms before attention and before the
feed-forward layer, rotary positions, SwiGLU, no biases, an output head of its own. Shapes: B batch,
T tokens, d width, q width of all heads, n heads, w head width, f inner width.
Blocks have taps (see `spaces.taps`) for the statistics A, H and S.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from spaces.initialisation import allocate
from spaces.openlm.space import attention_width, inner_width
from spaces.taps import EMBEDDING, HEAD, EndWeight, Tap, table

if TYPE_CHECKING:
    from spaces.openlm.space import OpenLmArch, OpenLmSpace

LAYER_NORM_EPS = 1e-5
ROTARY_BASE = 10_000.0


class OpenLm(nn.Module):
    """Token ids (B, T) to the final hidden state (B, T, d)."""

    def __init__(self, space: OpenLmSpace, arch: OpenLmArch) -> None:
        super().__init__()
        d = arch.width
        self.embedding = nn.Embedding(space.vocabulary, d)
        self.blocks = nn.ModuleList(
            Block(d, arch.heads, attention_width(arch), inner_width(d)) for _ in range(arch.depth)
        )
        self.norm = norm(d)
        self.head = nn.Linear(d, space.vocabulary, bias=False)

    def forward(self, tokens: Tensor) -> Tensor:
        x: Tensor = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        hidden: Tensor = self.norm(x)
        return hidden

    def token_losses(self, hidden: Tensor, tokens: Tensor) -> Tensor:
        """Cross-entropy of each next token given the hidden states so far: (B, T - 1)."""
        logits = self.head_logits(hidden[:, :-1]).transpose(1, 2)
        return functional.cross_entropy(logits, tokens[:, 1:], reduction="none")

    def head_logits(self, hidden: Tensor) -> Tensor:
        """(B, T, d) to the logits of all words."""
        logits: Tensor = self.head(hidden)
        return logits

    def ends(self) -> dict[str, list[EndWeight]]:
        """The two tables, which are not shared."""
        return {EMBEDDING: [table(self.embedding.weight)], HEAD: [table(self.head.weight)]}


class Block(nn.Module):
    """Norm before attention and before the feed-forward layer, each added to the stream."""

    def __init__(self, d: int, heads: int, q: int, inner: int) -> None:
        super().__init__()
        self.attention_norm = norm(d)
        self.attention = Attention(d, heads, q)
        self.feed_forward_norm = norm(d)
        self.feed_forward = FeedForward(d, inner)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        y: Tensor = x + self.feed_forward(self.feed_forward_norm(x))
        return y


class Attention(nn.Module):
    """Causal self-attention with rotary positions; queries, keys and values side by side."""

    def __init__(self, d: int, heads: int, q: int) -> None:
        super().__init__()
        self.heads = heads
        self.input = nn.Linear(d, 3 * q, bias=False)
        self.output = nn.Linear(q, d, bias=False)
        self.tap_q, self.tap_k, self.tap_v, self.tap_s = Tap("H"), Tap("H"), Tap("H"), Tap("S")

    def forward(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        q, k, v = self.input(x).chunk(3, dim=-1)
        q, k, v = self.tap_q(q), self.tap_k(k), self.tap_v(v)
        q, k, v = (y.view(B, T, self.heads, -1).transpose(1, 2) for y in (q, k, v))  # (B, n, T, w)
        scores = rotated(q) @ rotated(k).transpose(-1, -2) / math.sqrt(q.shape[-1])  # (B, n, T, T)
        future = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        probabilities = self.tap_s(scores.masked_fill(future, -math.inf).softmax(-1))
        y: Tensor = self.output((probabilities @ v).transpose(1, 2).reshape(B, T, -1))
        return y


class FeedForward(nn.Module):
    """d to f twice, one through SiLU as a gate of the other, back to d."""

    def __init__(self, d: int, inner: int) -> None:
        super().__init__()
        self.input = nn.Linear(d, 2 * inner, bias=False)
        self.output = nn.Linear(inner, d, bias=False)
        self.tap_a = Tap("A")

    def forward(self, x: Tensor) -> Tensor:
        gate, value = self.input(x).chunk(2, dim=-1)
        y: Tensor = self.output(self.tap_a(functional.silu(gate) * value))
        return y


def rotated(x: Tensor) -> Tensor:
    """(B, n, T, w) with feature i and feature i + w/2 turned by the token's place.

    The last feature of an odd head width stays as it is.
    """
    T, half = x.shape[-2], x.shape[-1] // 2
    places = torch.arange(T, device=x.device, dtype=x.dtype)
    speeds = ROTARY_BASE ** (-torch.arange(half, device=x.device, dtype=x.dtype) / half)
    angles = places.unsqueeze(1) * speeds  # (T, w/2)
    cos, sin = angles.cos(), angles.sin()
    a, b, rest = x.split([half, half, x.shape[-1] - 2 * half], dim=-1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin, rest], dim=-1)


def norm(d: int) -> nn.LayerNorm:
    """A LayerNorm with a gain and without a bias."""
    return nn.LayerNorm(d, eps=LAYER_NORM_EPS, bias=False)


_OUTPUT = re.compile(r"blocks\.(\d+)\..*\.output\.weight")


def build(space: OpenLmSpace, arch: OpenLmArch, seed: int) -> OpenLm:
    """The untrained decoder: 1 / sqrt(fan in), both outputs of block i (from 1) / sqrt(2 i).

    The release cuts the normal distribution at three standard deviations; here it is whole.
    """

    def std(name: str, weight: Tensor) -> float:
        of_block = _OUTPUT.fullmatch(name)
        depth_factor = math.sqrt(2 * (int(of_block[1]) + 1)) if of_block else 1.0
        return 1 / math.sqrt(weight.shape[1]) / depth_factor

    return allocate(lambda: OpenLm(space, arch), seed, std)
