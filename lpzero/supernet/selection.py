"""The zero-cost selector of PreNAS: one isomer of each group, then the best of each size.

Step one elects an isomer by layer-normalised SNIP, step two the best of a size by plain SNIP
(equations 8 to 10 and 13). There are few enough groups to score all of them, so none is sampled.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from lpzero.arrays import IntArray
from lpzero.errors import InputError
from lpzero.supernet.isomers import Isomers, representative
from lpzero.supernet.saliency import Saliency
from spaces.autoformer import AutoFormerArch, AutoFormerLayer, AutoFormerSpace

C = TypeVar("C", int, float)

MARGIN = 1_000_000  # parameters between constraints, section 4.1


@dataclass(frozen=True, slots=True)
class Preferred:
    """A selected architecture, its size, the bin [low, high) of sizes and its SNIP."""

    arch: AutoFormerArch
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
    archs = representatives(saliency)
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


def representatives(saliency: Saliency) -> list[AutoFormerArch]:
    """One architecture of every group of isomers of the space."""
    space = saliency.space
    # There are many groups but few different layers, so layer objects are shared.
    layer = {pair: AutoFormerLayer(*pair) for pair in itertools.product(space.heads, space.ratios)}
    found = []
    for hidden, depth in itertools.product(space.hidden, space.n_layers):
        # Heads and ratios are independent, so each is placed once for all groups.
        smallest = (min(space.heads),) * depth, (min(space.ratios),) * depth
        heads = [
            [placed.heads for placed in _placed(saliency, hidden, wanted, smallest[1])]
            for wanted in _multisets(space.heads, depth)
        ]
        ratios = [
            [placed.ratio for placed in _placed(saliency, hidden, smallest[0], wanted)]
            for wanted in _multisets(space.ratios, depth)
        ]
        found += [
            AutoFormerArch(hidden, tuple(map(layer.__getitem__, zip(*pair, strict=True))))
            for pair in itertools.product(heads, ratios)
        ]
    return found


def draw(preferred: Sequence[Preferred], rng: random.Random) -> AutoFormerArch:
    """A random one of them; every (hidden, depth) that occurs is equally likely (section 3.3)."""
    groups: dict[tuple[int, int], list[AutoFormerArch]] = {}
    for found in preferred:
        groups.setdefault((found.arch.hidden, len(found.arch.layers)), []).append(found.arch)
    if not groups:
        raise InputError("cannot draw: no architecture was selected")
    return rng.choice(groups[rng.choice(sorted(groups))])


def _placed(
    saliency: Saliency, hidden: int, heads: tuple[int, ...], ratios: tuple[float, ...]
) -> tuple[AutoFormerLayer, ...]:
    return representative(saliency, Isomers(hidden, heads, ratios)).layers


def _multisets(choices: Sequence[C], depth: int) -> Iterator[tuple[C, ...]]:
    return itertools.combinations_with_replacement(sorted(choices), depth)


def _edges(sizes: IntArray) -> list[float]:
    low, high = int(sizes.min()) // MARGIN, int(sizes.max()) // MARGIN + 1
    return [float(MARGIN * step) for step in range(low, high + 1)]


def _measure(space: AutoFormerSpace, size: str) -> Callable[[AutoFormerArch], int]:
    known = {
        "parameters": space.parameters,
        "flops": space.flops,
        "multiply-adds": space.multiply_adds,
    }
    if size not in known:
        raise InputError(f"size {size!r} is unknown; use one of {', '.join(known)}")
    return known[size]
