"""How decoders with one embedding table share weights.

Every axis is inherited from its beginning, except that queries, keys and values lie side by side in
one matrix and each is inherited from its own beginning. Heads divide the model's width, so that
another number of heads is another reading of the same weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

from spaces.gpt2.space import EMBED_LIKE_MODEL, Gpt2Arch
from spaces.sharing import Box, Shape, Split, Term, WeightSharing

if TYPE_CHECKING:
    from spaces.gpt2.model import Gpt2
    from spaces.gpt2.space import Gpt2Space


class Gpt2Sharing(WeightSharing[Gpt2Arch]):
    """The first blocks and features of each of queries, keys and values."""

    space: Gpt2Space
    parts: ClassVar[Mapping[str, str]] = {"n_head": "attention", "d_inner": "feed-forward"}

    def layout(self, arch: Gpt2Arch) -> Gpt2:
        from spaces.gpt2.model import Gpt2

        return Gpt2(self.space, arch)

    def terms(self, arch: Gpt2Arch) -> list[tuple[Term, ...]]:
        d = arch.d_model
        # Another number of heads inherits the same weights; it is part of the choice so that a
        # table of choices has an entry for each.
        return [
            (Term(index, "attention", (d, heads)), Term(index, "feed-forward", (d, inner)))
            for index, (heads, inner) in enumerate(zip(arch.n_head, arch.d_inner, strict=True))
        ]

    def split(self, arch: Gpt2Arch) -> Split:
        return Split(arch.d_model, {"n_head": arch.n_head, "d_inner": arch.d_inner})

    def joined(self, split: Split) -> Gpt2Arch:
        heads, inner = split.choices["n_head"], split.choices["d_inner"]
        return Gpt2Arch(split.width, heads, inner, EMBED_LIKE_MODEL, 1)

    def choices(self, factor: str, width: Any) -> Sequence[Any]:
        return self.space.n_head if factor == "n_head" else self.space.inner_choices(width)

    def frames(self) -> Sequence[tuple[Any, int]]:
        return list(product(self.space.d_model, self.space.n_layers))

    def boxes(self, name: str, whole: Shape, part: Shape) -> list[Box]:
        if ".c_attn." not in name:
            return super().boxes(name, whole, part)
        width, kept = whole[-1] // 3, part[-1] // 3
        rows = tuple(slice(size) for size in part[:-1])
        return [(*rows, slice(start, start + kept)) for start in (0, width, 2 * width)]
