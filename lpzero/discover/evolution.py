"""One generation after another: (state, rng) -> state, without printing and without files.

    State --step--> State      tried: everything that was tried, in order, with its lineage

A candidate is pruned, or repeats an earlier one, or is judged; only the last costs an evaluation
and counts against the offspring of a generation.
"""

from __future__ import annotations

import random
from dataclasses import replace

from lpzero.discover.candidate import Candidate, Judge
from lpzero.discover.generation import Generation, Origin, State
from lpzero.discover.language import Language
from lpzero.discover.selection import best_first, by_front, tournament
from lpzero.discover.settings import Settings
from lpzero.discover.variation import Variation, borrowed
from lpzero.errors import InputError
from primitives.formula import Formula

_REGENERATE = 100  # from the same parents


class Evolution:
    """The settings at work: a language to draw from, operators, and a judge."""

    def __init__(self, settings: Settings, judge: Judge) -> None:
        self.settings, self.judge = settings, judge
        self.language = Language(settings)
        self.variation = Variation(self.language)

    def step(self, state: State, rng: random.Random) -> State:
        """The state after one more generation; generation 0 draws the first population."""
        with borrowed(rng):
            if state.generation == 0:
                return self._begin(state)
            if self.settings.method == "random":
                return self._random(state)
            return self._paper(state) if self.settings.method == "paper" else self._front(state)

    def _begin(self, state: State) -> State:
        starts = [self.language.read(text) for text in self.settings.start]
        generation = Generation(self.language, self.judge, state)
        for formula in starts:
            generation.consider((formula, "start", ()))
        generation.fill(self.settings.population, self._draw)
        after = generation.evaluate()
        if not any(child.is_scored for child in after.tried):
            raise InputError(
                "no formula of this space has a score on these tables: allow more statistics,"
                " unaries or depth"
            )
        return self._select(state, replace(after, exhausted=False))

    def _random(self, state: State) -> State:
        """As many new draws as another method would evaluate."""
        generation = Generation(self.language, self.judge, state)
        generation.fill(self.settings.offspring, self._draw)
        return self._select(state, generation.evaluate())

    def _paper(self, state: State) -> State:
        """Algorithm 1, lines 6 to 16.

        Line 13 regenerates from the same two parents, for ever if need be: after many tries we
        take parents from the whole population, and at last a random formula.
        """
        generation = Generation(self.language, self.judge, state)
        pool = state.population[: max(2, round(self.settings.pool * len(state.population)))]
        parents = [random.choice(pool) for _ in range(2)]
        tries = 0

        def make() -> Origin:
            nonlocal parents, tries
            tries += 1
            if tries > 2 * _REGENERATE:
                return self._draw()
            if tries > _REGENERATE:
                parents = [random.choice(state.population) for _ in range(2)]
            return self._vary(parents[0], parents[1])

        generation.fill(self.settings.offspring, make)
        return self._select(state, generation.evaluate())

    def _front(self, state: State) -> State:
        """Neighbours of the best, children of tournaments and immigrants; NSGA-II selects."""

        def make() -> Origin:
            if random.random() < self.settings.immigrants:
                return self._draw()
            return self._vary(tournament(state.population), tournament(state.population))

        generation = Generation(self.language, self.judge, state)
        self._sweep(state, generation, round(self.settings.neighbours * self.settings.offspring))
        generation.fill(self.settings.offspring, make)
        return self._select(state, generation.evaluate())

    def _sweep(self, state: State, generation: Generation, n: int) -> None:
        """Take the n first formulas that are next to the best ones and not known yet.

        Like an exhaustive search it passes over what is pruned or known without a record.
        """
        for parent in best_first(state.population):
            plain = Formula(parent.formula.expression, parent.formula.reduction)
            for formula in self.variation.neighbours(plain):
                if len(generation.fresh) >= n:
                    return
                if generation.is_new(formula):
                    generation.consider((formula, "neighbour", (parent.id,)))

    def _draw(self) -> Origin:
        return self.language.draw(random), "random", ()

    def _vary(self, first: Candidate, second: Candidate) -> Origin:
        # The sign is fitted anew for every child.
        formula, other = (Formula(c.formula.expression, c.formula.reduction)
                          for c in (first, second))  # fmt: skip
        names, parents = [], [first.id]
        if random.random() < self.settings.crossover:
            formula = self.variation.crossover(formula, other)
            names, parents = ["crossover"], [first.id, second.id]
        is_copy = not names and self.settings.method != "paper"
        if random.random() < self.settings.mutation or is_copy:
            formula = self.variation.mutate(formula)
            names.append("mutation")
        return formula, "+".join(names) or "copy", tuple(parents)

    def _select(self, before: State, after: State) -> State:
        everyone = [*before.population, *(child for child in after.tried if child.is_scored)]
        size = self.settings.population
        if self.settings.method == "front":
            kept = by_front(everyone, size)
        else:
            kept = best_first(everyone)[:size]
        return replace(after, population=tuple(kept), generation=before.generation + 1)
