"""AutoFormer architectures and their exact sizes; the parts they count are in `model`.

Choices: Table 1 of PreNAS, after Chen et al. 2021 (AutoFormer). Letters: h hidden, q = 64 heads
the width of queries, keys and values, f = int(h ratio), g patches along a side, T = g g + 1 tokens.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from spaces.base import Sizes
from spaces.choices import Choice, Layers
from spaces.images import ImageSpace

if TYPE_CHECKING:
    from spaces.autoformer.model import AutoFormer
    from spaces.autoformer.sharing import AutoFormerSharing


@dataclass(frozen=True, slots=True)
class AutoFormerLayer:
    """One encoder layer."""

    heads: int
    ratio: float

    def __post_init__(self) -> None:
        if isinstance(self.ratio, int) and not isinstance(self.ratio, bool):
            # 4 and 4.0 are one architecture, also as JSON.
            object.__setattr__(self, "ratio", float(self.ratio))


@dataclass(frozen=True, slots=True)
class AutoFormerArch:
    """A hidden width and the layers, first to last."""

    hidden: int
    layers: tuple[AutoFormerLayer, ...]


@dataclass(frozen=True)
class AutoFormerSpace(ImageSpace[AutoFormerArch]):
    """The allowed values; the defaults are the tiny space.

    `head_width` is that of one head, `clip` the largest relative position that is distinguished.
    """

    version: ClassVar[int] = 1
    kind: ClassVar[type[Any]] = AutoFormerArch
    crossed_first: ClassVar[tuple[str, ...]] = ("layers",)

    name: str = "autoformer-tiny"
    hidden: tuple[int, ...] = (192, 216, 240)
    n_layers: tuple[int, ...] = (12, 13, 14)
    heads: tuple[int, ...] = (3, 4)
    ratios: tuple[float, ...] = (3.5, 4.0)
    image: int = 224
    patch: int = 16
    classes: int = 1000
    head_width: int = 64
    clip: int = 14
    n_images: int = 2

    @property
    def grid(self) -> int:
        """The number of patches along a side of the image."""
        return self.image // self.patch

    @property
    def batch_shape(self) -> tuple[int, int]:
        return self.n_images, self.grid**2 + 1

    @cached_property
    def fields(self) -> tuple[Choice, Layers]:
        of_layer = Choice("heads", self.heads), Choice("ratio", self.ratios)
        layers = Layers("layers", self.n_layers, AutoFormerLayer, of_layer)
        return Choice("hidden", self.hidden), layers

    def redraw_block(self, arch: AutoFormerArch, index: int, rng: random.Random) -> AutoFormerArch:
        return self.draw_block(arch, index, rng)

    def build(self, arch: AutoFormerArch, seed: int) -> AutoFormer:
        from spaces.autoformer.model import build

        self.validate(arch)
        return build(self, arch, seed)

    def weight_sharing(self) -> AutoFormerSharing:
        from spaces.autoformer.sharing import AutoFormerSharing

        return AutoFormerSharing(self)

    def inner(self, arch: AutoFormerArch, layer: AutoFormerLayer) -> int:
        """The width f of the layer's MLP."""
        return int(arch.hidden * layer.ratio)

    def block_sizes(self, arch: AutoFormerArch) -> list[Sizes]:
        h = arch.hidden
        sizes = []
        for layer in arch.layers:
            f = self.inner(arch, layer)
            feed_forward, norms = 2 * h * f + f + h, 4 * h
            params = self._attention_parameters(h, layer) + feed_forward + norms
            sizes.append({"params": params, "width": h, "ffn": f, "heads": layer.heads})
        return sizes

    def end_sizes(self, arch: AutoFormerArch) -> dict[str, Sizes]:
        h, T = arch.hidden, self.batch_shape[1]
        return {
            "embedding": {"params": 3 * self.patch**2 * h + h + h + T * h, "width": h},
            "head": {"params": self.classes * (h + 1), "width": h},
        }

    def decoder_parameters(self, arch: AutoFormerArch) -> int:
        return sum(sizes["params"] for sizes in self.block_sizes(arch)) + 2 * arch.hidden

    def attention_parameters(self, arch: AutoFormerArch) -> int:
        return sum(self._attention_parameters(arch.hidden, layer) for layer in arch.layers)

    def _attention_parameters(self, h: int, layer: AutoFormerLayer) -> int:
        q = self.head_width * layer.heads
        tables = 4 * (2 * self.clip + 2) * self.head_width
        return 3 * h * q + 3 * q + q * h + h + tables

    def to_hidden(self, arch: AutoFormerArch, tokens: int | None = None) -> int:
        """See `ImageSpace`; `tokens` must be a square number of patches plus the class token."""
        h, T = arch.hidden, self.batch_shape[1] if tokens is None else tokens
        g = math.isqrt(T - 1)
        total = g * g * 3 * self.patch**2 * h
        for layer in arch.layers:
            q = self.head_width * layer.heads
            attention = 2 * T * T * q + 4 * g**3 * q  # and the relative positions
            total += T * (4 * h * q + 2 * h * self.inner(arch, layer)) + attention
        return total

    def width(self, arch: AutoFormerArch) -> int:
        return arch.hidden
