"""The Transformer-XL decoder, read top to bottom.

Dai et al. (2019), with heads and an inner width per layer as in LTS (Javaheripi et al., 2022).
Shapes: B batch, T tokens, d model width, n heads, w head width, t tokens of a segment, m tokens of
its memory, K = m + t. Blocks have taps (see `spaces.taps`) for the statistics A, H and S.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from spaces.gpt2.model import (
    INIT_STD,
    LAYER_NORM_EPS,
    AdaptiveDecoder,
    AdaptiveSoftmax,
    projection_stds,
)
from spaces.initialisation import allocate
from spaces.taps import Tap

if TYPE_CHECKING:
    from spaces.gpt2 import Gpt2Arch
    from spaces.transformer_xl.space import TransformerXlSpace

LONGEST_WAVE = 10_000.0


class TransformerXl(AdaptiveDecoder):
    """Token ids (B, T) to the final hidden state (B, T, d)."""

    def __init__(self, space: TransformerXlSpace, arch: Gpt2Arch) -> None:
        super().__init__(space, arch)
        lengths = space.segment, space.memory
        layers = zip(arch.n_head, arch.d_inner, strict=True)
        self.blocks = nn.ModuleList(Block(arch.d_model, *layer, *lengths) for layer in layers)
        self.head = AdaptiveSoftmax(self.embedding)

    def forward(self, tokens: Tensor) -> Tensor:
        x: Tensor = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return x


class Block(nn.Module):
    """Attention and the feed-forward layer, each added to the stream, which is then normalised."""

    def __init__(self, d: int, heads: int, inner: int, segment: int, memory: int) -> None:
        super().__init__()
        self.attention = Attention(d, heads, segment, memory)
        self.attention_norm = nn.LayerNorm(d, eps=LAYER_NORM_EPS)
        self.feed_forward = FeedForward(d, inner)
        self.feed_forward_norm = nn.LayerNorm(d, eps=LAYER_NORM_EPS)

    def forward(self, x: Tensor) -> Tensor:
        x = self.attention_norm(x + self.attention(x))
        y: Tensor = self.feed_forward_norm(x + self.feed_forward(x))
        return y


class Attention(nn.Module):
    """Causal attention to a segment and its memory, by content and by distance.

    The memory of a segment is what entered the block for the tokens before it, not differentiated.
    """

    def __init__(self, d: int, heads: int, segment: int, memory: int) -> None:
        super().__init__()
        self.heads, self.segment, self.memory = heads, segment, memory
        self.input = nn.Linear(d, 3 * d, bias=False)
        self.distance = nn.Linear(d, d, bias=False)
        self.content_bias = nn.Parameter(torch.empty(d))
        self.distance_bias = nn.Parameter(torch.empty(d))
        self.output = nn.Linear(d, d, bias=False)
        self.tap_q, self.tap_k, self.tap_v, self.tap_s = Tap("H"), Tap("H"), Tap("H"), Tap("S")

    def forward(self, x: Tensor) -> Tensor:
        B, T, d = x.shape
        starts = range(0, T, self.segment)
        memories = [x[:, max(0, start - self.memory) : start].detach() for start in starts]
        own, *old = self.input(torch.cat([x, *memories], dim=1)).split(
            [T, *(memory.shape[1] for memory in memories)], dim=1
        )
        q, k, v = own.chunk(3, dim=-1)
        q, k, v = self.tap_q(q), self.tap_k(k), self.tap_v(v)
        n_distances = min(T, self.segment + self.memory)
        # For every sequence, because all tensors of a network have the batch as their first axis.
        far = self.distance(waves(n_distances, d).to(x).expand(B, n_distances, d))
        attended = []
        for start, before in zip(starts, old, strict=True):
            now, (_, old_k, old_v) = slice(start, start + self.segment), before.chunk(3, dim=-1)
            keys, values = torch.cat([old_k, k[:, now]], 1), torch.cat([old_v, v[:, now]], 1)
            attended.append(self.attend(q[:, now], keys, values, far))
        y: Tensor = self.output(torch.cat(attended, dim=1))
        return y

    def attend(self, q: Tensor, k: Tensor, v: Tensor, far: Tensor) -> Tensor:
        """What the last tokens of K see of all of them: (B, t, d) and (B, K, d) to (B, t, d)."""
        (B, t, d), K = q.shape, k.shape[1]
        by_content = self.by_head(q + self.content_bias) @ self.by_head(k).mT  # (B, n, t, K)
        by_distance = self.by_head(q + self.distance_bias) @ self.by_head(far[:, :K]).mT
        places = torch.arange(K, device=q.device)
        distances = places[K - t :].unsqueeze(1) - places  # (t, K), of queries from keys
        index = distances.clamp(min=0).expand(by_distance.shape)
        scores = (by_content + by_distance.gather(-1, index)) / math.sqrt(d // self.heads)
        probabilities = self.tap_s(scores.masked_fill(distances < 0, -math.inf).softmax(-1))
        y: Tensor = (probabilities @ self.by_head(v)).transpose(1, 2).reshape(B, t, d)
        return y

    def by_head(self, x: Tensor) -> Tensor:
        """(B, T, d) to (B, n, T, w)."""
        heads: Tensor = x.unflatten(-1, (self.heads, -1))
        return heads.transpose(1, 2)


class FeedForward(nn.Module):
    """d to f, ReLU, back to d."""

    def __init__(self, d: int, inner: int) -> None:
        super().__init__()
        self.input = nn.Linear(d, inner)
        self.output = nn.Linear(inner, d)
        self.tap_a = Tap("A")

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.output(self.tap_a(functional.relu(self.input(x))))
        return y


def waves(n: int, d: int) -> Tensor:
    """The sines, then the cosines, of the distances 0 to n - 1 at d / 2 lengths: (n, d)."""
    lengths = LONGEST_WAVE ** (torch.arange(0, d, 2, dtype=torch.float64) / d)
    angles = torch.arange(n, dtype=torch.float64).unsqueeze(1) / lengths
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def build(space: TransformerXlSpace, arch: Gpt2Arch, seed: int) -> TransformerXl:
    """The untrained decoder; relative biases start at zero."""
    return allocate(lambda: TransformerXl(space, arch), seed, INIT_STD, projection_stds(space))
