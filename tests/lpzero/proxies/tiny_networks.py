"""Networks small enough to compute every proxy the slow way; none is from the spaces package."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from lpzero.proxies import Layout, Network

LAYOUT = Layout(A=("mlp.1",), S=("probabilities",), heads=("out",))
TOKENS = torch.tensor([[0, 1, 2], [3, 1, 4], [2, 2, 0]])


class Block(nn.Module):
    """One head, a norm and a GELU, so that nothing is linear by accident."""

    def __init__(self, d: int, f: int) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(d, d) for _ in range(4))
        self.probabilities = nn.Softmax(-1)
        self.mlp = nn.Sequential(nn.Linear(d, f), nn.GELU(), nn.Linear(f, d))
        self.norm = nn.LayerNorm(d)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.query(x), self.key(x), self.value(x)
        x = x + self.out(self.probabilities(q @ k.transpose(1, 2)) @ v)
        y: Tensor = x + self.mlp(self.norm(x))
        return y


class Foreign(nn.Module):
    """Tokens (B, T) to logits (B, T, vocabulary), its blocks under a name that no space uses."""

    def __init__(self, d: int = 3, f: int = 4, n_blocks: int = 2, vocabulary: int = 5) -> None:
        super().__init__()
        self.table = nn.Embedding(vocabulary, d)
        self.stages = nn.ModuleList(Block(d, f) for _ in range(n_blocks))
        self.head = nn.Linear(d, vocabulary)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.table(tokens)
        for stage in self.stages:
            x = stage(x)
        logits: Tensor = self.head(x)
        return logits


def foreign(seed: int = 0, **sizes: int) -> Foreign:
    """The network in float64."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Foreign(**sizes).double()


def next_token(logits: Tensor, tokens: Tensor) -> Tensor:
    """The mean cross-entropy of each sequence (n,)."""
    losses = functional.cross_entropy(
        logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten(), reduction="none"
    )
    return losses.view(len(tokens), -1).mean(1)


def network(seed: int = 0, chunk: int | None = None) -> Network:
    """The foreign model as the proxies take it."""
    return Network(foreign(seed), TOKENS, next_token, layout=LAYOUT, seed=seed, chunk=chunk)


class Product(nn.Module):
    """x W' and nothing else."""

    def __init__(self, weight: list[list[float]]) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor(weight, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return x @ self.weight.T


class Products(nn.Module):
    """Tokens 0 and 1 as unit vectors, then one product after the other."""

    def __init__(self, *weights: list[list[float]]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(Product(weight) for weight in weights)

    def forward(self, tokens: Tensor) -> Tensor:
        x = torch.eye(2, dtype=torch.float64)[tokens]
        for block in self.blocks:
            x = block(x)
        return x
