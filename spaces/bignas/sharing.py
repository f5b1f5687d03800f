"""How convolutional networks share weights (BigNAS, section 3; PreNAS, Table 2).

Leading channels, the centre of each kernel, the first blocks of each stage. BatchNorms have their
weights in common; their statistics are recomputed for every architecture.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from spaces.bignas.space import BigNasArch
from spaces.sharing import Box, Shape, Split, Term, WeightSharing

if TYPE_CHECKING:
    from torch import nn

    from spaces.bignas.model import BigNas
    from spaces.bignas.space import BigNasSpace

_SINGLE = ("resolution", "stem", "last")
_STAGED = ("channels", "depths", "kernels")


class BigNasSharing(WeightSharing[BigNasArch]):
    """Leading channels, centres of kernels, first blocks of stages; there are no isomers."""

    space: BigNasSpace

    def layout(self, arch: BigNasArch) -> BigNas:
        from spaces.bignas.model import BigNas

        return BigNas(self.space, arch)

    def terms(self, arch: BigNasArch) -> list[tuple[Term, ...]]:
        starts = [0, *accumulate(map(max, self.space.depths))]
        seen = [0] * len(starts)
        groups: list[tuple[Term, ...]] = []
        for plan in self.space.plans(arch):
            block = starts[plan.stage] + seen[plan.stage]
            seen[plan.stage] += 1
            choice = (plan.inputs, plan.outputs, plan.kernel)
            groups.append((Term(block, "feed-forward", choice),))
        return groups

    def group(self, arch: BigNasArch) -> tuple[Any, int]:
        """The resolution and the depth."""
        return arch.resolution, sum(arch.depths)

    def split(self, arch: BigNasArch) -> Split:
        """One width for all; places are stages."""
        single = {field: (getattr(arch, field),) for field in _SINGLE}
        return Split(None, single | {field: getattr(arch, field) for field in _STAGED})

    def joined(self, split: Split) -> BigNasArch:
        single = {field: split.choices[field][0] for field in _SINGLE}
        staged: dict[str, Any] = {field: split.choices[field] for field in _STAGED}
        return BigNasArch(**single, **staged)

    def choices(self, factor: str, width: Any) -> Sequence[Any]:
        plural = {"resolution": "resolutions", "stem": "stems", "last": "lasts"}
        values: Sequence[Any] = getattr(self.space, plural.get(factor, factor))
        return values

    def frames(self) -> Sequence[tuple[Any, int]]:
        return []

    def boxes(self, name: str, whole: Shape, part: Shape) -> list[Box]:
        if len(part) != 4:
            return super().boxes(name, whole, part)
        leading = tuple(slice(size) for size in part[:2])
        margins = [(w - p) // 2 for w, p in zip(whole[2:], part[2:], strict=True)]
        centre = (slice(m, m + p) for m, p in zip(margins, part[2:], strict=True))
        return [(*leading, *centre)]

    def branches(self, block: nn.Module) -> list[nn.Module]:
        children = dict(block.named_children())
        return [children["convolution"]] if getattr(block, "is_residual", False) else []
