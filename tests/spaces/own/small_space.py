"""A user's space as a user writes it: a module with taps, and choices for its layers."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

import lpzero
from spaces.taps import Tap

CHOICES: dict[str, Any] = {
    "layers": [1, 2, 3],
    "width": [8, 16],
    "activation": ["relu", "tanh"],
    "per_layer": {"heads": [2, 4], "ffn": [16, 24]},
}


class Block(nn.Module):
    def __init__(self, d: int, heads: int, ffn: int, activation: str) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(d)
        self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.ffn = nn.ModuleList([nn.Linear(d, ffn), nn.Linear(ffn, d)])
        self.act = getattr(torch, activation)
        self.seen_heads = nn.ModuleList(Tap("H") for _ in range(3))
        self.seen_softmax, self.seen_ffn = Tap("S"), Tap("A")

    def forward(self, x: Tensor) -> Tensor:
        B, T, d = x.shape
        parts = zip(self.seen_heads, self.qkv(self.norm(x)).chunk(3, -1), strict=True)
        q, k, v = (tap(y).view(B, T, self.heads, -1).transpose(1, 2) for tap, y in parts)
        weights = self.seen_softmax((q @ k.transpose(-1, -2)).softmax(-1))
        x = x + self.out((weights @ v).transpose(1, 2).reshape(B, T, d))
        y: Tensor = x + self.ffn[1](self.seen_ffn(self.act(self.ffn[0](x))))
        return y


class Model(nn.Module):
    def __init__(self, config: Any) -> None:
        super().__init__()
        self.embedding = nn.Embedding(256, config.width)
        self.blocks = nn.ModuleList(
            Block(config.width, layer.heads, layer.ffn, config.activation)
            for layer in config.per_layer
        )
        self.norm = nn.LayerNorm(config.width)
        self.head = nn.Linear(config.width, 5)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        y: Tensor = self.head(self.norm(x))
        return y


SPACE = lpzero.space(CHOICES, build=Model, name="small-space", batch=(2, 6))
