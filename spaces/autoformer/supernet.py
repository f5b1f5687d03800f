"""One set of weights for every architecture of a space: weight entanglement (AutoFormer).

The supernet is the largest architecture. Any other inherits the first blocks and, from each
parameter, the leading slice of every axis. Queries, keys and values are three matrices here, so a
layer of n heads inherits the first n heads of each; AutoFormer stores the three in one matrix of
interleaved rows (query, key, value, query, ...) and uses its first 3 q rows, which are the same
heads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from spaces.autoformer.model import AutoFormer
from spaces.autoformer.space import AutoFormerArch, AutoFormerLayer

if TYPE_CHECKING:
    from spaces.autoformer.space import AutoFormerSpace


class Supernet(nn.Module):
    """The space's largest model, which contains every other one."""

    def __init__(self, space: AutoFormerSpace, seed: int) -> None:
        super().__init__()
        self.space = space
        self.largest = space.build(largest(space), seed)
        self.eval()

    def forward(self, images: Tensor, arch: AutoFormerArch | None = None) -> Tensor:
        """The final hidden state (B, T, h) of the architecture, by default the largest.

        Gradients reach the supernet's own parameters.
        """
        if arch is None:
            whole: Tensor = self.largest(images)
            return whole
        skeleton = self._skeleton(arch)
        hidden: Tensor = torch.func.functional_call(skeleton, self.inherited(arch), (images,))
        return hidden

    def inherited(self, arch: AutoFormerArch) -> dict[str, Tensor]:
        """The architecture's parameters by name, as views of the supernet's."""
        return self._slices(self._skeleton(arch))

    def subnet(self, arch: AutoFormerArch) -> AutoFormer:
        """A separate model with copies of the inherited weights, in eval mode."""
        model = self._skeleton(arch)
        slices = self._slices(model)
        model.to_empty(device=next(self.parameters()).device)
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                parameter.copy_(slices[name])
        return model

    def block_shapes(self, hidden: int, layer: AutoFormerLayer) -> dict[str, tuple[int, ...]]:
        """The shape of each parameter of such a block, by its name inside the block."""
        with torch.device("meta"):
            [block] = AutoFormer(self.space, AutoFormerArch(hidden, (layer,))).blocks
        return {name: tuple(p.shape) for name, p in block.named_parameters()}

    def _slices(self, model: AutoFormer) -> dict[str, Tensor]:
        whole = dict(self.largest.named_parameters())
        return {
            name: whole[name][tuple(slice(size) for size in parameter.shape)]
            for name, parameter in model.named_parameters()
        }

    def _skeleton(self, arch: AutoFormerArch) -> AutoFormer:
        self.space.validate(arch)
        dtype = next(self.parameters()).dtype
        with torch.device("meta"):
            return AutoFormer(self.space, arch).to(dtype).eval()


def largest(space: AutoFormerSpace) -> AutoFormerArch:
    """The architecture that contains every other one of the space."""
    layer = AutoFormerLayer(max(space.heads), max(space.ratios))
    return AutoFormerArch(max(space.hidden), (layer,) * max(space.n_layers))
