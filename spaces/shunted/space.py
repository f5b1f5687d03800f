"""Shunted ViT architectures and their exact sizes; the parts they count are in `model`.

T-Razor searches base width, patch size, layers, heads and MLP ratio but prints no ranges and has no
public code. The ranges here are this project's: around Shunted-T, -S and -B of Ren et al. 2022,
with the number of convolutions in the stem instead of the patch size. A stage is twice as wide
as the one before and has twice the heads, so that a block's fields mean the same in every stage.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from spaces.base import Sizes
from spaces.choices import Choice, Stages
from spaces.images import ImageSpace

if TYPE_CHECKING:
    from spaces.shunted.model import Shunted

PATCH = 4  # pixels along a side of a token of the first stage


@dataclass(frozen=True, slots=True)
class ShuntedBlock:
    """A block; `heads` is the number it would have in the first stage."""

    heads: int
    ratio: int


@dataclass(frozen=True, slots=True)
class ShuntedArch:
    """The first stage's width, further convolutions of the stem, and the blocks of every stage."""

    base: int
    stem: int
    stages: tuple[tuple[ShuntedBlock, ...], ...]


@dataclass(frozen=True)
class ShuntedSpace(ImageSpace[ShuntedArch]):
    """The allowed values; `depths` and `reductions` are those of each stage."""

    version: ClassVar[int] = 1
    kind: ClassVar[type[Any]] = ShuntedArch

    name: str = "shunted"
    bases: tuple[int, ...] = (48, 64, 80)
    stems: tuple[int, ...] = (0, 1, 2)
    depths: tuple[tuple[int, ...], ...] = ((1, 2, 3), (2, 3, 4), (4, 8, 12, 16, 20, 24), (1, 2))
    heads: tuple[int, ...] = (2, 4)
    ratios: tuple[int, ...] = (2, 4, 6, 8)
    reductions: tuple[int, ...] = (8, 4, 2, 1)
    image: int = 224
    classes: int = 1000
    n_images: int = 2

    @property
    def grids(self) -> tuple[int, ...]:
        """The number of tokens along a side of the grid in each stage."""
        return self._grids(self.image // PATCH)

    def _grids(self, first: int) -> tuple[int, ...]:
        return tuple(-(-first // 2**stage) for stage in range(len(self.depths)))

    @property
    def batch_shape(self) -> tuple[int, int]:
        return self.n_images, self.grids[0] ** 2

    def widths(self, arch: ShuntedArch) -> tuple[int, ...]:
        """The width of each stage."""
        return tuple(arch.base * 2**stage for stage in range(len(arch.stages)))

    def heads_of(self, block: ShuntedBlock, stage: int) -> int:
        """The number of heads of the block in that stage."""
        return block.heads << stage

    def block_widths(self, arch: ShuntedArch) -> tuple[int, ...]:
        return tuple(self.widths(arch)[stage] for stage, _ in _numbered(arch))

    @cached_property
    def fields(self) -> tuple[Choice, Choice, Stages]:
        of_block = Choice("heads", self.heads), Choice("ratio", self.ratios)
        stages = Stages("stages", self.depths, ShuntedBlock, of_block)
        return Choice("base", self.bases), Choice("stem", self.stems), stages

    def redraw_shape(self, arch: ShuntedArch, rng: random.Random) -> ShuntedArch:
        """The architecture with width, stem and depths redrawn; blocks stay in their stage."""
        drawn = self.mutate(arch, 0.5, rng)
        stages = zip(arch.stages, drawn.stages, strict=True)
        kept = tuple((*own[: len(new)], *new[len(own) :]) for own, new in stages)
        return replace(drawn, stages=kept)

    def build(self, arch: ShuntedArch, seed: int) -> Shunted:
        from spaces.shunted.model import build

        self.validate(arch)
        return build(self, arch, seed)

    def block_sizes(self, arch: ShuntedArch) -> list[Sizes]:
        """As everywhere; the first block of a later stage has the pooling that leads to it."""
        sizes: list[Sizes] = []
        widths = self.widths(arch)
        before = widths[0]
        for stage, layer in _numbered(arch):
            d = widths[stage]
            f = d * layer.ratio
            params = self._attention_parameters(d, stage, norms=True)
            params += 2 * d * f + f + d + 10 * f + 4 * d  # the MLP, its depth-wise part, two norms
            if d != before:
                params += 9 * before * d + d + 2 * d + 2 * before
            heads = self.heads_of(layer, stage)
            sizes.append({"params": params, "width": before, "ffn": f, "heads": heads})
            before = d
        return sizes

    def _attention_parameters(self, d: int, stage: int, norms: bool) -> int:
        s = self.reductions[stage]
        if s == 1:
            return 4 * d * d + 4 * d + 10 * d
        merged = sum(k * k * d * d + d + d * d + d + 10 * (d // 2) for k in (s, s // 2))
        return 2 * d * d + 2 * d + merged + (4 * d if norms else 0)

    def end_sizes(self, arch: ShuntedArch) -> dict[str, Sizes]:
        d, last = arch.base, self.width(arch)
        stem = 3 * 49 * d + 2 * d + arch.stem * (9 * d * d + 2 * d)
        stem += 4 * d * d + d + 2 * d
        return {
            "embedding": {"params": stem, "width": d},
            "head": {"params": self.classes * (last + 1), "width": last},
        }

    def decoder_parameters(self, arch: ShuntedArch) -> int:
        return sum(sizes["params"] for sizes in self.block_sizes(arch)) + 2 * self.width(arch)

    def attention_parameters(self, arch: ShuntedArch) -> int:
        widths = self.widths(arch)
        return sum(
            self._attention_parameters(widths[stage], stage, norms=False)
            for stage, _ in _numbered(arch)
        )

    def to_hidden(self, arch: ShuntedArch, tokens: int | None = None) -> int:
        """See `ImageSpace`; `tokens` of the first stage must be a square number."""
        grids = self.grids if tokens is None else self._grids(math.isqrt(tokens))
        widths = self.widths(arch)
        half = PATCH // 2 * grids[0]
        total = half**2 * arch.base * (3 * 49 + arch.stem * 9 * arch.base)
        total += grids[0] ** 2 * 4 * arch.base**2
        for stage in range(1, len(widths)):
            total += grids[stage] ** 2 * 9 * widths[stage - 1] * widths[stage]
        for stage, layer in _numbered(arch):
            d, g = widths[stage], grids[stage]
            f = d * layer.ratio
            total += g * g * (2 * d * f + 9 * f) + self._attention_multiply_adds(d, g, stage)
        return total

    def _attention_multiply_adds(self, d: int, g: int, stage: int) -> int:
        s, T = self.reductions[stage], g * g
        if s == 1:
            return T * (4 * d * d + 9 * d) + 2 * T * T * d
        total = T * 2 * d * d
        for k in (s, s // 2):
            merged = (g // k) ** 2
            total += merged * (k * k * d * d + d * d + 9 * (d // 2)) + 2 * T * merged * (d // 2)
        return total

    def projections(self, arch: ShuntedArch) -> int:
        """Queries, and keys and values at one or two scales."""
        return sum(3 if self.reductions[stage] == 1 else 5 for stage, _ in _numbered(arch))

    def width(self, arch: ShuntedArch) -> int:
        """The width of the last stage."""
        return self.widths(arch)[-1]


def _numbered(arch: ShuntedArch) -> Iterator[tuple[int, ShuntedBlock]]:
    """Every block with the number of its stage, first to last."""
    for stage, layers in enumerate(arch.stages):
        for layer in layers:
            yield stage, layer
