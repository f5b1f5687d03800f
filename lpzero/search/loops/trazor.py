"""T-Razor: block-wise evolution by the proxy alone (Algorithm 1, equations 12 and 13).

    draw a `population`
    repeat `steps` times: `mutations` mutants, `crossovers` children, keep the best by proxy

A mutant is a member whose worst block is redrawn; a child is the first of two members with every
block that is worse than the second's replaced by it. With a `proportion` it is that share of the
blocks, the worst ones, that mutate, and that share at most that is exchanged (section III-D; its
Algorithm 1 names no share). Blocks are compared by their position x + v (equation 12): x is the
value of the block under the proxy, v the member's velocity

    v <- w v + gamma1 (p - x) + gamma2 (g - x)                                        (equation 13)

where p and g are the values of the blocks of the best in the member's line of descent and of the
best of all. A block that p or g does not have adds nothing. A mutant or child inherits the velocity
and the line of its (first) parent. The paper gives neither w nor the gammas: we chose 0.5 and 0.25;
0 for all three is Algorithm 1 as printed.

Blocks cannot change the depth, the width or the stages of their network, which the paper searches
too without saying how: of the mutants a share of `shape_moves` has these redrawn instead. Offspring
seen before are drawn again. Where too few are new, twice and four times as many blocks mutate, and
at last architectures are drawn afresh from the space: a step always scores as many as it should.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.options import SHARE, Real, Whole, check, option
from lpzero.search.loops import Loop, best

if TYPE_CHECKING:
    from lpzero.search.environment import Environment
    from spaces.base import Space

# Draws in a row without a new child before drawing stops: a converged population has few.
_PATIENCE = 300
# How many times as many blocks mutate where too few offspring are new.
_MORE_BLOCKS = (2, 4)


@dataclass(frozen=True, slots=True, eq=False)
class Member:
    """An architecture, the velocity of its blocks, and the best of its line."""

    arch: Any
    velocity: FloatArray
    line: Any


@dataclass(frozen=True, slots=True)
class TRazor(Loop):
    """The paper's constants: 8,050 architectures are scored."""

    name: ClassVar[str] = "trazor"
    needs_blocks: ClassVar[bool] = True
    by_proxy: ClassVar[bool] = True

    population: int = option(50, "The size of the population", Whole(2))
    mutations: int = option(25, "The number of mutants per step", Whole(0))
    crossovers: int = option(25, "The number of crossovers per step", Whole(0))
    steps: int = option(160, "The number of steps", Whole(0))
    inertia: float = option(0.5, "The share w of its velocity that a block keeps", SHARE)
    gamma1: float = option(0.25, "The pull towards the best of its line of descent", Real())
    gamma2: float = option(0.25, "The pull towards the best architecture so far", Real())
    shape_moves: float = option(
        0.2, "The share of mutants whose depth, width or stages change, not a block", SHARE
    )
    proportion: float = option(
        0.0,
        "The share of blocks that mutate or are exchanged; 0: the worst mutates, all worse ones"
        " are exchanged",
        SHARE,
    )

    def __post_init__(self) -> None:
        check(self)
        if self.steps and not self.mutations + self.crossovers:
            raise InputError("mutations and crossovers are both 0: there would be no offspring")

    @property
    def last_step(self) -> int:
        return self.steps

    def most_scored(self, is_evaluated: bool) -> int:
        return self.population + (self.mutations + self.crossovers) * self.steps

    def run(self, environment: Environment) -> Any:
        drawn = environment.sample(self.population)
        members = [Member(arch, np.zeros(environment.space.depth(arch)), arch) for arch in drawn]
        members = self._survivors(environment, members)
        seen = set(drawn)
        self._note(environment, 0, members)
        fresh_at: dict[int, int] = {}
        for step in range(1, self.steps + 1):
            members, positions = self._moved(environment, members)
            children = self._mutants(environment, members, positions, seen)
            children += self._crossed(environment, members, positions, seen)
            for times in _MORE_BLOCKS:
                missing = self.mutations + self.crossovers - len(children)
                children += self._mutants(environment, members, positions, seen, missing, times)
            fresh = self._fresh(environment, len(children), seen)
            if fresh:
                fresh_at[step] = len(fresh)
            if not children and not fresh:
                environment.remark(f"step {step} found no new architecture: the search ended there")
                break
            members = self._survivors(environment, [*members, *children, *fresh])
            self._note(environment, step, members)
        if fresh_at:
            environment.remark(
                f"{sum(fresh_at.values()):,} of {len(seen):,} architectures were drawn afresh, from"
                f" step {min(fresh_at)} on: the population's moves gave too few new ones"
            )
        winner = members[0].arch
        if environment.evaluator is not None:
            environment.observe([winner], self.steps)
        return winner

    def _note(self, environment: Environment, step: int, members: Sequence[Member]) -> None:
        environment.look_up_target(members[0].arch)
        environment.note(step, members[0].arch)

    def _survivors(self, environment: Environment, members: Sequence[Member]) -> list[Member]:
        """The best by proxy, best first; each with its line's best updated."""
        archs = [member.arch for member in members]
        lines = [member.line for member in members]
        scores = environment.scores([*archs, *lines])
        usable = [index for index in range(len(archs)) if np.isfinite(scores[index])]
        if not usable:
            raise InputError("no architecture of the population has a score; see the warnings")
        kept = []
        for index in best(usable, scores[usable], self.population):
            is_better = scores[index] > scores[len(archs) + index]
            line = archs[index] if is_better else lines[index]
            kept.append(Member(archs[index], members[index].velocity, line))
        return kept

    def _moved(
        self, environment: Environment, members: Sequence[Member]
    ) -> tuple[list[Member], list[FloatArray]]:
        """The members with their new velocities, and the positions of their blocks."""
        n = len(members)
        asked = [m.arch for m in members] + [m.line for m in members] + [members[0].arch]
        values = environment.scorer.block_scores(asked)
        moved, positions = [], []
        for member, x, own in zip(members, values[:n], values[n : 2 * n], strict=True):
            v = self.velocity(member.velocity, x, own, values[-1])
            moved.append(Member(member.arch, v, member.line))
            positions.append(x + v)
        return moved, positions

    def velocity(
        self, before: FloatArray, x: FloatArray, own: FloatArray, leader: FloatArray
    ) -> FloatArray:
        """Equation 13, block by block (B,)."""
        pulls = self.gamma1 * _gap(own, x) + self.gamma2 * _gap(leader, x)
        after: FloatArray = self.inertia * before + pulls
        return after

    def _mutants(
        self,
        environment: Environment,
        members: Sequence[Member],
        positions: Sequence[FloatArray],
        seen: set[Any],
        n: int | None = None,
        times: int = 1,
    ) -> list[Member]:
        """Up to n new mutants, `mutations` if not given, of `times` as many blocks as usual."""
        parents: dict[Any, Member] = {}

        def make() -> Any:
            rng, space = environment.rng, environment.space
            index = rng.randrange(len(members))
            child = members[index].arch
            if self.shape_moves and rng.random() < self.shape_moves:
                child = space.redraw_shape(child, rng)
            else:
                for worst in self.worst(positions[index], times):
                    child = space.redraw_block(child, worst, rng)
            return _remember(environment, child, members[index], parents)

        return _offspring(environment, self.mutations if n is None else n, make, parents, seen)

    def _crossed(
        self,
        environment: Environment,
        members: Sequence[Member],
        positions: Sequence[FloatArray],
        seen: set[Any],
    ) -> list[Member]:
        if len(members) < 2:
            return []
        parents: dict[Any, Member] = {}

        def make() -> Any:
            i, j = environment.rng.sample(range(len(members)), 2)
            pair = members[i].arch, members[j].arch
            most = self.share_of(positions[i]) if self.proportion else None
            child = exchanged(environment.space, *pair, positions[i], positions[j], most)
            return _remember(environment, child, members[i], parents)

        return _offspring(environment, self.crossovers, make, parents, seen)

    def _fresh(self, environment: Environment, n_moved: int, seen: set[Any]) -> list[Member]:
        """Architectures of the space in the place of offspring that the moves did not give."""
        missing = self.mutations + self.crossovers - n_moved
        drawn = environment.sampler.draw(
            missing, lambda: environment.sampler.sample(environment.rng), seen
        )
        seen.update(drawn)
        return [Member(arch, np.zeros(environment.space.depth(arch)), arch) for arch in drawn]

    def share_of(self, positions: FloatArray) -> int:
        """How many of the blocks (B,) mutate, or are exchanged at most: at least one."""
        return max(1, round(self.proportion * len(positions)))

    def worst(self, positions: FloatArray, times: int = 1) -> list[int]:
        """The blocks that mutate, the worst first; of equal ones the first."""
        order = np.argsort(positions, kind="stable")
        return [int(index) for index in order[: times * self.share_of(positions)]]


LOOP = TRazor


def exchanged(
    space: Space[Any],
    first: Any,
    second: Any,
    of_first: FloatArray,
    of_second: FloatArray,
    most: int | None = None,
) -> Any:
    """The first architecture with worse blocks replaced by the second's: all, or the `most` worst.

    Worst are those that the second's exceed by most.
    """
    child, blocks = first, space.blocks(second)
    shared = min(len(of_first), len(of_second))
    gain = of_second[:shared] - of_first[:shared]
    better = [i for i in range(shared) if gain[i] > 0 and space.takes_block(first, blocks[i])]
    chosen = sorted(better, key=lambda i: -gain[i])[:most]
    for index in sorted(chosen):
        child = space.with_block(child, index, blocks[index])
    return child


def _gap(other: FloatArray, x: FloatArray) -> FloatArray:
    """The difference of the other's blocks to these (B,), zero for blocks it does not have."""
    gap = np.zeros(len(x))
    shared = min(len(x), len(other))
    gap[:shared] = other[:shared] - x[:shared]
    return gap


def _remember(
    environment: Environment, child: Any, parent: Member, parents: dict[Any, Member]
) -> Any:
    """The child, replaced by its nearest pool member; its first parent is recorded."""
    in_pool = environment.sampler.snap_to_pool(child)
    parents.setdefault(in_pool, parent)
    return in_pool


def _offspring(
    environment: Environment, n: int, make: Any, parents: dict[Any, Member], seen: set[Any]
) -> list[Member]:
    """Up to n new architectures as members that inherit velocity and line from their parents."""
    drawn = environment.sampler.draw(n, make, seen, _PATIENCE)
    seen.update(drawn)
    offspring = []
    for arch in drawn:
        velocity = np.zeros(environment.space.depth(arch))
        shared = min(len(velocity), len(parents[arch].velocity))
        velocity[:shared] = parents[arch].velocity[:shared]
        offspring.append(Member(arch, velocity, parents[arch].line))
    return offspring
