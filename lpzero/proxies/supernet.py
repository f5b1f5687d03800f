"""SNIP from one pass of the space's supernet, for spaces that have one (PreNAS).

A score is a look-up, however many architectures there are: see `lpzero.supernet`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lpzero.arrays import FloatArray
from lpzero.proxies.registry import Needs, register
from lpzero.supernet.saliency import Saliency, has_supernet
from spaces.base import Space

if TYPE_CHECKING:
    from lpzero.proxies.context import Context


@dataclass(frozen=True, slots=True)
class SupernetProxy:
    """SNIP with weights and gradients inherited from the supernet."""

    name: str
    definition: str
    normalised: bool
    paper: str = "Wang et al. 2023 (PreNAS)"
    needs: Needs = Needs.FORWARD | Needs.GRADIENT | Needs.LABELS
    direction: int = 1
    has_blocks: bool = True

    def applies_to(self, space: Space[Any]) -> bool:
        """Whether the space has a supernet."""
        return has_supernet(space)

    def score(self, space: Space[Any], archs: Sequence[Any], context: Context) -> FloatArray:
        return _saliency(space, context).scores(archs, self.normalised)

    def block_scores(
        self, space: Space[Any], archs: Sequence[Any], context: Context
    ) -> list[FloatArray]:
        """Of each architecture the values of its blocks, which add up to its score."""
        saliency = _saliency(space, context)
        return [saliency.block_scores(arch, self.normalised) for arch in archs]


def _saliency(space: Space[Any], context: Context) -> Saliency:
    """The pass of the space's supernet, made once per context."""
    key = ("supernet", space, context.options)
    if key not in context.memory:
        context.memory[key] = Saliency.of(
            space,
            seed=context.seed,
            batch_seed=context.batch_seed,
            loss=context.loss,
            device=context.device,
            chunk=context.chunk,
        )
    found: Saliency = context.memory[key]
    return found


register(
    SupernetProxy(
        "supernet-snip",
        "sum |dL/dW * W| over the matrices of the blocks, W and dL/dW slices of the supernet's",
        normalised=False,
    )
)
register(
    SupernetProxy(
        "supernet-snip-normalised",
        "sum over blocks of supernet-snip over the supernet's own of that block",
        normalised=True,
    )
)
