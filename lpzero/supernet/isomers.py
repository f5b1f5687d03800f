"""Isomers: architectures that differ only in which layer has which number of heads and ratio.

They have the same parameters and flops (section 3.2 and appendix B of PreNAS). Heads and ratios are
permuted independently. Because a layer's score is the sum of its attention's and its MLP's, the
best isomer is found separately for each. PreNAS does so greedily: the layers that gain most get the
larger choices. That is optimal for two choices, but not always for three; the method here is
optimal for any number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from lpzero.arrays import FloatArray
from lpzero.supernet.saliency import Saliency
from spaces.autoformer import AutoFormerArch, AutoFormerLayer

C = TypeVar("C", int, float)


class Isomers(NamedTuple):
    """What isomers share: the width, and the choices of all layers in ascending order."""

    hidden: int
    heads: tuple[int, ...]
    ratios: tuple[float, ...]


def isomers(arch: AutoFormerArch) -> Isomers:
    """The group that the architecture belongs to."""
    heads = tuple(sorted(layer.heads for layer in arch.layers))
    ratios = tuple(sorted(layer.ratio for layer in arch.layers))
    return Isomers(arch.hidden, heads, ratios)


def allocate(values: FloatArray, counts: Sequence[int]) -> npt.NDArray[np.intp]:
    """The choice of each layer (L,) that maximises the sum of values; `counts` layers per choice.

    `values` (L, choices) is the value of each choice in each layer. With two choices the layers
    that gain most get the second one, the lower layer if tied; with more it is an assignment
    problem.
    """
    if len(counts) == 2:
        gains = values[:, 1] - values[:, 0]
        chosen = np.zeros(len(values), dtype=np.intp)
        chosen[np.argsort(-gains, kind="stable")[: counts[1]]] = 1
        return chosen
    from scipy.optimize import linear_sum_assignment  # slow to import, and not needed by --help

    slots = np.repeat(np.arange(len(counts)), counts)  # one for each layer
    _, assigned = linear_sum_assignment(values[:, slots], maximize=True)
    choices: npt.NDArray[np.intp] = slots[assigned]
    return choices


def representative(saliency: Saliency, group: Isomers) -> AutoFormerArch:
    """The isomer that layer-normalised SNIP prefers (equation 13, algorithm 1 of appendix B)."""
    space, depth = saliency.space, len(group.heads)
    at = space.hidden.index(group.hidden)
    scale = saliency.totals[:depth, None]
    heads = _placed(saliency.attention[:depth, at] / scale, space.heads, group.heads)
    ratios = _placed(saliency.mlp[:depth, at] / scale, space.ratios, group.ratios)
    layers = zip(heads, ratios, strict=True)
    return AutoFormerArch(group.hidden, tuple(AutoFormerLayer(*pair) for pair in layers))


def _placed(values: FloatArray, choices: Sequence[C], wanted: Sequence[C]) -> list[C]:
    """The wanted choices, layer by layer."""
    counts = [list(wanted).count(choice) for choice in choices]
    return [choices[place] for place in allocate(values, counts)]
