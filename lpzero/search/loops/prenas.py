"""PreNAS: not a search but a selection from one pass of the supernet (sections 3.2 and 3.3).

    from every group of isomers, elect one by layer-normalised SNIP
    from every bin of sizes, prefer the `per_bin` best by proxy

The paper's proxy of the second step is SNIP of the supernet, which is the default. The preferred
architectures are evaluated if there is an evaluator; else the best by proxy within the constraints
is the result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from lpzero.errors import InputError
from lpzero.options import OneOf, Whole, check, option
from lpzero.search.loops import Loop, best
from lpzero.supernet import candidates, has_supernet
from lpzero.supernet.isomers import GROUPINGS, MULTISET, likeness
from lpzero.supernet.saliency import Gains

if TYPE_CHECKING:
    from lpzero.search.environment import Environment
    from spaces.base import Space

RELEASED_PROXY = "supernet-snip-released"


@dataclass(frozen=True, slots=True)
class PreNas(Loop):
    """How many architectures are preferred per bin, and the width of a bin in parameters."""

    name: ClassVar[str] = "prenas"
    by_proxy: ClassVar[bool] = True
    usual_proxy: ClassVar[str | None] = "supernet-snip"

    per_bin: int = option(1, "The number of architectures kept in each bin of sizes", Whole(1))
    margin: int = option(1_000_000, "The width of a bin, in parameters", Whole(1))
    selector: str = option(
        "ours",
        "released chooses isomers, scores and bins as PreNAS's public code does (ours: exact"
        " allocation, bins of --margin)",
        OneOf("selector", ("ours", "released")),
    )
    grouping: str = option(
        MULTISET,
        "Isomers have the same multiset of choices, as in PreNAS's public code, or the same totals,"
        " as in its appendix B",
        OneOf("grouping", GROUPINGS),
    )
    weights_seeds: int = option(
        1,
        "The number of passes, each with other weights, whose gains are averaged to choose isomers;"
        " with several, their agreement is printed",
        Whole(1),
    )

    def __post_init__(self) -> None:
        check(self)
        if self.selector == "released" and (self.grouping, self.weights_seeds) != (MULTISET, 1):
            raise InputError(
                "the released selector has one pass and groups by multiset: --grouping and"
                " --weights-seeds are for --selector ours"
            )

    @classmethod
    def of_space(cls, space: Space[Any]) -> PreNas:
        if not has_supernet(space):
            raise InputError(
                f"loop prenas needs a supernet and space {space.name} has none: use an AutoFormer"
                " space, nano-gpt2 or bignas, or another loop"
            )
        return cls()

    @property
    def default_proxy(self) -> str | None:
        """What scores the elected isomers unless another proxy is named."""
        return RELEASED_PROXY if self.selector == "released" else self.usual_proxy

    def run(self, environment: Environment) -> Any:
        """The best elected isomer; of the released bins the best of the largest."""
        is_released = self.selector == "released"
        if is_released:
            selector = environment.scorer.measurements.released_selector(environment.space)
            elected = selector.candidates()
        else:
            gains = self._gains(environment)
            snapped = map(environment.sampler.snap_to_pool, candidates(gains, self.grouping))
            elected = list(dict.fromkeys(snapped))
            if self.weights_seeds > 1 and gains.sharing.parts:
                environment.about = lambda arch: {"alike": likeness(gains, arch, self.grouping)}
        allowed = [arch for arch in elected if environment.sampler.allows(arch)]
        if not allowed:
            raise InputError("no elected isomer is within the bounds; choose wider ones")
        order = best(allowed, environment.scores(allowed), len(allowed))
        bins: dict[int, list[Any]] = {}
        for arch in order:
            size = environment.space.parameters(arch)
            if not is_released:
                bins.setdefault(size // self.margin, []).append(arch)
            for low, high in selector.bins if is_released else ():
                if low <= size < high:
                    bins.setdefault(low // 1_000_000, []).append(arch)
        for step in sorted(bins):
            preferred = bins[step][: self.per_bin]
            if environment.evaluator is not None:
                environment.observe(preferred, step)
                continue
            for arch in preferred:
                environment.note(step, arch)
        if environment.evaluator is not None:
            return environment.best_observed()[0]
        return bins[max(bins)][0] if is_released and bins else order[0]

    def _gains(self, environment: Environment) -> Gains:
        """The passes: the search's own weights, and those of the seeds after it."""
        first = environment.scorer.measurements
        seeds = range(first.context.seed, first.context.seed + self.weights_seeds)
        contexts = (replace(first.context, seed=seed) for seed in seeds)
        return Gains(tuple(first.at(context).saliency(environment.space) for context in contexts))


LOOP = PreNas
