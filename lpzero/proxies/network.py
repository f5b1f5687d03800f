"""A built network with its batch and loss, and the passes that proxies share.

    Network(model, tokens, loss)  ->  weights, gradients, activations, kernels of every block

Each pass runs when a proxy first needs it and is cached, so all proxies of one network cost few
passes. Gradients are those of the loss, a mean over sequences, with respect to the weight matrices
of the blocks: no embeddings, biases, norms or head. The model is left unchanged. An input, where a
proxy compares inputs, is a sequence or an image.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from lpzero.errors import InputError
from lpzero.proxies import flow, passes, sample_gradients
from lpzero.statistics.extraction import NetworkStatistics, of_pass
from lpzero.statistics.inputs import read_inputs, split
from lpzero.statistics.isolation import untouched
from lpzero.statistics.layout import Layout, Part, look_alikes
from lpzero.statistics.objective import Loss, objective
from lpzero.statistics.trace import BlockCall, Trace, named_weights, trace
from primitives.statistics import STATISTICS, StatisticSource
from spaces import memory

V = TypeVar("V")
_TAPS = ("A", "S")  # the statistics that hand-made proxies read
_PASSED_TAPS = ("A", "S", "H")  # and formulas, too
_MEANINGS = {
    "A": "FFN activations (A)",
    "H": "projections that feed heads (H)",
    "S": "attention probabilities (S)",
    "heads": "outputs of the heads",
}


class WeightMatrix(NamedTuple):
    """A weight matrix of a block; trailing axes are joined by `flat`."""

    name: str
    weight: nn.Parameter
    part: Part


class Passed(NamedTuple):
    """Results of the pass over the whole batch, block by block, detached.

    gradients: those of each matrix, in two dimensions; inputs, outputs (B, T, d) and the gradient
    at the inputs; A, S, H and heads as in a `Trace`, and the gradients at A and heads.
    """

    gradients: list[list[Tensor]]
    inputs: list[Tensor]
    outputs: list[Tensor]
    input_gradients: list[Tensor]
    A: list[list[Tensor]]
    S: list[list[Tensor]]
    H: list[list[Tensor]]
    heads: list[list[Tensor]]
    A_gradients: list[list[Tensor]]
    head_gradients: list[list[Tensor]]


class Opening(NamedTuple):
    """Of one input: the tokens that the first block sees, their width, each block's arguments."""

    n_tokens: int
    width: int
    calls: list[BlockCall]


class HiddenStates(NamedTuple):
    """A block's hidden state (B, T, d) before each token, and the loss's gradient there.

    The state before a token is the block's output at the token before, zero before the first. Of a
    recurrent layer that is the first of its states, and the gradient has all that follows from it.
    """

    values: Tensor
    gradients: Tensor


class Shared(Generic[V]):
    """A pass that runs once per network; the network records its time and which were used."""

    def __init__(self, run: Callable[[Any], V]) -> None:
        self.run, self.__doc__ = run, run.__doc__
        self.name = run.__name__

    def __get__(self, network: Network, _: type[Network]) -> V:
        network.used.add(self.name)
        if self.name not in network.kept:
            start = time.process_time()
            network.kept[self.name] = self.run(network)
            network.seconds[self.name] = time.process_time() - start
        value: V = network.kept[self.name]
        return value


class Network:
    """An untrained model, a batch of tokens (B, T) or images (B, 3, H, W), and a loss.

    The batch may also be tensors by the names of the model's arguments. `loss` is "auto",
    "next-token", "labels", "cotangent" or "ones", or a function of what the model returns and its
    batch that gives one number, or one per sample. `blocks` are found if not given. `chunk`
    sequences go through at a time, to save memory. `seed` draws labels, cotangents, probes and
    noise.
    `sizes` are a space's `block_sizes` under "blocks" and `end_sizes` under "ends", for formulas.
    `wide_tokens` are a larger batch, for proxies that compare units over tokens. `is_quick`: what
    costs much is computed less exactly, as in a search (the flow of absolute weights in float32,
    the trace of the tangent kernel from one sequence).
    """

    def __init__(
        self,
        model: nn.Module,
        tokens: Tensor | Mapping[str, Tensor],
        loss: str | Loss = "auto",
        *,
        blocks: Sequence[nn.Module] | None = None,
        layout: Layout | None = None,
        seed: int = 0,
        chunk: int | None = None,
        sizes: Mapping[str, Any] | None = None,
        wide_tokens: Tensor | None = None,
        is_quick: bool = False,
    ) -> None:
        self.model, self.layout, self.seed = model, layout or Layout(), seed
        self.is_quick = is_quick
        self.is_shared = False  # whether formulas read the pass of the other proxies
        self.has_layout = layout is not None
        self.sizes = sizes
        self.blocks = self.layout.find_blocks(model) if blocks is None else list(blocks)
        self.device = next(model.parameters()).device
        self.tokens = read_inputs(tokens, model)
        self.wide_tokens = self.tokens if wide_tokens is None else read_inputs(wide_tokens, model)
        self.chunk = chunk or len(self.tokens)
        self.loss = loss
        self.matrices = [
            [WeightMatrix(name, w, self.layout.part(name)) for name, w in named_weights(block)]
            for block in self.blocks
        ]
        self.kept: dict[str, Any] = {}
        self.seconds: dict[str, float] = {}
        self.used: set[str] = set()

    @property
    def weights(self) -> list[nn.Parameter]:
        """The matrices of all blocks as one list."""
        return [matrix.weight for block in self.matrices for matrix in block]

    def untouched(self) -> AbstractContextManager[None]:
        """A context in which the model may be run; on exit its state is restored."""
        return untouched(self.model, self.weights, self.device)

    def trace(
        self,
        part: slice,
        source: Tensor | None = None,
        with_steps: bool = False,
        taps: Sequence[str] = _TAPS,
    ) -> Trace[Tensor]:
        """The forward pass over a part of the batch."""
        return trace(
            self.model,
            self.blocks,
            self.tokens[part],
            taps,
            lambda _, tensor: tensor,
            layout=self.layout,
            source=source,
            with_steps=with_steps,
        )

    def part_loss(self, output: Any, part: slice) -> Tensor:
        """The part's contribution to the loss; contributions add up to the mean over sequences."""
        whole = objective(self.model, self.loss, self.tokens, self.seed)
        return whole(output, self.tokens[part], part)

    def draw(self, stream: int) -> np.random.Generator:
        """A random generator that depends only on the network's seed and the stream."""
        return np.random.Generator(np.random.Philox(np.random.SeedSequence([self.seed, stream])))

    def check_memory(self, n_copies: int, what: str) -> None:
        """Raise MemoryLimitError unless that many copies of the blocks' matrices fit."""
        memory.check(n_copies * sum(weight.nbytes for weight in self.weights), what)

    def missing(self, tap: str) -> InputError:
        """The error that says which tap the model has not, with modules that look alike."""
        return InputError(
            f"{type(self.model).__name__} has no {_MEANINGS[tap]} that can be read: name the"
            f" sub-module of a block that has them in Layout.{tap}{look_alikes(self.blocks, tap)}"
        )

    @Shared
    def opening(self) -> Opening:
        """The pass over the first input alone, without gradients."""
        with self.untouched(), torch.no_grad():
            found = self.trace(slice(0, 1))
        T, d = found.inputs[0].shape[1:]
        return Opening(T, d, found.calls)

    @property
    def entry(self) -> tuple[int, int]:
        """How many tokens of an input the first block sees, and how wide they are."""
        return self.opening.n_tokens, self.opening.width

    @Shared
    def passed(self) -> Passed:
        """The pass over the whole batch."""
        with self.untouched():
            return _joined([_one_pass(self, part) for part in self._parts()])

    def has_passed(self, names: Collection[str]) -> bool:
        """Whether formulas share a pass here, and it has these statistics."""
        is_tapped = {n for n in names if STATISTICS[n].source is StatisticSource.TAP}
        return self.is_shared and is_tapped <= set(_PASSED_TAPS)

    def passed_statistics(self, names: Collection[str], limit: int | None) -> NetworkStatistics:
        """The blocks' statistics, which are read from the shared pass instead of one of its own."""
        passed = self.passed
        taps = [
            dict(zip(_PASSED_TAPS, of, strict=True))
            for of in zip(passed.A, passed.S, passed.H, strict=True)
        ]
        gradients = {id(x): g for x, g in zip(passed.inputs, passed.input_gradients, strict=True)}
        gradients |= {
            id(matrix.weight): gradient
            for block, of in zip(self.matrices, passed.gradients, strict=True)
            for matrix, gradient in zip(block, of, strict=True)
        }
        seen = Trace(passed.inputs, passed.outputs, taps, passed.heads)
        return of_pass(seen, self.blocks, gradients, names, limit)

    @Shared
    def released_pass(self) -> Passed:
        """The pass over the whole batch with the dropout of the released recipes."""
        found = []
        with self.untouched():
            for part in self._parts():
                with passes.train_mode_dropout(self.model, self.seed, part):
                    found.append(_one_pass(self, part))
        return _joined(found)

    def _parts(self) -> list[slice]:
        """The parts of the batch that go through at a time."""
        B = len(self.tokens)
        return [slice(i, min(i + self.chunk, B)) for i in range(0, B, self.chunk)]

    @Shared
    def entropies(self) -> list[float]:
        """The entropy of the spectrum of the first block's input and of each block's output."""
        return passes.entropies(self)

    @Shared
    def wide_outputs(self) -> list[Tensor]:
        """The output of each block (B, T, d) for the wide batch, without gradients."""
        parts = split(self.wide_tokens, max(self.chunk, len(self.wide_tokens) // 2))
        with self.untouched(), torch.no_grad():
            traces = [
                trace(self.model, self.blocks, part, (), lambda _, tensor: tensor) for part in parts
            ]
        return [torch.cat(same) for same in zip(*(t.outputs for t in traces), strict=True)]

    @Shared
    def hidden(self) -> list[HiddenStates]:
        """The hidden states of each block over the batch."""
        with self.untouched():
            found = [_hidden_states(self, part) for part in self._parts()]
        return [
            HiddenStates(*(torch.cat(kind) for kind in zip(*of_block, strict=True)))
            for of_block in zip(*found, strict=True)
        ]

    @Shared
    def noised(self) -> dict[float, Tensor]:
        """The gradients at the first block's input (B, T, d) under noise, by its amplitude."""
        return passes.amplified(self)

    @Shared
    def sampled(self) -> sample_gradients.Summary:
        """Gradients of each sequence's own loss, summarised."""
        self.check_memory(len(self.tokens), "the gradients of every sequence")
        with self.untouched():
            return sample_gradients.summarise(sample_gradients.of_losses(self))

    @Shared
    def tangent(self) -> Tensor:
        """The tangent kernel of the sequences (B, B), traced over tokens and outputs."""
        self.check_memory(len(self.tokens), "the gradients of every sequence")
        with self.untouched():
            return sample_gradients.gram(sample_gradients.of_outputs(self))

    @Shared
    def tangent_trace(self) -> sample_gradients.TangentTrace:
        """The trace of the tangent kernel, and how many tokens the first block sees."""
        with self.untouched():
            return sample_gradients.tangent_trace(self)

    @Shared
    def flowed(self) -> list[flow.BlockFlow]:
        """The gradient of each matrix under absolute weights and an input of ones."""
        with self.untouched():
            return list(flow.backwards(self))[::-1]

    @Shared
    def released(self) -> flow.ReleasedFlow:
        """The pass over absolute weights as public code has it."""
        self.check_memory(4, "a copy of the network in float64 and its gradients")
        with self.untouched():
            return flow.released_flow(self)


def incoming(states: Tensor) -> Tensor:
    """The states (B, T, d) one step later, zero at the first: those that a step begins with."""
    before = torch.zeros_like(states)
    before[:, 1:] = states[:, :-1]
    return before


def _hidden_states(network: Network, part: slice) -> list[HiddenStates]:
    found = network.trace(part, with_steps=True)
    loss = network.part_loss(found.output, part)
    # A block that is not recurrent has its whole output at once.
    wanted = [of or [out] for of, out in zip(found.steps, found.outputs, strict=True)]
    flat_list = [tensor for of_block in wanted for tensor in of_block]
    gradients = iter(torch.autograd.grad(loss, flat_list, materialize_grads=True))
    states = []
    for of_block, steps in zip(wanted, found.steps, strict=True):
        at = [next(gradients) for _ in of_block]
        values, slopes = (
            torch.stack(tensors, 1) if steps else tensors[0]
            for tensors in ([tensor.detach() for tensor in of_block], at)
        )
        states.append(HiddenStates(incoming(values), incoming(slopes)))
    return states


def flat(weight: Tensor) -> Tensor:
    """The weight detached, in two dimensions."""
    return weight.detach().flatten(1)


def _one_pass(network: Network, part: slice) -> Passed:
    taps = _PASSED_TAPS if network.is_shared else _TAPS
    found = network.trace(part, taps=taps)
    loss = network.part_loss(found.output, part)
    tapped_A, tapped_S, tapped_H = (
        [block.get(name, []) for block in found.taps] for name in _PASSED_TAPS
    )
    in_A = [x for block in tapped_A for x in block]
    in_heads = [x for block in found.heads for x in block]
    wanted = [*network.weights, *found.inputs, *in_A, *in_heads]
    gradients = iter(torch.autograd.grad(loss, wanted, materialize_grads=True))
    of_weights = [[next(gradients).flatten(1) for _ in block] for block in network.matrices]
    of_inputs = [next(gradients) for _ in found.inputs]
    of_A = [[next(gradients) for _ in block] for block in tapped_A]
    of_heads = [[next(gradients) for _ in block] for block in found.heads]
    kinds = (tapped_A, tapped_S, tapped_H, found.heads)
    A, S, H, heads = ([[x.detach() for x in block] for block in kind] for kind in kinds)
    inputs, outputs = ([x.detach() for x in kind] for kind in (found.inputs, found.outputs))
    return Passed(of_weights, inputs, outputs, of_inputs, A, S, H, heads, of_A, of_heads)


def _joined(parts: list[Passed]) -> Passed:
    """The parts joined: gradients of weights added, all else concatenated along the batch."""
    if len(parts) == 1:
        return parts[0]

    def side_by_side(values: Sequence[Any]) -> Any:
        if isinstance(values[0], Tensor):
            return torch.cat(list(values))
        return [side_by_side(column) for column in zip(*values, strict=True)]

    def added(values: Sequence[Any]) -> Any:
        if isinstance(values[0], Tensor):
            return sum(values)
        return [added(column) for column in zip(*values, strict=True)]

    rest = [side_by_side([part[i] for part in parts]) for i in range(1, len(parts[0]))]
    return Passed(added([part.gradients for part in parts]), *rest)
