"""Which modules of a model without taps are its embedding and its head."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from lpzero.statistics.layout import find_blocks
from lpzero.statistics.layout_finder import find_layout


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.down(torch.relu(self.up(x)))


class Model(nn.Module):
    """Two blocks with matrices before, between and after them."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.projection = nn.Embedding(20, 4), nn.Linear(4, 8)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.between, self.norm, self.head = nn.Linear(8, 8), nn.LayerNorm(8), nn.Linear(8, 20)

    def forward(self, tokens: Tensor) -> Tensor:
        first, second = self.blocks
        x = self.between(first(self.projection(self.words(tokens))))
        logits: Tensor = self.head(self.norm(second(x)))
        return logits


def test_what_is_between_blocks_belongs_to_no_end() -> None:
    layout = find_layout(Model(), torch.zeros(2, 5, dtype=torch.long))
    assert layout.blocks == ("blocks.0", "blocks.1")
    assert layout.embedding == ("words", "projection")
    assert layout.head == ("head",)


def test_a_module_called_blocks_is_no_list_of_them() -> None:
    model = nn.Module()
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model.blocks = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
    assert find_blocks(model) == list(model.blocks.layers)
    model.blocks = nn.ModuleList([nn.Linear(2, 2)])
    assert find_blocks(model) == list(model.blocks)
