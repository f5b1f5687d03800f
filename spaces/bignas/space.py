"""Architectures of the convolutional BigNAS space and their exact sizes (PreNAS, Table 2).

The table leaves the width of squeeze-and-excitation open. A quarter of a block's input is the only
one of three readings that fits the published 4.5 to 9.5 million parameters, and it is that of
EfficientNet-B0, whose 5,288,548 parameters come out. Kernels are chosen stage by stage.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from spaces.base import Sizes
from spaces.choices import Choice, PerStage
from spaces.images import ImageSpace

if TYPE_CHECKING:
    from spaces.bignas.model import BigNas
    from spaces.bignas.sharing import BigNasSharing


@dataclass(frozen=True, slots=True)
class BigNasBlock:
    """A block, whose channels and kernel are those of all blocks of its stage."""

    stage: int
    channels: int
    kernel: int


@dataclass(frozen=True, slots=True)
class BigNasArch:
    """The image's side, the stem's channels, three numbers a stage, and the last channels."""

    resolution: int
    stem: int
    channels: tuple[int, ...]
    depths: tuple[int, ...]
    kernels: tuple[int, ...]
    last: int


class BlockPlan(NamedTuple):
    """The numbers of one block."""

    stage: int
    inputs: int
    outputs: int
    expansion: int
    kernel: int
    stride: int


@dataclass(frozen=True)
class BigNasSpace(ImageSpace[BigNasArch]):
    """The allowed values; `image` is the side of the default batch, which networks resize."""

    version: ClassVar[int] = 1
    kind: ClassVar[type[Any]] = BigNasArch
    crossed_first: ClassVar[tuple[str, ...]] = ("channels", "kernels")
    shares_blocks: ClassVar[bool] = True
    absent_statistics: ClassVar[frozenset[str]] = frozenset({"H", "S"})

    name: str = "bignas"
    resolutions: tuple[int, ...] = (192, 224, 288, 320)
    stems: tuple[int, ...] = (32, 40)
    channels: tuple[tuple[int, ...], ...] = (
        (16, 24),
        (24, 32),
        (40, 48),
        (80, 88),
        (112, 120, 128),
        (192, 200, 208, 216),
        (320, 352),
    )
    depths: tuple[tuple[int, ...], ...] = (
        (1, 2),
        (2, 3),
        (2, 3),
        (2, 3, 4),
        (2, 3, 4, 5, 6),
        (2, 3, 4, 5, 6),
        (1, 2),
    )
    kernels: tuple[tuple[int, ...], ...] = ((3,), (3,), (3, 5), (3, 5), (3, 5), (3, 5), (3, 5))
    expansions: tuple[int, ...] = (1, 6, 6, 6, 6, 6, 6)
    strides: tuple[int, ...] = (1, 2, 2, 2, 1, 2, 1)
    lasts: tuple[int, ...] = (1280, 1408)
    image: int = 224
    classes: int = 1000
    n_images: int = 2

    @property
    def batch_shape(self) -> tuple[int, int]:
        return self.n_images, (-(-self.image // 2)) ** 2  # the stem halves a side, rounded up

    def plans(self, arch: BigNasArch) -> list[BlockPlan]:
        """The numbers of every block, first to last."""
        made = []
        before = arch.stem
        for stage, depth in enumerate(arch.depths):
            for index in range(depth):
                stride = self.strides[stage] if index == 0 else 1
                c, kernel = arch.channels[stage], arch.kernels[stage]
                made.append(BlockPlan(stage, before, c, self.expansions[stage], kernel, stride))
                before = c
        return made

    @cached_property
    def fields(self) -> tuple[Choice | PerStage, ...]:
        return (
            Choice("resolution", self.resolutions),
            Choice("stem", self.stems),
            PerStage("channels", self.channels),
            PerStage("depths", self.depths, is_together=True),
            PerStage("kernels", self.kernels),
            Choice("last", self.lasts),
        )

    def blocks(self, arch: BigNasArch) -> tuple[BigNasBlock, ...]:
        return tuple(BigNasBlock(p.stage, p.outputs, p.kernel) for p in self.plans(arch))

    def with_block(self, arch: BigNasArch, index: int, block: BigNasBlock) -> BigNasArch:
        """The architecture whose blocks of the given block's stage are like it.

        Choices differ between stages, so a block of another stage than that at the index changes
        its own.
        """
        return replace(
            arch,
            channels=_exchanged(arch.channels, block.stage, block.channels),
            kernels=_exchanged(arch.kernels, block.stage, block.kernel),
        )

    def redraw_block(self, arch: BigNasArch, index: int, rng: random.Random) -> BigNasArch:
        """The architecture with the channels and kernel of the block's stage redrawn."""
        stage = self.plans(arch)[index].stage
        drawn = rng.choice(self.channels[stage]), rng.choice(self.kernels[stage])
        return self.with_block(arch, index, BigNasBlock(stage, *drawn))

    def build(self, arch: BigNasArch, seed: int) -> BigNas:
        from spaces.bignas.model import build

        self.validate(arch)
        return build(self, arch, seed)

    def weight_sharing(self) -> BigNasSharing:
        from spaces.bignas.sharing import BigNasSharing

        return BigNasSharing(self)

    def block_sizes(self, arch: BigNasArch) -> list[Sizes]:
        """As everywhere; ffn is the width inside a block, and there are no heads."""
        sizes = []
        for p in self.plans(arch):
            inner, squeezed = p.inputs * p.expansion, max(1, p.inputs // 4)
            params = p.inputs * inner + 2 * inner if p.expansion > 1 else 0
            params += inner * p.kernel**2 + 2 * inner
            params += 2 * inner * squeezed + squeezed + inner
            params += inner * p.outputs + 2 * p.outputs
            sizes.append({"params": params, "width": p.inputs, "ffn": inner, "heads": 0})
        return sizes

    def end_sizes(self, arch: BigNasArch) -> dict[str, Sizes]:
        c, last = arch.channels[-1], arch.last
        head = c * last + 2 * last + self.classes * (last + 1)
        return {
            "embedding": {"params": 27 * arch.stem + 2 * arch.stem, "width": arch.stem},
            "head": {"params": head, "width": c},
        }

    def decoder_parameters(self, arch: BigNasArch) -> int:
        return sum(sizes["params"] for sizes in self.block_sizes(arch))

    def attention_parameters(self, arch: BigNasArch) -> int:
        return 0

    def to_hidden(self, arch: BigNasArch, tokens: int | None = None) -> int:
        """See `ImageSpace`; `tokens` of the first block must be a square number.

        By default those of an image of the architecture's resolution.
        """
        return self._to_last_grid(arch, tokens)[0]

    def multiply_adds(self, arch: BigNasArch) -> int:
        """Multiply-adds at the architecture's resolution including the class head."""
        to_hidden, grid = self._to_last_grid(arch, None)
        return to_hidden + arch.last * (grid**2 * arch.channels[-1] + self.classes)

    def _to_last_grid(self, arch: BigNasArch, tokens: int | None) -> tuple[int, int]:
        """Multiply-adds up to the final hidden state, and its pixels along a side."""
        g = -(-arch.resolution // 2) if tokens is None else math.isqrt(tokens)
        total = g * g * 27 * arch.stem
        for p in self.plans(arch):
            inner, squeezed = p.inputs * p.expansion, max(1, p.inputs // 4)
            total += g * g * p.inputs * inner if p.expansion > 1 else 0
            g = -(-g // p.stride)
            total += g * g * inner * (p.kernel**2 + p.outputs) + 2 * inner * squeezed
        return total, g

    def projections(self, arch: BigNasArch) -> int:
        return 0

    def depth(self, arch: BigNasArch) -> int:
        return sum(arch.depths)

    def width(self, arch: BigNasArch) -> int:
        """The channels of the last stage."""
        return arch.channels[-1]

    def block_widths(self, arch: BigNasArch) -> tuple[int, ...]:
        return tuple(p.outputs for p in self.plans(arch))


def _exchanged(values: tuple[int, ...], stage: int, value: int) -> tuple[int, ...]:
    return (*values[:stage], value, *values[stage + 1 :])
