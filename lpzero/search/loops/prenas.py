"""PreNAS: not a search but a selection from one pass of the supernet (sections 3.2 and 3.3).

    from every group of isomers, elect one by layer-normalised SNIP
    from every bin of sizes, prefer the `per_bin` best by proxy

The paper's proxy of the second step is SNIP of the supernet, which is the default. The preferred
architectures are evaluated if there is an evaluator; else the best by proxy within the constraints
is the result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from lpzero.errors import InputError
from lpzero.options import Whole, check, option
from lpzero.search.best import best
from lpzero.supernet import has_supernet, representatives

if TYPE_CHECKING:
    from lpzero.search.environment import Environment
    from spaces.base import Space


@dataclass(frozen=True, slots=True)
class PreNas:
    """How many architectures are preferred per bin, and the width of a bin in parameters."""

    name: ClassVar[str] = "prenas"
    needs_blocks: ClassVar[bool] = False
    by_proxy: ClassVar[bool] = True
    usual_proxy: ClassVar[str | None] = "supernet-snip"

    per_bin: int = option(1, "The number of architectures kept in each bin of sizes", Whole(1))
    margin: int = option(1_000_000, "The width of a bin, in parameters", Whole(1))

    def __post_init__(self) -> None:
        check(self)

    @classmethod
    def of_space(cls, space: Space[Any]) -> PreNas:
        if not has_supernet(space):
            raise InputError(
                f"loop prenas needs a supernet and space {space.name} has none: use an AutoFormer"
                " space, or another loop"
            )
        return cls()

    @property
    def last_step(self) -> int | None:
        return None

    def run(self, environment: Environment) -> Any:
        saliency = environment.scorer.measurements.saliency(environment.space)
        elected = dict.fromkeys(map(environment.sampler.snap_to_pool, representatives(saliency)))
        allowed = [arch for arch in elected if environment.sampler.allows(arch)]
        if not allowed:
            raise InputError("no elected isomer is within the bounds; choose wider ones")
        order = best(allowed, environment.scores(allowed), len(allowed))
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


LOOP = PreNas
