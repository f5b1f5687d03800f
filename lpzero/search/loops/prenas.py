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
from lpzero.search.loops import best
from lpzero.supernet import candidates, has_supernet
from lpzero.supernet.isomers import GROUPINGS, MULTISET, likeness
from lpzero.supernet.saliency import Gains

if TYPE_CHECKING:
    from lpzero.search.environment import Environment
    from spaces.base import Space

RELEASED_PROXY = "supernet-snip-released"


@dataclass(frozen=True, slots=True)
class PreNas:
    """How many architectures are preferred per bin, and the width of a bin in parameters."""

    name: ClassVar[str] = "prenas"
    needs_blocks: ClassVar[bool] = False
    by_proxy: ClassVar[bool] = True
    usual_proxy: ClassVar[str | None] = "supernet-snip"

    per_bin: int = option(1, "The number of architectures kept in each bin of sizes", Whole(1))
    margin: int = option(1_000_000, "The width of a bin, in parameters", Whole(1))
    selector: str = option(
        "ours",
        "released elects isomers, scores and bins as PreNAS's public code does (ours: exact"
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
        "The number of passes, with other weights each, over which the gains that elect an isomer"
        " are averaged; with several, how alike they elect is printed",
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
    def last_step(self) -> int | None:
        return None

    def most_scored(self, is_evaluated: bool) -> int | None:
        return None  # the supernet's pass says how many groups of isomers there are

    @property
    def default_proxy(self) -> str | None:
        """What scores the elected isomers unless another proxy is named."""
        return RELEASED_PROXY if self.selector == "released" else self.usual_proxy

    def run(self, environment: Environment) -> Any:
        if self.selector == "released":
            return self._run_released(environment)
        gains = self._gains(environment)
        found = candidates(gains, self.grouping)
        elected = dict.fromkeys(map(environment.sampler.snap_to_pool, found))
        allowed = [arch for arch in elected if environment.sampler.allows(arch)]
        if not allowed:
            raise InputError("no elected isomer is within the bounds; choose wider ones")
        order = best(allowed, environment.scores(allowed), len(allowed))
        if self.weights_seeds > 1 and gains.sharing.parts:
            environment.about = lambda arch: {"alike": likeness(gains, arch, self.grouping)}
        bins: dict[int, list[Any]] = {}
        for arch in order:
            bins.setdefault(environment.space.parameters(arch) // self.margin, []).append(arch)
        for size in sorted(bins):
            preferred = bins[size][: self.per_bin]
            if environment.evaluator is None:
                for arch in preferred:
                    environment.note(size, arch)
            else:
                environment.observe(preferred, size)
        return order[0] if environment.evaluator is None else environment.best_observed()[0]

    def _gains(self, environment: Environment) -> Gains:
        """The passes: the search's own weights, and those of the seeds after it."""
        first = environment.scorer.measurements
        contexts = [
            replace(first.context, seed=first.context.seed + i) for i in range(self.weights_seeds)
        ]
        return Gains(tuple(first.at(one).saliency(environment.space) for one in contexts))

    def _run_released(self, environment: Environment) -> Any:
        """The best of each bin of the public code; the result is the best of the largest bin."""
        selector = environment.scorer.measurements.released_selector(environment.space)
        allowed = [arch for arch in selector.candidates() if environment.sampler.allows(arch)]
        if not allowed:
            raise InputError("no elected isomer is within the bounds; choose wider ones")
        order = best(allowed, environment.scores(allowed), len(allowed))
        winner = order[0]
        for low, high in selector.bins:
            inside = [arch for arch in order if low <= environment.space.parameters(arch) < high]
            if inside and environment.evaluator is None:
                for arch in inside[: self.per_bin]:
                    environment.note(low // 1_000_000, arch)
            elif inside:
                environment.observe(inside[: self.per_bin], low // 1_000_000)
            winner = inside[0] if inside else winner
        return winner if environment.evaluator is None else environment.best_observed()[0]


LOOP = PreNas
