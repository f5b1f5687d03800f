"""SNIP of every architecture of a space from one pass of its supernet.

With entangled weights an architecture's part of a matrix is a leading slice, so its part of
sum |dL/dW * W| is one entry of that matrix's prefix sums. The result of the pass is two small
tables: each block's attention by (hidden, heads), and its MLP by (hidden, ratio). A score adds one
entry of each per layer. Gradients are the supernet's, as in PreNAS: subnets inherit them with the
weights. Only the blocks' matrices count, as in the rest of the engine.

Shapes: L layers of the supernet, H hidden widths, n and r the choices of heads and ratios.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from spaces.autoformer import AutoFormerArch, AutoFormerLayer, AutoFormerSpace
from spaces.base import Space

if TYPE_CHECKING:
    from torch import Tensor

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Saliency:
    """The SNIP sums of leading slices: attention (L, H, n) and mlp (L, H, r)."""

    space: AutoFormerSpace
    attention: FloatArray
    mlp: FloatArray

    @classmethod
    def of(
        cls,
        space: Space[Any],
        *,
        seed: int = 0,
        batch_seed: int = 0,
        images: Tensor | None = None,
        loss: str = "auto",
        device: str = "cpu",
        chunk: int | None = None,
    ) -> Saliency:
        """One forward and backward pass of the space's supernet on the images, or its batch."""
        # Imported here so that code that only reads saliencies does not load torch.
        from lpzero.statistics.extraction import extract
        from lpzero.statistics.isolation import resolve_device, single_thread
        from lpzero.statistics.trace import Layout, named_weights

        if not isinstance(space, AutoFormerSpace):
            raise InputError(f"space {space.name} has no supernet; use an AutoFormer space")
        supernet = space.supernet(seed).to(resolve_device(device))
        with single_thread():
            images = space.batch(batch_seed) if images is None else images
            found = extract(
                supernet.largest,
                images,
                loss=loss,
                seed=batch_seed,
                chunk=chunk,
                with_ends=False,
            )
            names = [[name for name, _ in named_weights(b)] for b in supernet.largest.blocks]
            sums = [
                {
                    name: _prefix_sums((weight.values * gradient.values).abs())
                    for name, weight, gradient in zip(own, block["W"], block["G"], strict=True)
                }
                for own, block in zip(names, found.blocks, strict=True)
            ]
        layout = Layout()
        mlp = {name for name in names[0] if layout.part(name) == "feed-forward"}
        shapes, any_heads, any_ratio = supernet.block_shapes, space.heads[0], space.ratios[0]
        by_heads = [AutoFormerLayer(heads, any_ratio) for heads in space.heads]
        by_ratio = [AutoFormerLayer(any_heads, ratio) for ratio in space.ratios]
        attention = _table(sums, space, by_heads, shapes, sums[0].keys() - mlp)
        return cls(space, attention, _table(sums, space, by_ratio, shapes, mlp))

    @property
    def totals(self) -> FloatArray:
        """SNIP of each complete layer of the supernet (L,)."""
        # Larger slices contain the smaller ones, so the largest entries are of the whole layer.
        whole: FloatArray = self.attention.max(axis=(1, 2)) + self.mlp.max(axis=(1, 2))
        return whole

    def scores(self, archs: Sequence[AutoFormerArch], normalised: bool = False) -> FloatArray:
        """SNIP of each architecture (N,); `normalised` divides each layer by the supernet's."""
        return np.array(self._values(archs, normalised).sum(axis=1))

    def block_scores(self, arch: AutoFormerArch, normalised: bool = False) -> FloatArray:
        """SNIP of each layer (depth,)."""
        return np.array(self._values([arch], normalised)[0, : len(arch.layers)])

    def _values(self, archs: Sequence[AutoFormerArch], normalised: bool) -> FloatArray:
        """SNIP of each architecture's layers (N, L), zero beyond its depth."""
        space, L = self.space, len(self.attention)
        for arch in archs:
            space.validate(arch)
        hidden, heads, ratios = map(_places, (space.hidden, space.heads, space.ratios))
        at_hidden = np.array([hidden[arch.hidden] for arch in archs], dtype=np.intp)[:, None]
        empty = [0] * L
        at_heads, at_ratio = (
            np.array([(row + empty)[:L] for row in rows], dtype=np.intp).reshape(len(archs), L)
            for rows in (
                [[heads[layer.heads] for layer in arch.layers] for arch in archs],
                [[ratios[layer.ratio] for layer in arch.layers] for arch in archs],
            )
        )
        layer = np.arange(L)
        values = self.attention[layer, at_hidden, at_heads] + self.mlp[layer, at_hidden, at_ratio]
        depths = np.array([len(arch.layers) for arch in archs], dtype=np.intp)[:, None]
        present: FloatArray = np.where(layer < depths, values, 0.0)
        return present / self.totals if normalised else present


def has_supernet(space: Space[Any]) -> bool:
    """Whether the space's architectures can share weights."""
    return isinstance(space, AutoFormerSpace)


def _prefix_sums(values: Tensor) -> FloatArray:
    """The prefix sums in float64: at (i, j) the sum over rows up to i and columns up to j."""
    sums: FloatArray = values.double().cumsum(0).cumsum(1).cpu().numpy()
    return sums


def _table(
    sums: Sequence[Mapping[str, FloatArray]],
    space: AutoFormerSpace,
    layers: Sequence[AutoFormerLayer],
    shapes: Callable[[int, AutoFormerLayer], Mapping[str, tuple[int, ...]]],
    names: Set[str],
) -> FloatArray:
    """The named matrices' sums for every block, hidden width and layer choice (L, H, layers)."""
    table = np.zeros((len(sums), len(space.hidden), len(layers)))
    for i, hidden in enumerate(space.hidden):
        for j, layer in enumerate(layers):
            inside = shapes(hidden, layer)
            for block, of_block in enumerate(sums):
                for name in sorted(names):
                    rows, columns = inside[name]
                    table[block, i, j] += of_block[name][rows - 1, columns - 1]
    return table


def _places(choices: Sequence[T]) -> dict[T, int]:
    return {choice: place for place, choice in enumerate(choices)}
