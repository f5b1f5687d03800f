"""PiT architectures and their exact sizes; the parts they count are in `model`.

Choices: Zhou et al. 2022 (TF-TAS), whose space T-Razor searches and Auto-Prox draws its table
from. A stage is base_dim * heads wide, and pooling multiplies widths, so that the heads of a stage
are a multiple of those before.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from spaces.base import Sizes
from spaces.choices import Choice, PerStage
from spaces.images import ImageSpace

if TYPE_CHECKING:
    from spaces.pit.model import Pit


@dataclass(frozen=True, slots=True)
class PitBlock:
    """A block; its heads are shared by its stage, its MLP ratio by all blocks."""

    heads: int
    ratio: int


@dataclass(frozen=True, slots=True)
class PitArch:
    """The width of a head, one MLP ratio, and for each stage its blocks and heads."""

    base_dim: int
    ratio: int
    depths: tuple[int, ...]
    heads: tuple[int, ...]


@dataclass(frozen=True)
class PitSpace(ImageSpace[PitArch]):
    """The allowed values; `depths` are those of each stage, `heads` those of every stage."""

    version: ClassVar[int] = 1
    kind: ClassVar[type[Any]] = PitArch
    crossed_first: ClassVar[tuple[str, ...]] = ("heads",)
    shares_blocks: ClassVar[bool] = True

    name: str = "pit"
    base_dims: tuple[int, ...] = (16, 24, 32, 40)
    ratios: tuple[int, ...] = (2, 4, 6, 8)
    depths: tuple[tuple[int, ...], ...] = ((1, 2, 3), (4, 6, 8), (2, 4, 6))
    heads: tuple[int, ...] = (2, 4, 8)
    image: int = 224
    patch: int = 16
    stride: int = 8
    classes: int = 1000
    n_images: int = 2

    @property
    def grids(self) -> tuple[int, ...]:
        """The number of tokens along a side of the grid in each stage."""
        return self._grids((self.image - self.patch) // self.stride + 1)

    def _grids(self, first: int) -> tuple[int, ...]:
        halved = itertools.accumulate(self.depths[1:], lambda g, _: (g - 1) // 2 + 1, initial=first)
        return tuple(halved)

    @property
    def batch_shape(self) -> tuple[int, int]:
        return self.n_images, self.grids[0] ** 2 + 1

    def widths(self, arch: PitArch) -> tuple[int, ...]:
        """The width of each stage."""
        return tuple(arch.base_dim * heads for heads in arch.heads)

    def block_widths(self, arch: PitArch) -> tuple[int, ...]:
        stages = zip(self.widths(arch), arch.depths, strict=True)
        return tuple(width for width, depth in stages for _ in range(depth))

    @cached_property
    def fields(self) -> tuple[Choice, Choice, PerStage, PerStage]:
        return (
            Choice("base_dim", self.base_dims),
            Choice("ratio", self.ratios),
            PerStage("depths", self.depths),
            PerStage("heads", (self.heads,) * len(self.depths), is_multiple=True),
        )

    def head_choices(self) -> list[tuple[int, ...]]:
        """The allowed combinations of heads of the stages."""
        return self.fields[3].combinations()

    def blocks(self, arch: PitArch) -> tuple[PitBlock, ...]:
        stages = zip(arch.heads, arch.depths, strict=True)
        return tuple(PitBlock(heads, arch.ratio) for heads, n in stages for _ in range(n))

    def with_block(self, arch: PitArch, index: int, block: PitBlock) -> PitArch:
        """The architecture in which that block is the given one, still inside the space.

        Shared fields change too: the heads of its stage and the ratio of all blocks. A stage
        whose heads no longer fit gets those of its neighbour towards the block.
        """
        ends = list(itertools.accumulate(arch.depths))
        stage = next(i for i, end in enumerate(ends) if index < end)
        heads = list(arch.heads)
        heads[stage] = block.heads
        for before in reversed(range(stage)):
            if heads[before + 1] % heads[before]:
                heads[before] = heads[before + 1]
        for after in range(stage + 1, len(heads)):
            if heads[after] % heads[after - 1]:
                heads[after] = heads[after - 1]
        return replace(arch, ratio=block.ratio, heads=tuple(heads))

    def redraw_block(self, arch: PitArch, index: int, rng: random.Random) -> PitArch:
        """The architecture with the block's heads and ratio redrawn (see `with_block`)."""
        return self.with_block(
            arch, index, PitBlock(rng.choice(self.heads), rng.choice(self.ratios))
        )

    def redraw_shape(self, arch: PitArch, rng: random.Random) -> PitArch:
        """The architecture with the width of a head and the depths redrawn; heads are of blocks."""
        drawn = self.mutate(arch, 0.5, rng)
        return replace(arch, base_dim=drawn.base_dim, depths=drawn.depths)

    def build(self, arch: PitArch, seed: int) -> Pit:
        from spaces.pit.model import build

        self.validate(arch)
        return build(self, arch, seed)

    def block_sizes(self, arch: PitArch) -> list[Sizes]:
        """As everywhere; the first block of a later stage has the pooling that leads to it."""
        sizes: list[Sizes] = []
        widths = self.widths(arch)
        before = widths[0]
        for w, heads, n in zip(widths, arch.heads, arch.depths, strict=True):
            f = w * arch.ratio
            params = attention_parameters(w) + (2 * w * f + f + w) + 4 * w
            for index in range(n):
                pooling = 9 * w + w + before * w + w if sizes and index == 0 else 0
                sizes.append(
                    {"params": params + pooling, "width": before, "ffn": f, "heads": heads}
                )
                before = w
        return sizes

    def end_sizes(self, arch: PitArch) -> dict[str, Sizes]:
        first, last = self.widths(arch)[0], self.widths(arch)[-1]
        embedding = (3 * self.patch**2 + 1 + self.grids[0] ** 2 + 1) * first
        return {
            "embedding": {"params": embedding, "width": first},
            "head": {"params": self.classes * (last + 1), "width": last},
        }

    def decoder_parameters(self, arch: PitArch) -> int:
        blocks = sum(sizes["params"] for sizes in self.block_sizes(arch))
        return blocks + 2 * self.widths(arch)[-1]

    def attention_parameters(self, arch: PitArch) -> int:
        stages = zip(self.widths(arch), arch.depths, strict=True)
        return sum(n * attention_parameters(w) for w, n in stages)

    def to_hidden(self, arch: PitArch, tokens: int | None = None) -> int:
        """See `ImageSpace`; `tokens` of the first stage must be a square number plus one."""
        widths = self.widths(arch)
        grids = self.grids if tokens is None else self._grids(round((tokens - 1) ** 0.5))
        total = grids[0] ** 2 * 3 * self.patch**2 * widths[0]
        for w, n, g in zip(widths, arch.depths, grids, strict=True):
            T = g * g + 1
            total += n * (T * w * w * (4 + 2 * arch.ratio) + 2 * T * T * w)
        for before, w, g in _joints(widths, grids):
            total += g * g * 9 * w + before * w
        return total

    def depth(self, arch: PitArch) -> int:
        return sum(arch.depths)

    def width(self, arch: PitArch) -> int:
        """The width of the last stage."""
        return self.widths(arch)[-1]


def attention_parameters(w: int) -> int:
    """Parameters of a block's attention, its norm left out."""
    return 4 * w * w + 4 * w


def _joints(widths: Sequence[int], grids: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """(width before, width after, grid after) of every pooling."""
    for (before, width), grid in zip(itertools.pairwise(widths), grids[1:], strict=True):
        yield before, width, grid
