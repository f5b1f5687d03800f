"""Which architecture a step trains: the four samplers of PreNAS (section 3.3, Figure 5).

redundant   uniform over the space, as one-shot methods before it
uniform     uniform over the preferred architectures
resampled   a random recombination of the choices that occur in them, per width and place
balanced    uniform over the widths and depths that occur, then over the architectures of one
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lpzero.errors import InputError
from lpzero.supernet.saliency import sharing_of
from lpzero.supernet.selection import draw
from spaces.base import Space
from spaces.errors import UnknownNameError
from spaces.sharing import Split

Sampler = Callable[[random.Random], Any]
REDUNDANT = "redundant"


def sampler_named(name: str, space: Space[Any], preferred: Sequence[Any]) -> Sampler:
    """The sampler; all but `redundant` need preferred architectures."""
    if name not in SAMPLERS:
        raise UnknownNameError("sampler", name, SAMPLERS)
    if name != REDUNDANT and not preferred:
        raise InputError(f"sampler {name} needs preferred architectures")
    return SAMPLERS[name](space, list(preferred))


def redundant(space: Space[Any], preferred: Sequence[Any]) -> Sampler:
    """Uniform over the space, field by field."""
    return space.sample


def uniform(space: Space[Any], preferred: Sequence[Any]) -> Sampler:
    """Uniform over the preferred architectures."""
    return lambda rng: rng.choice(preferred)


def resampled(space: Space[Any], preferred: Sequence[Any]) -> Sampler:
    """A recombination of choices that occur at a place of an architecture of that width."""
    sharing = sharing_of(space)
    groups: dict[tuple[Any, int], list[Split]] = {}
    occurring: dict[tuple[Any, str, int], set[Any]] = {}
    for arch in preferred:
        split = sharing.split(arch)
        groups.setdefault(sharing.group(arch), []).append(split)
        for factor, chosen in split.choices.items():
            for place, choice in enumerate(chosen):
                occurring.setdefault((split.width, factor, place), set()).add(choice)
    sorted_choices = {key: sorted(found) for key, found in occurring.items()}

    def sample(rng: random.Random) -> Any:
        # A group has one number of places; of several splits any gives the same recombinations.
        split = groups[rng.choice(sorted(groups))][0]
        choices = {
            factor: tuple(
                rng.choice(sorted_choices[split.width, factor, place])
                for place in range(len(chosen))
            )
            for factor, chosen in split.choices.items()
        }
        return sharing.joined(Split(split.width, choices))

    return sample


def balanced(space: Space[Any], preferred: Sequence[Any]) -> Sampler:
    """Uniform over the widths and depths that occur, then within (equation of section 3.3)."""
    return lambda rng: draw(space, preferred, rng)


SAMPLERS: Mapping[str, Callable[[Space[Any], Sequence[Any]], Sampler]] = {
    REDUNDANT: redundant,
    "uniform": uniform,
    "resampled": resampled,
    "balanced": balanced,
}
