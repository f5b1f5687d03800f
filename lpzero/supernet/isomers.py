"""Isomers: architectures that differ only in which layer has which choices.

They have the same parameters and flops (section 3.2 and appendix B of PreNAS). The factors (in
AutoFormer heads and ratios) are permuted independently. Because a layer's score is the sum of its
attention's and its MLP's, the best isomer is found separately for each. PreNAS does so greedily:
the layers that gain most get the larger choices. That is optimal for two choices, but not always
for three; the method here is optimal for any number.

There are two groupings. PreNAS's public code and, by default, this one take architectures with the
same *multiset* of choices as isomers; appendix B of the paper those with the same *total* (heads or
ratios), which are fewer and larger groups where a layer has three choices or more.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lpzero.arrays import FloatArray
from lpzero.errors import FitnessError
from lpzero.judgement.ranks import rank, rank_targets
from lpzero.supernet.saliency import Gains, Saliency, sharing_of
from spaces.base import Space
from spaces.sharing import Split

MULTISET, TOTALS = "multiset", "totals"
GROUPINGS = (MULTISET, TOTALS)


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


def representative(given: Saliency | Gains, group: Isomers, grouping: str = MULTISET) -> Any:
    """The isomer that layer-normalised SNIP prefers (equation 13, algorithm 1 of appendix B)."""
    gains = Gains.of(given)
    return gains.sharing.joined(Split(group.width, best_places(gains, group, grouping)))


def best_places(
    gains: Gains, group: Isomers, grouping: str = MULTISET
) -> Mapping[str, tuple[Any, ...]]:
    """By factor the choices layer by layer: the group's, or others of the same total."""
    places = {}
    for factor, wanted in group.choices:
        depth = len(wanted)
        values = gains.table(factor, group.width, depth)
        choices = gains.sharing.choices(factor, group.width)
        if grouping == MULTISET:
            places[factor] = placed(values, choices, wanted)
            continue
        alike = [other for other in multisets(choices, depth) if total(other) == total(wanted)]
        options = [placed(values, choices, other) for other in alike]
        [places[factor]] = best_of_totals(values, choices, options)
    return places


def multisets(choices: Sequence[Any], depth: int) -> Iterable[tuple[Any, ...]]:
    """Every multiset of choices of that many layers, each in ascending order."""
    return itertools.combinations_with_replacement(sorted(choices), depth)


def placed(values: FloatArray, choices: Sequence[Any], wanted: Sequence[Any]) -> tuple[Any, ...]:
    """The wanted choices, layer by layer."""
    counts = [list(wanted).count(choice) for choice in choices]
    return tuple(choices[place] for place in allocate(values, counts))


def best_of_totals(
    values: FloatArray, choices: Sequence[Any], options: Iterable[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    """Of the options, choices layer by layer, the one with the largest value for each total."""
    columns, layers = {choice: i for i, choice in enumerate(choices)}, np.arange(len(values))
    best: dict[float, tuple[float, tuple[Any, ...]]] = {}
    for option in options:
        value = float(values[layers, [columns[choice] for choice in option]].sum())
        if total(option) not in best or value > best[total(option)][0]:
            best[total(option)] = value, option
    return [option for _, option in best.values()]


def total(choices: Iterable[Any]) -> float:
    """The sum of the choices; rounded, so that equal totals of ratios are equal."""
    return round(float(sum(choices)), 9)


def likeness(gains: Gains, arch: Any, grouping: str = MULTISET) -> float | None:
    """How far single passes place the architecture's choices as it does; None for one pass.

    It is the share of choices (of layers and factors) that agree with the isomer that a pass
    elects from the same group, averaged over the passes.
    """
    if len(gains.passes) < 2:
        return None
    split = gains.sharing.split(arch)
    group, shares = group_of(split), []
    for single in gains.passes:
        elected = best_places(Gains((single,)), group, grouping)
        pairs = [
            pair for f, own in split.choices.items() for pair in zip(own, elected[f], strict=True)
        ]
        shares.append(np.mean([mine == other for mine, other in pairs]))
    return float(np.mean(shares))


def mean_best_rank(scores: FloatArray, targets: FloatArray, groups: Sequence[Hashable]) -> float:
    """mBR = sum (r_g - 1) / sum (|g| - 1): 0 if each choice is the group's best, 1 if its worst.

    r_g is the rank among the group's targets, best first, of the architecture with the group's
    highest score (appendix A of PreNAS), or the mean rank if several tie. Equal targets share a
    rank.
    """
    if not len(scores) == len(targets) == len(groups):
        lengths = f"{len(scores)} scores, {len(targets)} targets and {len(groups)} groups"
        raise FitnessError(f"{lengths} were given; expected equal numbers")
    scores, targets = (np.asarray(x, dtype=np.float64) for x in (scores, targets))
    rows: dict[Hashable, list[int]] = {}
    for row, group in enumerate(groups):
        rows.setdefault(group, []).append(row)
    lost = total = 0.0
    for members in rows.values():
        if len(members) < 2:
            continue
        target_ranks = rank_targets(-targets[members])
        score_ranks = rank(scores[members])
        lost += float(target_ranks[score_ranks == score_ranks.max()].mean()) - 1
        total += len(members) - 1
    if total == 0:
        raise FitnessError("no group has two architectures; the mean best rank is undefined")
    return lost / total
