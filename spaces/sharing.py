"""How the architectures of a family share the weights of one supernet: the protocol.

The supernet is the family's largest model. Any other architecture inherits from each of its
parameters one box, or several that are joined along the last axis (fused queries, keys and values),
and some of its blocks. A family states that here, beside its model; saliency, selection, samplers,
training and specialisation know nothing else about it. Needs no torch until a model is laid out.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple

from spaces.base import A

if TYPE_CHECKING:
    from torch import nn

    from spaces.choices import ChoiceSpace

Shape = tuple[int, ...]
Box = tuple[slice, ...]
Choices = Mapping[str, tuple[Any, ...]]  # by factor, the choice of every place


class Term(NamedTuple):
    """A part of a block of the supernet, and the choice that says which slice is inherited."""

    block: int
    part: str
    choice: Hashable


class Split(NamedTuple):
    """An architecture as its width and, by factor, the choice of every place (layer or stage)."""

    width: Any
    choices: Choices


class WeightSharing(ABC, Generic[A]):
    """What is inherited, and the independent choices that an architecture consists of."""

    # By factor, the part of a block that its choice resizes: permuting the choices of a factor
    # gives isomers, of equal size. Empty where permutations are not possible.
    parts: ClassVar[Mapping[str, str]] = {}

    def __init__(self, space: ChoiceSpace[A]) -> None:
        self.space = space

    def largest(self) -> A:
        """The architecture that contains every other one of the space."""
        return self.space.chosen(lambda _, values: max(values))

    def smallest(self) -> A:
        """The architecture that every other one of the space contains."""
        return self.space.chosen(lambda _, values: min(values))

    @abstractmethod
    def layout(self, arch: A) -> nn.Module:
        """The model of the architecture; its values are unset."""

    @abstractmethod
    def terms(self, arch: A) -> list[tuple[Term, ...]]:
        """For each block, the slices of the supernet that it consists of."""

    @abstractmethod
    def split(self, arch: A) -> Split:
        """The architecture's independent choices."""

    @abstractmethod
    def joined(self, split: Split) -> A:
        """The architecture of these choices."""

    @abstractmethod
    def choices(self, factor: str, width: Any) -> Sequence[Any]:
        """The choices of the factor in an architecture of that width."""

    @abstractmethod
    def frames(self) -> Sequence[tuple[Any, int]]:
        """Every width with every number of places; empty without isomers."""

    def group(self, arch: A) -> tuple[Any, int]:
        """The width and depth, of which balanced sampling draws all alike (PreNAS, section 3.3)."""
        split = self.split(arch)
        return split.width, len(next(iter(split.choices.values())))

    def source(self, arch: A) -> list[int]:
        """For each block, the block of the supernet that it inherits."""
        return [terms[0].block for terms in self.terms(arch)]

    def boxes(self, name: str, whole: Shape, part: Shape) -> list[Box]:
        """What a parameter of shape `part` inherits of the supernet's, of shape `whole`."""
        return [tuple(slice(size) for size in part)]

    def branches(self, block: nn.Module) -> list[nn.Module]:
        """The block's modules whose output is added to its input: what stochastic depth drops."""
        children = dict(block.named_children())
        return [children["attention"], children["feed_forward"]]
