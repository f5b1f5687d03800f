"""The flexible GPT-2 decoder with adaptive embeddings and softmax, read top to bottom.

Space: Table 8 of LPZero, section 4.2 of ETAS. Adaptive embeddings and softmax follow Baevski
and Auli (2019) in the variant of Transformer-XL. Shapes: B batch, T tokens, d model width,
e embedding width, n heads, w head width, f inner width, N tokens in a row.
Blocks have taps (see `spaces.taps`) for the statistics A, H and S.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from spaces.initialisation import allocate
from spaces.taps import EMBEDDING, HEAD, EndWeight, Tap, table

if TYPE_CHECKING:
    from spaces.gpt2.space import Gpt2Arch, Gpt2Space

LAYER_NORM_EPS = 1e-5
INIT_STD = 0.02
PROJECTION_STD = 0.01


class AdaptiveDecoder(nn.Module):
    """A decoder whose word tables are shared by an adaptive embedding and an adaptive softmax.

    A subclass has the blocks, and makes the head after them: the order in which weights are drawn.
    """

    head: AdaptiveSoftmax

    def __init__(self, space: Gpt2Space, arch: Gpt2Arch) -> None:
        super().__init__()
        self.embedding = AdaptiveEmbedding(
            space.cluster_sizes(),
            arch.d_model,
            space.embedding_widths(arch),
            space.is_projected(arch),
        )

    def token_losses(self, hidden: Tensor, tokens: Tensor) -> Tensor:
        """Cross-entropy of each next token given the hidden states so far: (B, T - 1)."""
        B, T, d = hidden.shape
        losses: Tensor = self.head(hidden[:, :-1].reshape(-1, d), tokens[:, 1:].reshape(-1))
        return losses.view(B, T - 1)

    def head_logits(self, hidden: Tensor) -> Tensor:
        """(B, T, d) to the logits of the frequent words and of the clusters."""
        return self.head.first_logits(hidden)

    def ends(self) -> dict[str, list[EndWeight]]:
        """Tables and projections; the head has its own weights and the tables it shares."""
        tables = [table(words) for words in self.embedding.tables]
        projections = [EndWeight(projection) for projection in self.embedding.projections]
        return {EMBEDDING: [*tables, *projections], HEAD: [*tables, *self.head.weights()]}


class Gpt2(AdaptiveDecoder):
    """Token ids (B, T) to the final hidden state (B, T, d)."""

    def __init__(self, space: Gpt2Space, arch: Gpt2Arch) -> None:
        super().__init__(space, arch)
        d = arch.d_model
        self.position = nn.Embedding(space.context, d)
        layers = zip(arch.n_head, arch.d_inner, strict=True)
        self.blocks = nn.ModuleList(Block(d, heads, inner) for heads, inner in layers)
        self.norm = nn.LayerNorm(d, eps=LAYER_NORM_EPS)
        self.head = AdaptiveSoftmax(self.embedding)

    def forward(self, tokens: Tensor) -> Tensor:
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        x = self.embedding(tokens) + self.position(positions)
        for block in self.blocks:
            x = block(x)
        hidden: Tensor = self.norm(x)
        return hidden

    def ends(self) -> dict[str, list[EndWeight]]:
        """The table of positions belongs to the embedding, too."""
        ends = super().ends()
        return ends | {EMBEDDING: [*ends[EMBEDDING], table(self.position.weight)]}


class Affine(nn.Module):
    """x W + b with W stored (in, out), as GPT-2 stores it."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs))
        self.bias = nn.Parameter(torch.empty(outputs))

    def forward(self, x: Tensor) -> Tensor:
        flat = torch.addmm(self.bias, x.reshape(-1, x.shape[-1]), self.weight)
        return flat.view(*x.shape[:-1], -1)


class Block(nn.Module):
    """Norm before attention and before the feed-forward layer, each added to the stream."""

    def __init__(self, d: int, heads: int, inner: int) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(d, eps=LAYER_NORM_EPS)
        self.attention = Attention(d, heads)
        self.feed_forward_norm = nn.LayerNorm(d, eps=LAYER_NORM_EPS)
        self.feed_forward = FeedForward(d, inner)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.attention_norm(x))
        y: Tensor = x + self.feed_forward(self.feed_forward_norm(x))
        return y


class Attention(nn.Module):
    """Causal self-attention."""

    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.c_attn = Affine(d, 3 * d)
        self.c_proj = Affine(d, d)
        self.tap_q, self.tap_k, self.tap_v, self.tap_s = Tap("H"), Tap("H"), Tap("H"), Tap("S")
        self.mask_value = -math.inf  # the score of what a token must not see

    def forward(self, x: Tensor) -> Tensor:
        B, T, d = x.shape
        q, k, v = self.c_attn(x).split(d, dim=-1)
        q, k, v = self.tap_q(q), self.tap_k(k), self.tap_v(v)
        q, k, v = (y.view(B, T, self.heads, -1).transpose(1, 2) for y in (q, k, v))  # (B, n, T, w)
        scores = q @ k.transpose(-1, -2) / math.sqrt(d // self.heads)  # (B, n, T, T)
        future = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1)
        probabilities = self.tap_s(scores.masked_fill(future, self.mask_value).softmax(-1))
        y: Tensor = self.c_proj((probabilities @ v).transpose(1, 2).reshape(B, T, d))
        return y


class FeedForward(nn.Module):
    """d to f, tanh-GELU, back to d."""

    def __init__(self, d: int, inner: int) -> None:
        super().__init__()
        self.c_fc = Affine(d, inner)
        self.c_proj = Affine(inner, d)
        self.tap_a = Tap("A")

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.c_proj(self.tap_a(functional.gelu(self.c_fc(x), approximate="tanh")))
        return y


class AdaptiveEmbedding(nn.Module):
    """Frequent words get wide vectors, rare ones narrow vectors, all projected to d.

    With one width for all (`widths` of length one) it is one plain table. Every cluster's
    product is computed for every token and the right one selected, so that the cost does not
    depend on the tokens.
    """

    def __init__(
        self, cluster_sizes: tuple[int, ...], d: int, widths: tuple[int, ...], projected: bool
    ) -> None:
        super().__init__()
        self.cluster_sizes = cluster_sizes
        self.d = d
        table_sizes = cluster_sizes if len(widths) == len(cluster_sizes) else (sum(cluster_sizes),)
        self.tables = nn.ParameterList(
            nn.Parameter(torch.empty(size, width))
            for size, width in zip(table_sizes, widths, strict=True)
        )
        self.projections = nn.ParameterList(
            nn.Parameter(torch.empty(d, width)) for width in widths if projected
        )

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.project(
            functional.embedding(tokens.clamp(max=len(self.tables[0]) - 1), self.tables[0]), 0
        )
        start = len(self.tables[0])
        for index in range(1, len(self.tables)):
            table = self.tables[index]
            rows = (tokens - start).clamp(0, len(table) - 1)
            part = self.project(functional.embedding(rows, table), index)
            x = torch.where((tokens >= start).unsqueeze(-1), part, x)
            start += len(table)
        return x * math.sqrt(self.d)

    def project(self, x: Tensor, index: int) -> Tensor:
        """(..., e) to (..., d) by the cluster's projection, if it has one."""
        return functional.linear(x, self.projections[index]) if len(self.projections) else x


class AdaptiveSoftmax(nn.Module):
    """Cross-entropy of one target per hidden state, frequent words and clusters first.

    The word tables, and the projections of all clusters but the first, are the embedding's own.
    """

    def __init__(self, embedding: AdaptiveEmbedding) -> None:
        super().__init__()
        # In a tuple, so that the shared parameters are not registered a second time.
        self._shared = (embedding,)
        sizes = embedding.cluster_sizes
        n_tails = len(sizes) - 1
        width = embedding.tables[0].shape[1]
        self.bias = nn.Parameter(torch.empty(sum(sizes)))
        if n_tails:
            self.cluster_weight = nn.Parameter(torch.empty(n_tails, width))
            self.cluster_bias = nn.Parameter(torch.empty(n_tails))
        if len(embedding.projections):
            self.projection = nn.Parameter(torch.empty(embedding.d, width))

    def forward(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """(N, d) and (N,) to losses (N,)."""
        embedding = self._shared[0]
        sizes = embedding.cluster_sizes
        tables = self._tables(embedding)
        biases = torch.split(self.bias, list(sizes))
        head = self.first_logits(hidden).log_softmax(-1)
        losses = -head.gather(1, targets.clamp(max=sizes[0] - 1).unsqueeze(1)).squeeze(1)
        start = sizes[0]
        for index in range(1, len(sizes)):
            rows = ((targets >= start) & (targets < start + sizes[index])).nonzero().squeeze(1)
            if len(rows):
                tail = self._tail(hidden[rows], tables[index], biases[index], index)
                inside = tail.gather(1, (targets[rows] - start).unsqueeze(1)).squeeze(1)
                cluster = head[rows, sizes[0] + index - 1]
                losses = losses.index_copy(0, rows, -(cluster + inside))
            start += sizes[index]
        return losses

    def first_logits(self, hidden: Tensor) -> Tensor:
        """(..., d) to the logits of the first cluster's words and of every further cluster."""
        embedding = self._shared[0]
        weight = self._tables(embedding)[0]
        bias = torch.split(self.bias, list(embedding.cluster_sizes))[0]
        if len(embedding.cluster_sizes) > 1:
            weight = torch.cat([weight, self.cluster_weight])
            bias = torch.cat([bias, self.cluster_bias])
        narrowed = hidden @ self.projection if len(embedding.projections) else hidden
        return functional.linear(narrowed, weight, bias)

    def weights(self) -> list[EndWeight]:
        """Its own matrices: a projection and a row per tail, where the model has them."""
        ends = [EndWeight(self.projection)] if len(self._shared[0].projections) else []
        tails = len(self._shared[0].cluster_sizes) > 1
        return [*ends, table(self.cluster_weight)] if tails else ends

    def _tables(self, embedding: AdaptiveEmbedding) -> tuple[Tensor, ...]:
        if len(embedding.tables) > 1:
            return tuple(embedding.tables)
        return torch.split(embedding.tables[0], list(embedding.cluster_sizes))

    def _tail(self, hidden: Tensor, table: Tensor, bias: Tensor, index: int) -> Tensor:
        projections = self._shared[0].projections
        if len(projections):
            hidden = hidden @ projections[min(index, len(projections) - 1)]
        return functional.linear(hidden, table, bias).log_softmax(-1)


def build(space: Gpt2Space, arch: Gpt2Arch, seed: int) -> Gpt2:
    """The untrained decoder: output projections of a block shrink with depth."""
    residual_std = INIT_STD / math.sqrt(2 * len(arch.d_inner))
    stds = {"c_proj.weight": residual_std, **projection_stds(space)}
    return allocate(lambda: Gpt2(space, arch), seed, INIT_STD, stds)


def projection_stds(space: Gpt2Space) -> dict[str, float]:
    """The spread of the projections of embedding and softmax, by the ends of their names."""
    clusters = range(len(space.cluster_sizes()))
    names = ("head.projection", *(f"embedding.projections.{i}" for i in clusters))
    return dict.fromkeys(names, PROJECTION_STD)
