"""OpenLM architectures (Gadre et al., 2024, mlfoundations/scaling) and their exact sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from spaces.base import Sizes
from spaces.choices import Choice, ChoiceSpace

if TYPE_CHECKING:
    from spaces.openlm.model import OpenLm

_INNER_STEP = 256  # inner widths are multiples of it


@dataclass(frozen=True, slots=True)
class OpenLmLayer:
    """One decoder layer; all layers of a network have the same number of heads."""

    heads: int


@dataclass(frozen=True, slots=True)
class OpenLmArch:
    """A decoder of `depth` equal layers."""

    width: int
    depth: int
    heads: int


@dataclass(frozen=True)
class OpenLmSpace(ChoiceSpace[OpenLmArch]):
    """The allowed values; the defaults are those of the released grid."""

    version: ClassVar[int] = 1
    kind: ClassVar[type[Any]] = OpenLmArch
    shares_blocks: ClassVar[bool] = True

    name: str = "openlm"
    widths: tuple[int, ...] = (96, 192, 288, 320, 488, 512, 576, 640, 768, 1024)
    depths: tuple[int, ...] = (4, 8, 12, 16, 24)
    heads: tuple[int, ...] = (4, 8, 12, 16)
    vocabulary: int = 50432
    context: int = 2048
    batch_shape: tuple[int, int] = (2, 64)
    reads_text: bool = False

    @cached_property
    def fields(self) -> tuple[Choice, ...]:
        return (
            Choice("width", self.widths),
            Choice("depth", self.depths),
            Choice("heads", self.heads),
        )

    def blocks(self, arch: OpenLmArch) -> tuple[OpenLmLayer, ...]:
        return (OpenLmLayer(arch.heads),) * arch.depth

    def with_block(self, arch: OpenLmArch, index: int, block: OpenLmLayer) -> OpenLmArch:
        return replace(arch, heads=block.heads)

    def build(self, arch: OpenLmArch, seed: int) -> OpenLm:
        from spaces.openlm.model import build

        self.validate(arch)
        return build(self, arch, seed)

    def block_sizes(self, arch: OpenLmArch) -> list[Sizes]:
        d, f = arch.width, inner_width(arch.width)
        params = attention_parameters(arch) + 3 * d * f + 2 * d
        return [{"params": params, "width": d, "ffn": f, "heads": arch.heads}] * arch.depth

    def end_sizes(self, arch: OpenLmArch) -> dict[str, Sizes]:
        table = self.vocabulary * arch.width
        return {end: {"params": table, "width": arch.width} for end in ("embedding", "head")}

    def decoder_parameters(self, arch: OpenLmArch) -> int:
        return sum(sizes["params"] for sizes in self.block_sizes(arch)) + arch.width

    def attention_parameters(self, arch: OpenLmArch) -> int:
        return arch.depth * attention_parameters(arch)

    def flops(self, arch: OpenLmArch, tokens: int | None = None) -> int:
        T = self.batch_shape[1] if tokens is None else tokens
        d, f = arch.width, inner_width(arch.width)
        products = T * (attention_parameters(arch) + 3 * d * f) + 2 * T * T * attention_width(arch)
        return 2 * arch.depth * products

    def depth(self, arch: OpenLmArch) -> int:
        return arch.depth

    def width(self, arch: OpenLmArch) -> int:
        return arch.width


def inner_width(width: int) -> int:
    """The width of the feed-forward layer: 8/3 of the model's, rounded up."""
    return _INNER_STEP * -(-(8 * width // 3) // _INNER_STEP)


def attention_width(arch: OpenLmArch) -> int:
    """The width of all heads together: less than the model's if the heads do not divide it."""
    return arch.heads * (arch.width // arch.heads)


def attention_parameters(arch: OpenLmArch) -> int:
    """Parameters of a block's attention, its norm left out."""
    return 4 * arch.width * attention_width(arch)
