"""The language model of NAS-Bench-NLP: three stacked layers of one cell, read top to bottom.

Klyuchnikov et al. 2022; the embedding is 400 wide, the inner layers 600, the last one 400 again, so
that the decoder can be the embedding's own table. Shapes: B batch, T steps, e embedding width, d
width of the layer, v vocabulary. Layers have taps (see `spaces.taps`): A the outputs of the gates,
H the hidden states. There is no attention, so nothing is tapped as S.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from spaces.initialisation import allocate_uniform
from spaces.nlp_rnn.cell import LINEAR, Cell, Node, X, new_state, previous_state
from spaces.taps import EMBEDDING, HEAD, EndWeight, StateTap, Tap, table

if TYPE_CHECKING:
    from spaces.nlp_rnn.space import RnnSpace

EMBEDDING_BOUND = 0.1
LEAKY_SLOPE = 0.01


class RecurrentModel(nn.Module):
    """Token ids (B, T) to the final hidden state (B, T, e)."""

    def __init__(self, space: RnnSpace, cell: Cell) -> None:
        super().__init__()
        self.embedding = nn.Embedding(space.vocabulary, space.embedding)
        self.blocks = nn.ModuleList(RecurrentLayer(cell, *widths) for widths in space.widths())
        self.head = TiedDecoder(self.embedding)

    def forward(self, tokens: Tensor) -> Tensor:
        x: Tensor = self.embedding(tokens)
        for block in self.blocks:
            x = block(x)
        return x

    def token_losses(self, hidden: Tensor, tokens: Tensor) -> Tensor:
        """Cross-entropy of each next token given the hidden states so far: (B, T - 1)."""
        logits = self.head(hidden[:, :-1])  # (B, T - 1, v)
        return functional.cross_entropy(logits.transpose(1, 2), tokens[:, 1:], reduction="none")

    def ends(self) -> dict[str, list[EndWeight]]:
        """Both ends have the one word table."""
        words = table(self.embedding.weight)
        return {EMBEDDING: [words], HEAD: [words]}


class RecurrentLayer(nn.Module):
    """A cell run over the steps of a sequence, from states of zero: (B, T, in) to (B, T, d)."""

    def __init__(self, cell: Cell, inputs: int, d: int) -> None:
        super().__init__()
        self.nodes, self.d, self.heads = cell.nodes, d, cell.n_states
        self.gates = [node.name for node in cell.gates]
        self.places = {node.name: place for place, node in enumerate(cell.linears)}
        self.cell = nn.ModuleList(
            Linear([inputs if name == X else d for name in node.input], d) for node in cell.linears
        )
        self.gate_taps = nn.ModuleList(Tap("A") for _ in self.gates)
        self.state_taps = nn.ModuleList(Tap("H") for _ in range(cell.n_states))
        self.step_tap = StateTap()

    def forward(self, x: Tensor) -> Tensor:
        B, T, _ = x.shape
        from_x = self._from_x(x)
        weights = self._transposed()
        states = [x.new_zeros(B, self.d) for _ in self.state_taps]
        past_gates: list[list[Tensor]] = [[] for _ in self.gates]
        past_states: list[list[Tensor]] = [[] for _ in states]
        for t in range(T):
            values = self._step({name: parts[t] for name, parts in from_x.items()}, states, weights)
            states = [values[new_state(index)] for index in range(len(states))]
            states[0] = self.step_tap(states[0])
            for past, name in zip(past_gates, self.gates, strict=True):
                past.append(values[name])
            for past, state in zip(past_states, states, strict=True):
                past.append(state)
        for tap, past in zip(self.gate_taps, past_gates, strict=True):
            tap(torch.stack(past, dim=1))
        stacked = [
            tap(torch.stack(past, dim=1))
            for tap, past in zip(self.state_taps, past_states, strict=True)
        ]
        y: Tensor = stacked[0]
        return y

    def _from_x(self, x: Tensor) -> dict[str, tuple[Tensor, ...]]:
        """What the input gives to each linear that reads it, computed for all steps: T x (B, d)."""
        return {
            node.name: functional.linear(
                x, linear.weights[node.input.index(X)], linear.bias
            ).unbind(1)
            for node, linear in self._linears()
            if X in node.input
        }

    def _transposed(self) -> dict[str, list[tuple[str, Tensor]]]:
        """For each linear its inputs other than x, each with its matrix (in, d)."""
        return {
            node.name: [
                (name, weight.T)
                for name, weight in zip(node.input, linear.weights, strict=True)
                if name != X
            ]
            for node, linear in self._linears()
        }

    def _step(
        self,
        from_x: dict[str, Tensor],
        states: list[Tensor],
        weights: dict[str, list[tuple[str, Tensor]]],
    ) -> dict[str, Tensor]:
        """The value (B, d) of every node at one step."""
        values = {previous_state(index): state for index, state in enumerate(states)}
        for node in self.nodes:
            if node.op == LINEAR:
                total = from_x.get(node.name)
                for name, weight in weights[node.name]:
                    start = self._bias(node) if total is None else total
                    total = torch.addmm(start, values[name], weight)
                assert total is not None  # a linear has two inputs at least
                values[node.name] = total
            else:
                values[node.name] = apply(node.op, [values[name] for name in node.input])
        return values

    def _bias(self, node: Node) -> Tensor:
        bias: Tensor = self._linear(node).bias
        return bias

    def _linears(self) -> list[tuple[Node, Linear]]:
        return [(node, self._linear(node)) for node in self.nodes if node.op == LINEAR]

    def _linear(self, node: Node) -> Linear:
        linear = self.cell[self.places[node.name]]
        assert isinstance(linear, Linear)
        return linear


class Linear(nn.Module):
    """One matrix (d, in) for each input, and one bias."""

    def __init__(self, widths: list[int], d: int) -> None:
        super().__init__()
        self.weights = nn.ParameterList(nn.Parameter(torch.empty(d, width)) for width in widths)
        self.bias = nn.Parameter(torch.empty(d))


class TiedDecoder(nn.Module):
    """Hidden states (..., e) to logits (..., v), by the embedding's table and a bias."""

    def __init__(self, embedding: nn.Embedding) -> None:
        super().__init__()
        # In a tuple, so that the shared parameter is not registered a second time.
        self._shared = (embedding,)
        self.bias = nn.Parameter(torch.empty(embedding.num_embeddings))

    def forward(self, hidden: Tensor) -> Tensor:
        return functional.linear(hidden, self._shared[0].weight, self.bias)


def apply(op: str, inputs: list[Tensor]) -> Tensor:
    """The result of an operation without weights."""
    first = inputs[0]
    if op == "activation_tanh":
        return first.tanh()
    if op == "activation_sigm":
        return first.sigmoid()
    if op == "activation_leaky_relu":
        return functional.leaky_relu(first, LEAKY_SLOPE)
    if op == "elementwise_prod":
        return first * inputs[1]
    if op == "elementwise_sum":
        return first + inputs[1]
    assert op == "blend", op
    return first * inputs[1] + (1 - first) * inputs[2]


def build(space: RnnSpace, cell: Cell, seed: int) -> RecurrentModel:
    """The untrained model: cells U(+-1/sqrt(d)), the embedding U(+-0.1), the decoder's bias 0."""

    def bound(name: str, parameter: Tensor) -> float:
        if name.startswith("blocks"):
            return 1 / math.sqrt(parameter.shape[0])
        return EMBEDDING_BOUND if name.startswith("embedding") else 0.0

    return allocate_uniform(lambda: RecurrentModel(space, cell), seed, bound)
