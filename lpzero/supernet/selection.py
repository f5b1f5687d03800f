"""The zero-cost selector of PreNAS: one isomer of each group, then the best of each size.

Step one elects an isomer by layer-normalised SNIP, step two the best of a size by plain SNIP
(equations 8 to 10 and 13). Where there are few enough groups all are scored. Spaces without isomers
(convolutions), or with too many groups, have a seeded sample of architectures as candidates.

Which architecture a step of one-shot training trains: the four samplers (section 3.3, Figure 5).

redundant   uniform over the space, as one-shot methods before it
uniform     uniform over the preferred architectures
resampled   a random recombination of the choices that occur in them, per width and place
balanced    uniform over the widths and depths that occur, then over the architectures of one
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import comb, prod
from pathlib import Path
from typing import Any

import numpy as np

from lpzero.arrays import IntArray
from lpzero.errors import InputError
from lpzero.supernet.isomers import (
    MULTISET,
    TOTALS,
    best_of_totals,
    isomers,
    multisets,
    placed,
    representative,
    total,
)
from lpzero.supernet.saliency import Gains, Saliency, sharing_of
from spaces.base import Space
from spaces.errors import ArchitectureError, UnknownNameError
from spaces.sharing import Split
from spaces.untrusted import UntrustedError, read_json

_LARGEST = 64 << 20  # bytes of a file of preferred architectures
N_BINS = 12  # of parameters, for the usual preferred architectures
MARGIN = 1_000_000  # parameters between constraints, section 4.1
MOST_GROUPS = 250_000  # more groups of isomers than that are sampled
N_SAMPLED = 4_000


@dataclass(frozen=True, slots=True)
class Preferred:
    """A selected architecture, its size, the bin [low, high) of sizes and its SNIP."""

    arch: Any
    size: int
    low: float
    high: float
    score: float


def select(
    saliency: Saliency,
    bins: Sequence[float] | None = None,
    per_bin: int = 1,
    size: str = "parameters",
) -> list[Preferred]:
    """The best `per_bin` representatives of every bin of sizes, small bins first, best first.

    `bins` are the edges in ascending order, by default every million parameters; `size` is
    "parameters", "flops" or "multiply-adds". Empty bins are skipped.
    """
    measure = _measure(saliency.space, size)
    if bins is None and size != "parameters":
        raise InputError(f"there are no default bins of {size}; give their edges")
    if per_bin < 1:
        raise InputError(f"{per_bin} architectures per bin were requested; expected at least 1")
    archs = candidates(saliency)
    sizes = np.array([measure(arch) for arch in archs])
    scores = saliency.scores(archs)
    edges = _edges(sizes) if bins is None else list(bins)
    if len(edges) < 2 or sorted(set(edges)) != edges:
        raise InputError(f"bins {edges} were given; expected two or more edges in ascending order")
    chosen = []
    for low, high in itertools.pairwise(edges):
        inside = np.flatnonzero((sizes >= low) & (sizes < high))
        best = inside[np.argsort(-scores[inside], kind="stable")][:per_bin]
        chosen += [
            Preferred(archs[i], int(sizes[i]), low, high, float(scores[i])) for i in best.tolist()
        ]
    return chosen


def candidates(given: Saliency | Gains, grouping: str = MULTISET) -> list[Any]:
    """The representative of every group of isomers, or a seeded sample where that is not possible.

    Sampled architectures are replaced by their group's representative if there are isomers.
    """
    gains = Gains.of(given)
    space, sharing = gains.space, gains.sharing
    if sharing.parts and n_groups(space, grouping) <= MOST_GROUPS:
        return representatives(gains, grouping)
    rng = random.Random(0)
    drawn = [space.sample(rng) for _ in range(N_SAMPLED)]
    if sharing.parts:
        groups = dict.fromkeys(isomers(space, arch) for arch in drawn)
        return list(dict.fromkeys(representative(gains, group, grouping) for group in groups))
    return list(dict.fromkeys(drawn))


def n_groups(space: Space[Any], grouping: str = MULTISET) -> int:
    """How many groups of isomers the space has."""
    sharing = sharing_of(space)

    def of_factor(factor: str, width: Any, depth: int) -> int:
        choices = sharing.choices(factor, width)
        if grouping == TOTALS:
            return len(set(map(total, multisets(choices, depth))))
        return comb(len(choices) + depth - 1, depth)

    return sum(
        prod(of_factor(factor, width, depth) for factor in sharing.parts)
        for width, depth in sharing.frames()
    )


def representatives(given: Saliency | Gains, grouping: str = MULTISET) -> list[Any]:
    """One architecture of every group of isomers of the space."""
    gains = Gains.of(given)
    sharing = gains.sharing
    archs = []
    for width, depth in sharing.frames():
        # Factors are independent, so each is placed once for all groups.
        by_factor = {}
        for factor in sharing.parts:
            choices = sharing.choices(factor, width)
            values = gains.table(factor, width, depth)
            every = [placed(values, choices, wanted) for wanted in multisets(choices, depth)]
            by_factor[factor] = (
                best_of_totals(values, choices, every) if grouping == TOTALS else every
            )
        archs += [
            sharing.joined(Split(width, dict(zip(by_factor, chosen, strict=True))))
            for chosen in itertools.product(*by_factor.values())
        ]
    return archs


def draw(space: Space[Any], preferred: Sequence[Any], rng: random.Random) -> Any:
    """A random one of them; every width and depth that occurs is equally likely (section 3.3)."""
    group = sharing_of(space).group
    groups: dict[tuple[Any, int], list[Any]] = {}
    for arch in preferred:
        groups.setdefault(group(arch), []).append(arch)
    if not groups:
        raise InputError("cannot draw: no architecture was selected")
    return rng.choice(groups[rng.choice(sorted(groups))])


def _edges(sizes: IntArray) -> list[float]:
    low, high = int(sizes.min()) // MARGIN, int(sizes.max()) // MARGIN + 1
    return [float(MARGIN * step) for step in range(low, high + 1)]


def _measure(space: Space[Any], size: str) -> Callable[[Any], int]:
    measures = {"parameters": space.parameters, "flops": space.flops}
    multiply_adds = getattr(space, "multiply_adds", None)
    measures |= {} if multiply_adds is None else {"multiply-adds": multiply_adds}
    if size not in measures:
        raise InputError(f"size {size!r} is unknown; use one of {', '.join(measures)}")
    return measures[size]


def read_preferred(path: Path, space: Space[Any]) -> list[Any]:
    """The distinct architectures in the file, in its order.

    [{"hidden": 64, ...}, ...]                     a list of architectures
    {"preferred": [{"arch": {...}, ...}, ...]}     as this package writes it
    {"trace": [{"arch": {...}, ...}, ...], ...}    what `lpzero search SPACE --loop prenas` prints
    """
    try:
        document = read_json(path, _LARGEST)
    except UntrustedError as error:
        raise InputError(f"{error}: give the output of lpzero search") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    entries = document
    if isinstance(document, Mapping):
        entries = document.get("preferred", document.get("trace"))
    if not isinstance(entries, list) or not entries:
        raise InputError(f"{path} has no list of architectures, no `preferred` and no `trace`")
    archs: dict[Any, None] = {}
    for index, entry in enumerate(entries):
        fields = entry.get("arch", entry) if isinstance(entry, Mapping) else entry
        try:
            archs[space.from_json(fields)] = None
        except ArchitectureError as error:
            raise InputError(f"{path}, entry {index}: {error}") from None
    return list(archs)


def usual_preferred(space: Space[Any]) -> list[Any]:
    """The best architecture of each of twelve equal bins of parameters, by PreNAS's selector."""
    saliency = Saliency.of(space, seed=0)
    sizes = [space.parameters(arch) for arch in candidates(saliency)]
    edges = np.linspace(min(sizes), max(sizes) + 1, N_BINS + 1).tolist()
    return [preferred.arch for preferred in select(saliency, edges)]


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
    sorted_choices = {key: sorted(choices) for key, choices in occurring.items()}

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
