"""SNIP of every architecture of a space from one pass of its supernet.

An architecture's part of sum |dL/dW * W| is the sum over the slices that it inherits, each of
which is one of few terms: a block, a part of it (attention, feed-forward) and a choice. A
score adds up one number per term. Gradients are the supernet's, as in PreNAS: subnets inherit them
with the weights. Only the blocks' matrices count, as in the rest of the engine.

L is the number of blocks of the supernet.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.judgement.correlation import spearman
from spaces.base import Space
from spaces.sharing import Box, Split, Term, WeightSharing

if TYPE_CHECKING:
    from torch import Tensor

Measure = Callable[[Any], Mapping[Term, float]]  # from an architecture to all its terms


@dataclass(frozen=True, eq=False)
class Saliency:
    """The SNIP sums of the terms; those of `values` are known, others are measured when needed."""

    space: Space[Any]
    values: dict[Term, float]
    measure: Measure

    @classmethod
    def of(
        cls,
        space: Space[Any],
        *,
        seed: int = 0,
        batch_seed: int = 0,
        images: Tensor | None = None,
        loss: str = "auto",
        device: str = "cpu",
        chunk: int | None = None,
    ) -> Saliency:
        """One forward and backward pass of the space's supernet on the images, or its batch."""
        # Imported here so that code that only reads saliencies does not load torch.
        from lpzero.statistics.extraction import extract
        from lpzero.statistics.isolation import resolve_device, single_thread
        from lpzero.statistics.trace import named_weights

        sharing_of(space)
        supernet = space.supernet(seed).to(resolve_device(device))
        with single_thread():
            images = space.batch(batch_seed) if images is None else images
            extracted = extract(
                supernet.largest,
                images,
                loss=loss,
                seed=batch_seed,
                chunk=chunk,
                with_ends=False,
            )
            blocks: Any = supernet.largest.blocks
            products = [
                {
                    name: _Product((w.values * g.values).abs().double().reshape(weight.shape))
                    for (name, weight), w, g in zip(
                        named_weights(block), values["W"], values["G"], strict=True
                    )
                }
                for block, values in zip(blocks, extracted.blocks, strict=True)
            ]
        return cls(space, {}, _Slices(supernet.sharing, products))

    @property
    def totals(self) -> FloatArray:
        """SNIP of each complete block of the supernet (L,)."""
        return self.block_scores(self.sharing.largest())

    @property
    def sharing(self) -> WeightSharing[Any]:
        return sharing_of(self.space)

    def scores(self, archs: Sequence[Any], normalised: bool = False) -> FloatArray:
        """SNIP of each architecture (N,); `normalised` divides each block by the supernet's."""
        L = len(self.sharing.terms(self.sharing.largest()))
        values = np.zeros((len(archs), L))
        for row, arch in enumerate(archs):
            for terms in self._terms(arch):
                values[row, terms[0].block] = self._sum(terms)
        return np.array((values / self.totals if normalised else values).sum(axis=1))

    def block_scores(self, arch: Any, normalised: bool = False) -> FloatArray:
        """SNIP of each block (depth,)."""
        terms = self._terms(arch)
        values = np.array([self._sum(of_block) for of_block in terms])
        if not normalised:
            return values
        return np.array(values / self.totals[[of_block[0].block for of_block in terms]])

    def table(self, factor: str, width: Any, depth: int) -> FloatArray:
        """SNIP of what each choice of the factor resizes, in each layer (depth, choices)."""
        sharing = self.sharing
        columns = []
        for choice in sharing.choices(factor, width):
            drawn = {
                other: (choice if other == factor else sharing.choices(other, width)[0],) * depth
                for other in sharing.parts
            }
            arch = sharing.joined(Split(width, drawn))
            part = sharing.parts[factor]
            columns.append(
                [self._sum([t for t in terms if t.part == part]) for terms in self._terms(arch)]
            )
        transposed: FloatArray = np.array(columns).T
        return transposed

    def _terms(self, arch: Any) -> list[tuple[Term, ...]]:
        """The terms of a valid architecture, all of which are known now."""
        self.space.validate(arch)
        terms = self.sharing.terms(arch)
        if not all(term in self.values for of_block in terms for term in of_block):
            self.values.update(self.measure(arch))
        return terms

    def _sum(self, terms: Sequence[Term]) -> float:
        return sum(self.values[term] for term in terms)


def sharing_of(space: Space[Any]) -> WeightSharing[Any]:
    """How the space shares weights; raise InputError if it does not."""
    sharing = space.weight_sharing()
    if sharing is None:
        raise InputError(
            f"space {space.name} has no supernet; use an AutoFormer space, nano-gpt2 or bignas"
        )
    return sharing


def has_supernet(space: Space[Any]) -> bool:
    """Whether the space's architectures can share weights."""
    return space.weight_sharing() is not None


class _Product:
    """|dL/dW * W| of a matrix in float64, and its prefix sums if it has two axes."""

    def __init__(self, values: Tensor) -> None:
        self.values = values
        self.prefix: FloatArray | None = None
        if values.ndim == 2:
            self.prefix = values.cumsum(0).cumsum(1).cpu().numpy()

    def sum(self, boxes: Sequence[Box]) -> float:
        """The sum over the boxes; over a leading box it is an entry of the prefix sums."""
        [first, *others] = boxes
        if self.prefix is not None and not others and not any(axis.start for axis in first):
            rows, columns = (axis.stop for axis in first)
            return float(self.prefix[rows - 1, columns - 1])
        return sum(float(self.values[box].sum()) for box in boxes)


class _Slices:
    """Sums the products of a supernet over what an architecture inherits."""

    def __init__(
        self, sharing: WeightSharing[Any], products: Sequence[Mapping[str, _Product]]
    ) -> None:
        self.sharing, self.products = sharing, products

    def __call__(self, arch: Any) -> dict[Term, float]:
        import torch

        from lpzero.statistics.trace import Layout, named_weights

        with torch.device("meta"):
            blocks: Any = self.sharing.layout(arch).blocks
        layout = Layout()
        sums = {}
        for terms, block in zip(self.sharing.terms(arch), blocks, strict=True):
            shapes = {name: tuple(weight.shape) for name, weight in named_weights(block)}
            for term in terms:
                inside = [n for n in sorted(shapes) if layout.part(n) == term.part]
                of_block = self.products[term.block]
                sums[term] = sum(
                    of_block[name].sum(
                        self.sharing.boxes(name, tuple(of_block[name].values.shape), shapes[name])
                    )
                    for name in inside
                )
        return sums


@dataclass(frozen=True, eq=False)
class Gains:
    """What a choice in a layer is worth: layer-normalised SNIP, averaged over passes.

    Its order decides which isomer of a group is elected (equation 13 of PreNAS). With other weights
    it comes out differently, so passes with other weights can be averaged, and `agreement` says how
    alike they are.
    """

    passes: tuple[Saliency, ...]

    def __post_init__(self) -> None:
        if not self.passes:
            raise InputError("gains need at least one pass of the supernet")

    @classmethod
    def of(cls, given: Saliency | Gains) -> Gains:
        """The gains of one pass, or those given."""
        return given if isinstance(given, Gains) else cls((given,))

    @property
    def space(self) -> Space[Any]:
        return self.passes[0].space

    @property
    def sharing(self) -> WeightSharing[Any]:
        return self.passes[0].sharing

    def table(self, factor: str, width: Any, depth: int) -> FloatArray:
        """The value of each choice of the factor in each layer (depth, choices)."""
        tables = [of.table(factor, width, depth) / of.totals[:depth, None] for of in self.passes]
        mean: FloatArray = np.mean(tables, axis=0)
        return mean

    def steps(self, factor: str) -> FloatArray:
        """What each next choice of the factor adds in each layer of the largest frame (n,)."""
        width, depth = max(self.sharing.frames())
        return np.diff(self.table(factor, width, depth), axis=1).reshape(-1)

    def agreement(self) -> float | None:
        """The mean rho of the steps between two passes, over factors; None for one pass.

        Factor by factor, because heads gain more than ratios in every layer of every pass.
        """
        if len(self.passes) < 2:
            return None
        return agreement([Gains((single,)) for single in self.passes])


def agreement(sets: Sequence[Gains]) -> float:
    """The mean rho of the steps between two of the sets, over factors."""
    rhos = [mean_rho([gains.steps(factor) for gains in sets]) for factor in sets[0].sharing.parts]
    return float(np.mean(rhos))


def mean_rho(vectors: Sequence[FloatArray]) -> float:
    """The mean of Spearman's rho over pairs of vectors (n,), of which there are at least two."""
    return float(np.mean([spearman(*pair) for pair in itertools.combinations(vectors, 2)]))
