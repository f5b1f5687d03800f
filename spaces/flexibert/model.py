"""The FlexiBERT encoder in plain torch, read top to bottom.

Space and parameters: Table 7 of LPZero and Table 1 of "Training-free NAS for RNNs and
transformers". Shapes: B batch, T tokens, h hidden, n heads, w head width, f FFN, k kernel.
Blocks have taps (see `spaces.taps`) for the statistics A, H and S.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from spaces.initialisation import allocate
from spaces.taps import EMBEDDING, HEAD, EndWeight, Tap, table

if TYPE_CHECKING:
    from spaces.flexibert.space import FlexiBertArch, FlexiBertSpace, Layer

LAYER_NORM_EPS = 1e-12
INIT_STD = 0.02


class FlexiBert(nn.Module):
    """Token ids (B, T) to the final hidden state (B, T, h); no pooler, no head."""

    def __init__(self, space: FlexiBertSpace, arch: FlexiBertArch) -> None:
        super().__init__()
        h = arch.hidden
        self.embeddings = Embeddings(space.vocabulary, space.context, space.embedding, h)
        self.blocks = nn.ModuleList(Block(h, layer) for layer in arch.layers)

    def forward(self, tokens: Tensor) -> Tensor:
        x: Tensor = self.embeddings(tokens)
        for block in self.blocks:
            x = block(x)
        return x

    def ends(self) -> dict[str, list[EndWeight]]:
        """The three tables and the projection; there is no head."""
        return {EMBEDDING: self.embeddings.weights(), HEAD: []}


class Embeddings(nn.Module):
    """Words, positions and segment zero, normalised, then projected when h differs from E."""

    def __init__(self, vocabulary: int, context: int, embedding: int, h: int) -> None:
        super().__init__()
        self.word = nn.Embedding(vocabulary, embedding)
        self.position = nn.Embedding(context, embedding)
        self.segment = nn.Embedding(2, embedding)
        self.norm = nn.LayerNorm(embedding, eps=LAYER_NORM_EPS)
        self.projection: nn.Module = nn.Linear(embedding, h) if embedding != h else nn.Identity()

    def forward(self, tokens: Tensor) -> Tensor:
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.word(tokens) + self.position(positions) + self.segment.weight[0]
        projected: Tensor = self.projection(self.norm(x))
        return projected

    def weights(self) -> list[EndWeight]:
        tables = [table(embedding.weight) for embedding in (self.word, self.position, self.segment)]
        projections = [self.projection] if isinstance(self.projection, nn.Linear) else []
        return [*tables, *(EndWeight(embedding.weight) for embedding in projections)]


class Block(nn.Module):
    """Token mixing, then the feed-forward stack."""

    def __init__(self, h: int, layer: Layer) -> None:
        super().__init__()
        self.mixing = MIXINGS[layer.operation](h, layer.heads)
        self.feed_forward = FeedForward(h, layer.ffn, layer.stacks)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.feed_forward(self.mixing(x))
        return y


class FeedForward(nn.Module):
    """h to f, (stacks - 1) times f to f, GELU after each, back to h, residual and norm."""

    def __init__(self, h: int, f: int, stacks: int) -> None:
        super().__init__()
        widths = [h] + [f] * stacks
        self.stacks = nn.ModuleList(nn.Linear(i, o) for i, o in pairwise(widths))
        self.taps = nn.ModuleList(Tap("A") for _ in range(stacks))
        self.output = Residual(f, h)

    def forward(self, x: Tensor) -> Tensor:
        y = x
        for linear, tap in zip(self.stacks, self.taps, strict=True):
            y = tap(functional.gelu(linear(y)))
        z: Tensor = self.output(y, x)
        return z


class Residual(nn.Module):
    """A dense layer added to the residual input, normalised."""

    def __init__(self, inputs: int, h: int) -> None:
        super().__init__()
        self.dense = nn.Linear(inputs, h)
        self.norm = nn.LayerNorm(h, eps=LAYER_NORM_EPS)

    def forward(self, y: Tensor, x: Tensor) -> Tensor:
        z: Tensor = self.norm(self.dense(y) + x)
        return z


class SelfAttention(nn.Module):
    """Scaled dot-product attention; `multiplicative` puts one more weight on the queries."""

    def __init__(self, h: int, heads: int, multiplicative: bool = False) -> None:
        super().__init__()
        self.attention = Attention(h, h, heads, multiplicative)
        self.output = Residual(h, h)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.output(self.attention(x), x)
        return y


class Attention(nn.Module):
    """The heads without the output layer: (B, T, h) to (B, T, a)."""

    def __init__(self, h: int, a: int, heads: int, multiplicative: bool = False) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(h, a) for _ in range(3))
        self.weight = nn.Linear(a, a, bias=False) if multiplicative else None
        self.tap_q, self.tap_k, self.tap_v = Tap("H"), Tap("H"), Tap("H")
        self.tap_weight = Tap("H") if multiplicative else None
        self.tap_s = Tap("S")

    def forward(self, x: Tensor) -> Tensor:
        return self.attend(self.project_query(x), x)

    def project_query(self, x: Tensor) -> Tensor:
        q: Tensor = self.tap_q(self.query(x))
        if self.weight is not None and self.tap_weight is not None:
            q = self.tap_weight(self.weight(q))
        return q

    def attend(self, q: Tensor, x: Tensor) -> Tensor:
        k, v = self.tap_k(self.key(x)), self.tap_v(self.value(x))
        q, k, v = (split_heads(y, self.heads) for y in (q, k, v))  # (B, n, T, w)
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])  # (B, n, T, T)
        return join_heads(self.tap_s(scores.softmax(-1)) @ v)


class LinearTransform(nn.Module):
    """One Linear, then an unnormalised 2-D transform per head over (T, w); no residual.

    S is the softmax of the transform's output; the model itself does not use it.
    """

    def __init__(self, h: int, heads: int, cosine: bool) -> None:
        super().__init__()
        self.heads = heads
        self.cosine = cosine
        self.input = nn.Linear(h, h)
        self.tap_h, self.tap_s = Tap("H"), Tap("S")

    def forward(self, x: Tensor) -> Tensor:
        x = split_heads(self.tap_h(self.input(x)), self.heads)
        mixed = cosine_transform(x) if self.cosine else fourier_transform(x)
        self.tap_s(mixed.softmax(-1))
        return join_heads(mixed)


def fourier_transform(x: Tensor) -> Tensor:
    """The real part of the 2-D discrete Fourier transform of the last two axes."""
    (rows_cos, rows_sin), (cols_cos, cols_sin) = (fourier_matrices(n) for n in x.shape[-2:])
    rows_cos, rows_sin, cols_cos, cols_sin = (
        m.to(x) for m in (rows_cos, rows_sin, cols_cos, cols_sin)
    )
    return rows_cos @ x @ cols_cos - rows_sin @ x @ cols_sin


def cosine_transform(x: Tensor) -> Tensor:
    """The unnormalised 2-D type II discrete cosine transform of the last two axes."""
    rows, cols = (cosine_matrix(n).to(x) for n in x.shape[-2:])
    return rows @ x @ cols.T


# Matrices rather than an FFT: sizes here are at most a few hundred, the products are exact to
# count, and they run and differentiate the same on every device.
@lru_cache(maxsize=32)
def fourier_matrices(n: int) -> tuple[Tensor, Tensor]:
    """cos and sin of 2 pi j k / n, each (n, n) float64."""
    at = torch.arange(n, device="cpu")  # kept for other devices, also when this one is meta
    product = torch.outer(at, at) % n
    angle = product.double() * (2 * math.pi / n)
    return angle.cos(), angle.sin()


@lru_cache(maxsize=32)
def cosine_matrix(n: int) -> Tensor:
    """2 cos(pi k (2 j + 1) / 2 n), (n, n) float64."""
    at = torch.arange(n, device="cpu")
    product = torch.outer(at, 2 * at + 1) % (4 * n)
    return 2 * (product.double() * (math.pi / (2 * n))).cos()


class DynamicConvolution(nn.Module):
    """Half of the heads attend, half convolve with kernels made from a span of the input.

    a = (heads // 2) * w is the width of each half.
    """

    def __init__(self, h: int, heads: int, kernel: int) -> None:
        super().__init__()
        self.kernel_heads = heads // 2
        self.kernel = kernel
        a = self.kernel_heads * (h // heads)
        self.attention = Attention(h, a, heads // 2)
        self.depthwise = nn.Conv1d(h, h, kernel, padding=kernel // 2, groups=h, bias=False)
        self.pointwise = nn.Conv1d(h, a, 1, bias=False)
        self.span_bias = nn.Parameter(torch.empty(a))
        self.kernels = nn.Linear(a, self.kernel_heads * kernel)
        self.convolved = nn.Linear(h, a)
        self.tap_c, self.tap_s = Tap("H"), Tap("S")
        self.output = Residual(2 * a, h)

    def forward(self, x: Tensor) -> Tensor:
        q = self.attention.project_query(x)
        span = self.pointwise(self.depthwise(x.transpose(1, 2))).transpose(1, 2) + self.span_bias
        convolved = self.convolve(self.kernels(span * q), self.tap_c(self.convolved(x)))
        y: Tensor = self.output(torch.cat([self.attention.attend(q, x), convolved], dim=-1), x)
        return y

    def convolve(self, kernels: Tensor, values: Tensor) -> Tensor:
        """Each position's own kernel over its neighbours: (B, T, n k), (B, T, a) to (B, T, a)."""
        B, T, a = values.shape
        weights: Tensor = kernels.view(B, T, self.kernel_heads, self.kernel).softmax(-1)
        weights = self.tap_s(weights)
        padding = self.kernel // 2
        windows = functional.pad(values, (0, 0, padding, padding)).unfold(1, self.kernel, 1)
        windows = windows.reshape(B, T, self.kernel_heads, -1, self.kernel)  # (B, T, n, w, k)
        convolved: Tensor = (windows @ weights.unsqueeze(-1)).reshape(B, T, a)
        return convolved


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(B, T, n w) to (B, n, T, w)."""
    B, T, h = x.shape
    return x.view(B, T, heads, h // heads).transpose(1, 2)


def join_heads(x: Tensor) -> Tensor:
    """(B, n, T, w) to (B, T, n w)."""
    B, n, T, w = x.shape
    return x.transpose(1, 2).reshape(B, T, n * w)


MIXINGS: dict[str, Callable[[int, int], nn.Module]] = {
    "sdp": SelfAttention,
    "wma": lambda h, heads: SelfAttention(h, heads, multiplicative=True),
    "dft": lambda h, heads: LinearTransform(h, heads, cosine=False),
    "dct": lambda h, heads: LinearTransform(h, heads, cosine=True),
    "dsc5": lambda h, heads: DynamicConvolution(h, heads, kernel=5),
    "dsc9": lambda h, heads: DynamicConvolution(h, heads, kernel=9),
}


def build(space: FlexiBertSpace, arch: FlexiBertArch, seed: int) -> FlexiBert:
    """The untrained encoder: weights N(0, 0.02), biases 0."""
    return allocate(lambda: FlexiBert(space, arch), seed, INIT_STD)
