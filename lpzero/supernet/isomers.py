"""Isomers: architectures that differ only in which layer has which choices.

They have the same parameters and flops (section 3.2 and appendix B of PreNAS). The factors (in
AutoFormer heads and ratios) are permuted independently. Because a layer's score is the sum of its
attention's and its MLP's, the best isomer is found separately for each. PreNAS does so greedily:
the layers that gain most get the larger choices. That is optimal for two choices, but not always
for three; the method here is optimal for any number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lpzero.arrays import FloatArray
from lpzero.supernet.saliency import Saliency, sharing_of
from spaces.base import Space
from spaces.sharing import Split


class Isomers(NamedTuple):
    """What isomers share: the width, and by factor the choices of all layers in ascending order."""

    width: Any
    choices: tuple[tuple[str, tuple[Any, ...]], ...]


def isomers(space: Space[Any], arch: Any) -> Isomers:
    """The group that the architecture belongs to."""
    return group_of(sharing_of(space).split(arch))


def group_of(split: Split) -> Isomers:
    """The group that an architecture of these choices belongs to."""
    return Isomers(split.width, tuple((f, tuple(sorted(c))) for f, c in split.choices.items()))


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


def representative(saliency: Saliency, group: Isomers) -> Any:
    """The isomer that layer-normalised SNIP prefers (equation 13, algorithm 1 of appendix B)."""
    return saliency.sharing.joined(Split(group.width, best_places(saliency, group)))


def best_places(saliency: Saliency, group: Isomers) -> Mapping[str, tuple[Any, ...]]:
    """By factor, the group's choices layer by layer."""
    found = {}
    for factor, wanted in group.choices:
        depth = len(wanted)
        values = saliency.table(factor, group.width, depth) / saliency.totals[:depth, None]
        found[factor] = placed(values, saliency.sharing.choices(factor, group.width), wanted)
    return found


def placed(values: FloatArray, choices: Sequence[Any], wanted: Sequence[Any]) -> tuple[Any, ...]:
    """The wanted choices, layer by layer."""
    counts = [list(wanted).count(choice) for choice in choices]
    return tuple(choices[place] for place in allocate(values, counts))
