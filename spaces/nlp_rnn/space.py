"""Recurrent cells and their exact sizes; the parts they count are in `model`."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from spaces.base import Sizes, Space
from spaces.choices import flip
from spaces.errors import ArchitectureError
from spaces.nlp_rnn.cell import ARITIES, Cell, Node, X, read_cell
from spaces.nlp_rnn.variation import count_drawings, cross, draw_cell, edit, mutate

if TYPE_CHECKING:
    from torch import Tensor

    from spaces.nlp_rnn.model import RecurrentModel


@dataclass(frozen=True)
class RnnSpace(Space[Cell]):
    """Cells with `n_states` states, drawn with `n_further` nodes beside; `validate` takes any cell.

    An architecture is one cell, which every layer has with weights of its own. So the blocks are
    the layers, and exchanging the cell of one exchanges it in all of them. `most_nodes` bounds the
    recipes that are accepted; the released ones have up to 25 nodes.
    """

    version: ClassVar[int] = 1
    absent_statistics: ClassVar[frozenset[str]] = frozenset("S")
    shares_blocks: ClassVar[bool] = True

    name: str = "nlp-rnn"
    n_states: tuple[int, ...] = (1, 2, 3)
    n_further: int = 7
    most_nodes: int = 25
    n_layers: int = 3
    embedding: int = 400
    hidden: int = 600
    vocabulary: int = 10_000  # Penn Treebank's
    batch_shape: tuple[int, int] = (8, 35)
    wide_shape: tuple[int, int] = (50, 70)
    reads_text: bool = False

    def widths(self) -> list[tuple[int, int]]:
        """Of each layer, how wide its input and its states are."""
        states = [self.hidden] * (self.n_layers - 1) + [self.embedding]
        return list(zip([self.embedding, *states], states, strict=False))

    def validate(self, arch: Cell) -> None:
        if self.from_json(self.to_json(arch)) != arch:
            raise ArchitectureError("nodes: not in order; read the recipe with from_json")

    def network_key(self, arch: Cell) -> str:
        return arch.structure

    def cardinality(self) -> int:
        """The number of ways to draw the nodes; several give one cell, and some are rejected.

        How many cells differ is not known: removing unused nodes makes many drawings equal.
        """
        return sum(count_drawings(n, self.n_further) for n in self.n_states)

    def sample(self, rng: random.Random) -> Cell:
        """A cell as the released sampler draws it, of a uniformly drawn number of states."""
        return draw_cell(rng.choice(self.n_states), self.n_further, rng)

    def mutate(self, arch: Cell, probability: float, rng: random.Random) -> Cell:
        """The cell with each node edited with the given probability."""
        return mutate(arch, probability, self._most_drawn, rng)

    def crossover(self, first: Cell, second: Cell, rng: random.Random) -> Cell:
        """One parent with a node exchanged for one of the other and all that leads to it."""
        base = flip(first, second, rng)
        return cross(base, second if base is first else first, self._most_drawn, rng)

    @property
    def _most_drawn(self) -> int:
        """The largest cell that `sample` can return."""
        return max(self.n_states) + self.n_further + 1

    def blocks(self, arch: Cell) -> tuple[Cell, ...]:
        return (arch,) * self.n_layers

    def with_block(self, arch: Cell, index: int, block: Cell) -> Cell:
        """The architecture of that cell: all layers have the same one."""
        return block

    def redraw_block(self, arch: Cell, index: int, rng: random.Random) -> Cell:
        """The cell with one edit."""
        return edit(arch, rng.choice(arch.nodes).name, self._most_drawn, rng)

    def to_json(self, arch: Cell) -> dict[str, Any]:
        """The recipe: node -> {"op", "input"}."""
        return {node.name: {"op": node.op, "input": list(node.input)} for node in arch.nodes}

    def from_json(self, fields: Mapping[str, Any]) -> Cell:
        return read_cell(fields, self.most_nodes)

    def build(self, arch: Cell, seed: int) -> RecurrentModel:
        from spaces.nlp_rnn.model import build

        self.validate(arch)
        return build(self, arch, seed)

    def block_sizes(self, arch: Cell) -> list[Sizes]:
        """As everywhere; `ffn` is the width of the gates, `heads` the number of hidden states."""
        return [
            {
                "params": sum(_parameters(node, inputs, d) for node in arch.linears),
                "width": inputs,
                "ffn": d,
                "heads": arch.n_states,
            }
            for inputs, d in self.widths()
        ]

    def end_sizes(self, arch: Cell) -> dict[str, Sizes]:
        """The decoder shares the embedding's table and has a bias of its own."""
        words = self.vocabulary * self.embedding
        return {
            "embedding": {"params": words, "width": self.embedding},
            "head": {"params": self.vocabulary, "width": self.embedding},
        }

    def decoder_parameters(self, arch: Cell) -> int:
        return sum(sizes["params"] for sizes in self.block_sizes(arch))

    def attention_parameters(self, arch: Cell) -> int:
        """None: a cell has no attention."""
        return 0

    def projections(self, arch: Cell) -> int:
        """The number of hidden states of all layers, which are the taps H."""
        return self.n_layers * arch.n_states

    def flops(self, arch: Cell, tokens: int | None = None) -> int:
        T = self.batch_shape[1] if tokens is None else tokens
        multiply_adds = sum(
            d * (inputs if name == X else d)
            for inputs, d in self.widths()
            for node in arch.linears
            for name in node.input
        )
        return 2 * T * multiply_adds

    def depth(self, arch: Cell) -> int:
        return self.n_layers

    def width(self, arch: Cell) -> int:
        """The width of the last layer."""
        return self.embedding

    def traits(self, arch: Cell) -> dict[str, float]:
        """The numbers of states, of nodes of each operation and of inputs of linears."""
        counts = Counter(node.op for node in arch.nodes)
        numbers = {f"nodes {op}": float(counts[op]) for op in ARITIES}
        read = [name for node in arch.linears for name in node.input]
        return {
            **numbers,
            "states": float(arch.n_states),
            "linear inputs": float(len(read)),
            "linears of x": float(read.count(X)),
            "longest path": float(_longest_path(arch)),
        }

    def wide_batch(self, seed: int = 0) -> Tensor:
        """Enough steps for the covariances of a layer's units: `wide_shape`, 50 x 70."""
        return self.draw_batch(self.wide_shape, seed)


def _parameters(node: Node, inputs: int, d: int) -> int:
    """One matrix per input and one bias."""
    return d + sum(d * (inputs if name == X else d) for name in node.input)


def _longest_path(cell: Cell) -> int:
    """How many nodes a value passes from a source to a state, at most."""
    length: dict[str, int] = {}
    for node in cell.nodes:
        length[node.name] = 1 + max(length.get(name, 0) for name in node.input)
    return max(length.values())
