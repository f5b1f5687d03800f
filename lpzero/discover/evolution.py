"""The evolution step: (state, rng) -> state, without printing and without files.

    State --step--> State      tried: all candidates of the generation, in order, with their lineage

A candidate is pruned, repeats an earlier one, or is judged. Only a judged candidate costs an
evaluation and counts towards the generation's offspring.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from lpzero.discover.candidate import Candidate, Judge, best_first
from lpzero.discover.generation import Generation, Origin, State
from lpzero.discover.language import Language
from lpzero.discover.score_language import ScoreLanguage
from lpzero.discover.score_variation import ScoreVariation
from lpzero.discover.selection import by_front, tournament
from lpzero.discover.settings import REPLACE_WORST, Settings
from lpzero.discover.variation import Variation, as_global_rng
from lpzero.errors import InputError
from lpzero.scores.columns import NO_COLUMNS, ColumnFacts
from primitives.formula import Formula

_REGENERATE = 100  # attempts with the same parents


class Operators(Protocol):
    """Variation of the formulas of one language."""

    def crossover(self, first: Formula, second: Formula) -> Formula: ...
    def mutate(self, formula: Formula) -> Formula: ...
    def neighbours(self, formula: Formula) -> Iterable[Formula]: ...


def _operators(settings: Settings, columns: ColumnFacts) -> tuple[Language, Operators]:
    """The language of the settings, single terms or products of them, and its variation."""
    if settings.terms == 1:
        language = Language(settings)
        return language, Variation(language)
    products = ScoreLanguage(settings, columns)
    return products, ScoreVariation(products)


class Evolution:
    """Evolution with these settings: a language to draw from, operators, and a judge.

    `first` gives formulas for the first population, such as those of a beam search; the rest of it
    is drawn at random. `columns` are what formulas may use beside statistics and sizes.
    """

    def __init__(
        self,
        settings: Settings,
        judge: Judge,
        first: Callable[[], Sequence[Formula]] = tuple,
        columns: ColumnFacts = NO_COLUMNS,
    ) -> None:
        self.settings, self.judge, self._first = settings, judge, first
        self.language, self.variation = _operators(settings, columns)
        # By a parent's id: its neighbours that no generation before `_last` has looked at. Those
        # before them were pruned or are known, and stay so; to walk past them in every generation
        # would make the time of a campaign grow with the square of its evaluations.
        self._unseen: dict[int, Iterator[Formula]] = {}
        self._last: State | None = None

    def step(self, state: State, rng: random.Random) -> State:
        """The state after one more generation; generation 0 draws the first population."""
        if state is not self._last:
            self._unseen = {}
        with as_global_rng(rng):
            self._last = self._step(state)
        return self._last

    def _step(self, state: State) -> State:
        if state.generation == 0:
            return self._first_generation(state)
        if self.settings.method == "random":
            return self._random(state)
        return self._paper(state) if self.settings.method == "paper" else self._front(state)

    def _first_generation(self, state: State) -> State:
        starts = [self.language.read(text) for text in self.settings.start]
        generation = Generation(self.language, self.judge, state)
        for formula in starts:
            generation.consider((formula, "start", ()))
        for formula in self._first():
            if len(generation.fresh) < self.settings.population:
                generation.consider((formula.with_sign(1), "beam", ()))
        generation.fill(self.settings.population, self._draw)
        after = generation.evaluate()
        if not any(child.is_scored for child in after.tried):
            raise InputError(
                "no formula of this space has a score on these tables: allow more statistics,"
                " unaries or depth"
            )
        return self._select(state, replace(after, exhausted=False))

    def _random(self, state: State) -> State:
        """As many new random formulas as the other methods evaluate."""
        generation = Generation(self.language, self.judge, state)
        generation.fill(self.settings.offspring, self._draw)
        return self._select(state, generation.evaluate())

    def _paper(self, state: State) -> State:
        """Algorithm 1, lines 6 to 16.

        Line 13 regenerates from the same two parents, possibly forever. After many attempts, this
        draws parents from the whole population, and after twice as many a random formula.
        """
        generation = Generation(self.language, self.judge, state)
        pool = state.population[: max(2, round(self.settings.pool * len(state.population)))]
        parents = [random.choice(pool) for _ in range(2)]
        attempts = 0

        def make() -> Origin:
            nonlocal parents, attempts
            attempts += 1
            if attempts > 2 * _REGENERATE:
                return self._draw()
            if attempts > _REGENERATE:
                parents = [random.choice(state.population) for _ in range(2)]
            return self._vary(parents[0], parents[1])

        generation.fill(self.settings.offspring, make)
        return self._select(state, generation.evaluate())

    def _front(self, state: State) -> State:
        """Neighbours of the best, offspring of tournament winners and immigrants; NSGA-II."""

        def make() -> Origin:
            if random.random() < self.settings.immigrants:
                return self._draw()
            return self._vary(tournament(state.population), tournament(state.population))

        generation = Generation(self.language, self.judge, state)
        n_neighbours = round(self.settings.neighbours * self.settings.offspring)
        self._add_neighbours(state, generation, n_neighbours)
        generation.fill(self.settings.offspring, make)
        return self._select(state, generation.evaluate())

    def _add_neighbours(self, state: State, generation: Generation, n: int) -> None:
        """Add the first n new formulas among the neighbours of the best ones.

        Pruned and known neighbours are skipped without a record, as in an exhaustive search.
        """
        parents = best_first(state.population)
        self._unseen = {p.id: self._unseen[p.id] for p in parents if p.id in self._unseen}
        for parent in parents:
            if len(generation.fresh) >= n:
                return
            if parent.id not in self._unseen:
                plain = parent.formula.with_sign(1)
                self._unseen[parent.id] = iter(self.variation.neighbours(plain))
            for formula in self._unseen[parent.id]:
                if generation.is_new(formula):
                    generation.consider((formula, "neighbour", (parent.id,)))
                if len(generation.fresh) >= n:
                    break

    def _draw(self) -> Origin:
        return self.language.draw(random), "random", ()

    def _vary(self, first: Candidate, second: Candidate) -> Origin:
        # The sign is fitted again for every child.
        formula, other = (c.formula.with_sign(1) for c in (first, second))
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
        candidates = [*before.population, *(child for child in after.tried if child.is_scored)]
        size = self.settings.population
        if self.settings.method == "front":
            kept = by_front(candidates, size)
        elif self.settings.survivors == REPLACE_WORST and before.population:
            n_new = len(candidates) - len(before.population)
            staying = best_first(before.population)[: max(0, size - n_new)]
            kept = best_first([*staying, *candidates[len(before.population) :]])[:size]
        else:
            kept = best_first(candidates)[:size]
        return replace(after, population=tuple(kept), generation=before.generation + 1)
