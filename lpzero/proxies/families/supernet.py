"""SNIP from one pass of the space's supernet, for spaces that have one (PreNAS).

A score is a look-up, however many architectures are scored: see `lpzero.supernet`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lpzero.arrays import FloatArray
from lpzero.proxies.base import Needs, Proxy
from lpzero.proxies.registry import register
from lpzero.supernet.saliency import has_supernet
from spaces.autoformer import AutoFormerSpace
from spaces.base import Space

if TYPE_CHECKING:
    from lpzero.proxies.measurements import Measurements

_NO_SUPERNET = "it reads a supernet, and a model has none"


@dataclass(frozen=True, slots=True)
class SupernetProxy(Proxy):
    """SNIP with weights and gradients inherited from the supernet."""

    name: str
    normalised: bool
    definition: str = ""
    paper: str = "Wang et al. 2023 (PreNAS)"
    needs: Needs = Needs.FORWARD | Needs.GRADIENT | Needs.LABELS
    has_blocks: bool = True
    only_spaces: str = _NO_SUPERNET

    def applies_to(self, space: Space[Any]) -> bool:
        """Whether the space has a supernet."""
        return has_supernet(space)

    def score(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> FloatArray:
        return measurements.saliency(space).scores(archs, self.normalised)

    def block_scores(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> list[FloatArray]:
        """The values of each architecture's blocks, which add up to its score."""
        saliency = measurements.saliency(space)
        return [saliency.block_scores(arch, self.normalised) for arch in archs]


@dataclass(frozen=True, slots=True)
class ReleasedSupernetProxy(Proxy):
    """The score of PreNAS's public selector."""

    name: str = "supernet-snip-released"
    definition: str = "sum |dR/dp * p| of the sliced parameters, R the sum of logits of 64 images"
    paper: str = "code of Wang et al. 2023 (PreNAS)"
    needs: Needs = Needs.FORWARD | Needs.GRADIENT
    only_spaces: str = _NO_SUPERNET

    def applies_to(self, space: Space[Any]) -> bool:
        """Whether it is an AutoFormer space, which the public code is for."""
        return isinstance(space, AutoFormerSpace)

    def score(
        self, space: Space[Any], archs: Sequence[Any], measurements: Measurements
    ) -> FloatArray:
        return measurements.released_selector(space).scores(archs)


register(ReleasedSupernetProxy(), __name__)
register(
    SupernetProxy(
        "supernet-snip",
        False,
        "sum |dL/dW * W| over the matrices of the blocks, W and dL/dW slices of the supernet's",
    ),
    __name__,
)
register(
    SupernetProxy(
        "supernet-snip-normalised",
        True,
        "sum over blocks of supernet-snip over the supernet's own of that block",
    ),
    __name__,
)
