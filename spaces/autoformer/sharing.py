"""Weight entanglement (AutoFormer): every axis of every parameter is inherited from its beginning.

Queries, keys and values are three matrices here, so a layer of n heads inherits the first n heads
of each; AutoFormer stores the three in one matrix of interleaved rows (query, key, value, query,
...) and uses its first 3 q rows, which are the same heads.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

from spaces.autoformer.space import AutoFormerArch, AutoFormerLayer
from spaces.sharing import Split, Term, WeightSharing

if TYPE_CHECKING:
    from spaces.autoformer.model import AutoFormer
    from spaces.autoformer.space import AutoFormerSpace


class AutoFormerSharing(WeightSharing[AutoFormerArch]):
    """The first blocks, heads and features; heads and ratios of layers are independent."""

    space: AutoFormerSpace
    parts: ClassVar[Mapping[str, str]] = {"heads": "attention", "ratio": "feed-forward"}

    def layout(self, arch: AutoFormerArch) -> AutoFormer:
        from spaces.autoformer.model import AutoFormer

        return AutoFormer(self.space, arch)

    def terms(self, arch: AutoFormerArch) -> list[tuple[Term, ...]]:
        h = arch.hidden
        return [
            (
                Term(index, "attention", (h, layer.heads)),
                Term(index, "feed-forward", (h, layer.ratio)),
            )
            for index, layer in enumerate(arch.layers)
        ]

    def split(self, arch: AutoFormerArch) -> Split:
        heads = tuple(layer.heads for layer in arch.layers)
        return Split(
            arch.hidden, {"heads": heads, "ratio": tuple(layer.ratio for layer in arch.layers)}
        )

    def joined(self, split: Split) -> AutoFormerArch:
        pairs = zip(split.choices["heads"], split.choices["ratio"], strict=True)
        return AutoFormerArch(split.width, tuple(AutoFormerLayer(*pair) for pair in pairs))

    def choices(self, factor: str, width: Any) -> Sequence[Any]:
        return {"heads": self.space.heads, "ratio": self.space.ratios}[factor]

    def frames(self) -> Sequence[tuple[Any, int]]:
        return list(product(self.space.hidden, self.space.n_layers))
