"""The Shunted ViT in plain torch, read top to bottom.

Ren et al. 2022 (Shunted Self-Attention): four stages of pre-norm blocks without positions or class
token. In the first three stages half of the heads attend to keys and values merged s by s, half to
those merged s/2 by s/2. Shapes: B images, g tokens along a side, T = g g, d the width of a stage, n
heads, f MLP width. Blocks have taps (see `spaces.taps`) for the statistics A, H and S. What leads
from one stage to the next belongs to the first block of the next.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from spaces.images import as_grid, as_tokens
from spaces.initialisation import allocate, fan_out_std
from spaces.taps import EMBEDDING, HEAD, EndWeight, Tap, table

if TYPE_CHECKING:
    from spaces.shunted.space import ShuntedArch, ShuntedSpace

LAYER_NORM_EPS = 1e-6
INIT_STD = 0.02


class Shunted(nn.Module):
    """Images (B, 3, H, W) to the final hidden state (B, T, d) of the last stage."""

    def __init__(self, space: ShuntedSpace, arch: ShuntedArch) -> None:
        super().__init__()
        widths = space.widths(arch)
        self.embedding = Stem(widths[0], arch.stem)
        self.blocks = nn.ModuleList()
        for stage, layers in enumerate(arch.stages):
            d = widths[stage]
            for index, layer in enumerate(layers):
                is_first = stage > 0 and index == 0
                pool = Pooling(widths[stage - 1], d) if is_first else nn.Identity()
                heads, f = space.heads_of(layer, stage), d * layer.ratio
                self.blocks.append(Block(pool, d, heads, space.reductions[stage], f))
        self.norm = nn.LayerNorm(widths[-1], eps=LAYER_NORM_EPS)
        self.head = nn.Linear(widths[-1], space.classes)

    def forward(self, images: Tensor) -> Tensor:
        x = self.embedding(images)
        for block in self.blocks:
            x = block(x)
        hidden: Tensor = self.norm(x)
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        """(B, T, d) to (B, classes): the head of the mean over tokens."""
        scores: Tensor = self.head(hidden.mean(1))
        return scores

    def ends(self) -> dict[str, list[EndWeight]]:
        """The stem's convolutions; the head of the classes."""
        convolutions = [m.weight for m in self.embedding.modules() if isinstance(m, nn.Conv2d)]
        return {
            EMBEDDING: [EndWeight(weight) for weight in convolutions],
            HEAD: [table(self.head.weight)],
        }


class Stem(nn.Module):
    """A quarter of the image's side: (B, 3, H, W) to (B, T, d)."""

    def __init__(self, d: int, n_further: int) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            *_convolution(3, d, 7, stride=2),
            *(module for _ in range(n_further) for module in _convolution(d, d, 3)),
        )
        self.projection = nn.Conv2d(d, d, 2, stride=2)
        self.norm = nn.LayerNorm(d, eps=LAYER_NORM_EPS)

    def forward(self, images: Tensor) -> Tensor:
        x: Tensor = self.norm(as_tokens(self.projection(self.convolutions(images))))
        return x


def _convolution(inputs: int, outputs: int, kernel: int, stride: int = 1) -> list[nn.Module]:
    padding = kernel // 2
    convolution = nn.Conv2d(inputs, outputs, kernel, stride=stride, padding=padding, bias=False)
    return [convolution, nn.BatchNorm2d(outputs), nn.ReLU()]


class Pooling(nn.Module):
    """The norm that closes a stage; the grid halved and widened by a convolution; a norm."""

    def __init__(self, before: int, d: int) -> None:
        super().__init__()
        self.closing_norm = nn.LayerNorm(before, eps=LAYER_NORM_EPS)
        self.projection = nn.Conv2d(before, d, 3, stride=2, padding=1)
        self.norm = nn.LayerNorm(d, eps=LAYER_NORM_EPS)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.norm(as_tokens(self.projection(as_grid(self.closing_norm(x)))))
        return y


class Block(nn.Module):
    """Pooling if a stage starts here; then attention and MLP, each after a norm."""

    def __init__(self, pool: nn.Module, d: int, heads: int, s: int, f: int) -> None:
        super().__init__()
        self.pool = pool
        self.attention_norm = nn.LayerNorm(d, eps=LAYER_NORM_EPS)
        self.attention = ShuntedAttention(d, heads, s) if s > 1 else Attention(d, heads)
        self.feed_forward_norm = nn.LayerNorm(d, eps=LAYER_NORM_EPS)
        self.feed_forward = FeedForward(d, f)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(x)
        x = x + self.attention(self.attention_norm(x))
        y: Tensor = x + self.feed_forward(self.feed_forward_norm(x))
        return y


class ShuntedAttention(nn.Module):
    """Half of the heads attend to tokens merged s by s, half to tokens merged s/2 by s/2."""

    def __init__(self, d: int, heads: int, s: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(d, d)
        self.coarse = MergedKeys(d, s)
        self.fine = MergedKeys(d, s // 2)
        self.output = nn.Linear(d, d)
        self.tap_q = Tap("H")
        self.tap_s, self.tap_s_fine = Tap("S"), Tap("S")

    def forward(self, x: Tensor) -> Tensor:
        q = _by_head(self.tap_q(self.query(x)), self.heads)  # (B, n, T, w)
        half = self.heads // 2
        coarse = _attend(self.tap_s, q[:, :half], *self.coarse(x, half))
        fine = _attend(self.tap_s_fine, q[:, half:], *self.fine(x, half))
        y: Tensor = self.output(_joined(torch.cat([coarse, fine], dim=1)))
        return y


class MergedKeys(nn.Module):
    """Keys and values (B, n/2, T / s s, w) of tokens merged s by s; values get their neighbours'"""

    def __init__(self, d: int, s: int) -> None:
        super().__init__()
        self.merge = nn.Conv2d(d, d, s, stride=s)
        self.norm = nn.LayerNorm(d, eps=LAYER_NORM_EPS)
        self.key_value = nn.Linear(d, d)
        self.local = nn.Conv2d(d // 2, d // 2, 3, padding=1, groups=d // 2)
        self.tap_k, self.tap_v = Tap("H"), Tap("H")

    def forward(self, x: Tensor, heads: int) -> tuple[Tensor, Tensor]:
        merged = functional.gelu(self.norm(as_tokens(self.merge(as_grid(x)))))
        k, v = self.key_value(merged).chunk(2, dim=-1)
        v = v + as_tokens(self.local(as_grid(v)))
        return _by_head(self.tap_k(k), heads), _by_head(self.tap_v(v), heads)


class Attention(nn.Module):
    """Every token to every token; the output gets the values of the neighbours."""

    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(d, d)
        self.key_value = nn.Linear(d, 2 * d)
        self.local = nn.Conv2d(d, d, 3, padding=1, groups=d)
        self.output = nn.Linear(d, d)
        self.tap_q, self.tap_k, self.tap_v, self.tap_s = Tap("H"), Tap("H"), Tap("H"), Tap("S")

    def forward(self, x: Tensor) -> Tensor:
        k, v = self.key_value(x).chunk(2, dim=-1)
        q, k, v = self.tap_q(self.query(x)), self.tap_k(k), self.tap_v(v)
        by_head = (_by_head(y, self.heads) for y in (q, k, v))
        mixed = _joined(_attend(self.tap_s, *by_head)) + as_tokens(self.local(as_grid(v)))
        y: Tensor = self.output(mixed)
        return y


def _by_head(x: Tensor, heads: int) -> Tensor:
    """(B, T, n w) to (B, n, T, w)."""
    B, T, _ = x.shape
    return x.reshape(B, T, heads, -1).transpose(1, 2)


def _attend(tap: Tap, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
    mixed: Tensor = tap(scores.softmax(-1)) @ v
    return mixed


def _joined(x: Tensor) -> Tensor:
    """(B, n, T, w) to (B, T, n w)."""
    return x.transpose(1, 2).flatten(2)


class FeedForward(nn.Module):
    """d to f, GELU of each token with its neighbours, back to d."""

    def __init__(self, d: int, f: int) -> None:
        super().__init__()
        self.input = nn.Linear(d, f)
        self.local = nn.Conv2d(f, f, 3, padding=1, groups=f)
        self.output = nn.Linear(f, d)
        self.tap_a = Tap("A")

    def forward(self, x: Tensor) -> Tensor:
        inner = self.input(x)
        inner = functional.gelu(inner + as_tokens(self.local(as_grid(inner))))
        y: Tensor = self.output(self.tap_a(inner))
        return y


def build(space: ShuntedSpace, arch: ShuntedArch, seed: int) -> Shunted:
    """The untrained model: Linears N(0, 0.02), convolutions N(0, 2 / fan out), biases 0."""

    def std(name: str, weight: Tensor) -> float:
        return fan_out_std(weight, name.endswith(".local.weight")) if weight.ndim == 4 else INIT_STD

    return allocate(lambda: Shunted(space, arch), seed, std)
