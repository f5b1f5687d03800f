"""The interface of a search space: frozen architectures, variation, exact sizes, models.

An architecture is a frozen dataclass with JSON-able fields; its layers are frozen dataclasses
too, so that block-wise evolution can exchange them. A space defines the allowed values, and
everything that varies an architecture takes a random generator as an argument.

Sizes: `parameters` is exactly what `build` allocates. `flops` counts two per multiply-add of
every matrix product and convolution in one forward pass of one sequence (or image) from its
input to the final hidden state (no output head), which is what torch's own counter measures.
`block_sizes` and `end_sizes` state the sizes of the model's positions, which need no network.
"""

from __future__ import annotations

import dataclasses
import json
import random
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, cast

if TYPE_CHECKING:
    from torch import Tensor, nn

    from spaces.sharing import WeightSharing
    from spaces.supernet import Supernet

A = TypeVar("A")
EMBEDDING, HEAD = ENDS = ("embedding", "head")  # the positions beside the blocks
Sizes = dict[str, int]  # by the names of the sizes: params, width, ffn, heads


class Space(ABC, Generic[A]):
    """A set of architectures of type A, with everything that the engine needs from it."""

    name: str
    # Raise it whenever `build` returns a different model; stored sketches depend on it.
    version: ClassVar[int]
    # Statistics that no model of the space has, by name; formulas that read them are rejected.
    absent_statistics: ClassVar[frozenset[str]] = frozenset()
    # Whether blocks share fields, so that exchanging one changes others too.
    shares_blocks: ClassVar[bool] = False
    vocabulary: int
    reads_text: bool

    @property
    @abstractmethod
    def batch_shape(self) -> tuple[int, int]:
        """The number of inputs in the default minibatch, and of tokens per input in a block."""

    @abstractmethod
    def validate(self, arch: A) -> None:
        """Raise ArchitectureError naming the first field outside the space."""

    def network_key(self, arch: A) -> Hashable:
        """A key that architectures share if they are one network under other names."""
        return cast(Hashable, arch)

    @abstractmethod
    def cardinality(self) -> int:
        """The exact number of architectures that `sample` can return."""

    @abstractmethod
    def sample(self, rng: random.Random) -> A:
        """A uniformly drawn architecture, field by field."""

    @abstractmethod
    def mutate(self, arch: A, probability: float, rng: random.Random) -> A:
        """The architecture with each field redrawn with the given probability."""

    @abstractmethod
    def crossover(self, first: A, second: A, rng: random.Random) -> A:
        """A child that takes each field from one parent or the other."""

    @abstractmethod
    def blocks(self, arch: A) -> tuple[Any, ...]:
        """The architecture's blocks, first to last."""

    @abstractmethod
    def with_block(self, arch: A, index: int, block: Any) -> A:
        """The architecture with one block exchanged."""

    def takes_block(self, arch: A, block: Any) -> bool:
        """Whether `sample` could return this block with the rest of the architecture."""
        return True

    def redraw_block(self, arch: A, index: int, rng: random.Random) -> A:
        """The architecture with one block redrawn and the rest unchanged."""
        while True:
            drawn = self.mutate(arch, 1.0, rng)
            if self.depth(drawn) > index and self.width(drawn) == self.width(arch):
                return self.with_block(arch, index, self.blocks(drawn)[index])

    def redraw_shape(self, arch: A, rng: random.Random) -> A:
        """The architecture with what is beside its blocks redrawn: depth, widths, stages.

        Each field is redrawn with probability one half. A block stays at its place if the new shape
        has the place and takes it.
        """
        drawn = self.mutate(arch, 0.5, rng)
        for index, block in enumerate(self.blocks(arch)[: self.depth(drawn)]):
            if self.takes_block(drawn, block):
                drawn = self.with_block(drawn, index, block)
        return drawn

    @abstractmethod
    def from_json(self, fields: Mapping[str, Any]) -> A:
        """The validated architecture whose `to_json` returns these fields."""

    @abstractmethod
    def build(self, arch: A, seed: int) -> nn.Module:
        """The untrained model in eval mode; equal seeds give equal weights in any process."""

    def weight_sharing(self) -> WeightSharing[A] | None:
        """How architectures inherit from one supernet; None where they share no weights."""
        return None

    def supernet(self, seed: int) -> Supernet[A]:
        """The supernet: untrained weights of which every architecture inherits a part."""
        from spaces.supernet import Supernet

        return Supernet(self, seed)

    @abstractmethod
    def block_sizes(self, arch: A) -> list[Sizes]:
        """Of each block as it is built its params, width, ffn and heads.

        params: all parameters of the block's module, biases and norms included; width: of what
        enters the block; ffn: the inner width of its feed-forward layer; heads: how many it has.
        """

    @abstractmethod
    def end_sizes(self, arch: A) -> dict[str, Sizes]:
        """Of the `embedding` and the `head` the params and the width.

        The embedding is everything before the first block, as wide as its word vectors (language)
        or what it gives to the first block (vision). The head has its own parameters only, none
        where it shares all of them or a model has no head; it is as wide as the final hidden state.
        """

    def parameters(self, arch: A) -> int:
        """How many parameters `build` allocates."""
        ends = sum(sizes["params"] for sizes in self.end_sizes(arch).values())
        return ends + self.decoder_parameters(arch)

    @abstractmethod
    def decoder_parameters(self, arch: A) -> int:
        """Parameters of the blocks and the final norm: no embedding, no output head."""

    @abstractmethod
    def attention_parameters(self, arch: A) -> int:
        """Parameters of the token-mixing half of every block, without norms."""

    @abstractmethod
    def flops(self, arch: A, tokens: int | None = None) -> int:
        """Floating-point operations of one forward pass over `tokens` tokens."""

    @abstractmethod
    def depth(self, arch: A) -> int:
        """The number of blocks."""

    @abstractmethod
    def width(self, arch: A) -> int:
        """The width of the residual stream."""

    def block_widths(self, arch: A) -> tuple[int, ...]:
        """The width of what each block gives; spaces with stages have different ones."""
        return (self.width(arch),) * self.depth(arch)

    def projections(self, arch: A) -> int:
        """How many projections feed heads in all blocks: the taps H of the model.

        Queries, keys and values of every block; spaces with other blocks count their own.
        """
        return 3 * self.depth(arch)

    def to_json(self, arch: A) -> dict[str, Any]:
        """The architecture as plain JSON values."""
        fields: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(arch)))  # type: ignore[call-overload]
        return fields

    def identity(self) -> dict[str, Any]:
        """What determines its networks, by name: the fields; stored sketches depend on it."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}  # type: ignore[arg-type]

    def batch(self, seed: int = 0) -> Tensor:
        """The default minibatch of token ids, int64 (B, T): text for byte spaces, else Zipf.

        Spaces of vision models return images instead, see `spaces.images`.
        """
        return self.draw_batch(self.batch_shape, seed)

    def draw_batch(self, shape: tuple[int, int], seed: int) -> Tensor:
        """Token ids of that shape, int64 (B, T): text for byte spaces, else Zipf."""
        from spaces.minibatch import text_tokens, zipf_tokens

        if self.reads_text:
            return text_tokens(shape, seed)
        return zipf_tokens(self.vocabulary, shape, seed)

    def wide_batch(self, seed: int = 0) -> Tensor:
        """The minibatch of proxies that compare units over steps; the default one unless wider."""
        return self.batch(seed)

    def traits(self, arch: A) -> dict[str, float]:
        """Further numbers that describe an architecture, by name, for surrogates and distances."""
        return {}
