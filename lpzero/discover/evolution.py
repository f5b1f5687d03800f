"""The evolution step: (state, rng) -> state, without printing and without files.

    State --step--> State      tried: all candidates of the generation, in order, with their lineage

A step is a generation in DEAP's terms: the toolbox varies parents (`mate`, `mutate`, `draw`),
evaluates the offspring (`map`, `evaluate`: the whole generation at once, as arrays) and selects
survivors (`select`). A candidate is pruned, repeats an earlier one, or is evaluated. Only an
evaluated candidate counts towards the generation's offspring.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, wraps
from typing import Any, NamedTuple

from deap import base, tools

from lpzero.discover.candidate import Candidate, Judge, Verdict, best_first, order
from lpzero.discover.language import Language, ScoredForm
from lpzero.discover.settings import REPLACE_WORST, Settings
from lpzero.discover.variation import as_global_rng, register_variation
from lpzero.errors import InputError
from lpzero.scores.columns import NO_COLUMNS, ColumnFacts
from primitives.errors import Rejected
from primitives.formula import Formula

_REGENERATE = 100  # attempts with the same parents
_MOST_MISSES = 1000  # attempts in a row without a new formula before the space counts as exhausted
_TOURNAMENT = 3


class KnownKeys(Mapping[str, int]):
    """The keys of all evaluated formulas with the ids of their candidates, in the order of the ids.

    A state never changes, but a copy of all keys in every generation would make the time of a
    campaign grow with the square of its evaluations. States that follow each other share one
    dictionary, of which each sees its own keys only.
    """

    __slots__ = ("_count", "_end", "_ids")

    def __init__(self, ids: Mapping[str, int] | None = None) -> None:
        self._ids = dict(ids or {})
        self._count = len(self._ids)
        self._end = 1 + max(self._ids.values(), default=-1)

    def __getitem__(self, key: str) -> int:
        number = self._ids[key]
        if number >= self._end:  # of a later state
            raise KeyError(key)
        return number

    def __iter__(self) -> Iterator[str]:
        return (key for key, number in self._ids.items() if number < self._end)

    def __len__(self) -> int:
        return self._count

    def extended(self, fresh: Mapping[str, int]) -> KnownKeys:
        """These keys and the fresh ones, whose ids are larger; this one stays as it is."""
        if not fresh:
            return self
        if min(fresh.values()) < self._end or any(key in self for key in fresh):
            raise ValueError("fresh formulas have new keys, and ids after all those known")
        keys = object.__new__(KnownKeys)
        is_last = len(self._ids) == self._count
        keys._ids = self._ids if is_last else dict(self)  # another state continues the shared one
        keys._ids.update(fresh)
        keys._count, keys._end = self._count + len(fresh), 1 + max(fresh.values())
        return keys


@dataclass(frozen=True, slots=True)
class State:
    """The state between generations.

    `generation` is the next one to run. `known` maps the key of every evaluated formula to the id
    of its candidate. `tried` are the candidates of the last step. `exhausted` means that the last
    step found no new formula.
    """

    generation: int = 0
    next_id: int = 0
    population: tuple[Candidate, ...] = ()
    known: KnownKeys = field(default_factory=KnownKeys)
    tried: tuple[Candidate, ...] = ()
    exhausted: bool = False


class Offspring(NamedTuple):
    """A formula with its lineage, and the form to score or the rule that rejects it."""

    formula: Formula
    operator: str
    parents: tuple[int, ...]
    form: ScoredForm | Rejected


Origin = tuple[Formula, str, tuple[int, ...]]  # formula, operator, parents


def pruned(language: Language) -> Callable[[Callable[..., Origin]], Callable[..., Offspring]]:
    """A decorator for operators: what they give, with the pruning rules' answer."""

    def decorate(operator: Callable[..., Origin]) -> Callable[..., Offspring]:
        @wraps(operator)
        def examined(*parents: Any) -> Offspring:
            origin = operator(*parents)
            return Offspring(*origin, language.examine(origin[0]))

        return examined

    return decorate


class Generation:
    """Collects the candidates of a generation; `evaluate` returns the resulting state."""

    def __init__(self, toolbox: base.Toolbox, state: State) -> None:
        self.toolbox, self.state = toolbox, state
        self.tried: list[Candidate] = []
        # The new formulas, queued for evaluation: key -> (index in tried, offspring).
        self.fresh: dict[str, tuple[int, Offspring]] = {}
        self.exhausted = False

    def fill(self, n: int, make: Callable[[], Offspring]) -> None:
        """Call `make` until n new formulas are queued, or many calls in a row gave nothing new."""
        misses = 0
        while len(self.fresh) < n and misses < _MOST_MISSES:
            before = len(self.fresh)
            self.consider(make())
            misses = 0 if len(self.fresh) > before else misses + 1
        self.exhausted = len(self.fresh) == 0

    def is_new(self, form: ScoredForm | Rejected) -> bool:
        """Whether the form is neither pruned nor known."""
        if isinstance(form, Rejected):
            return False
        return form.key not in self.state.known and form.key not in self.fresh

    def consider(self, child: Offspring) -> None:
        """Record the offspring as pruned or as a repeat, or queue it for evaluation."""
        form, number = child.form, self.state.next_id + len(self.tried)
        made = (number, self.state.generation, child.operator, child.parents, child.formula.text)
        if isinstance(form, Rejected):
            self.tried.append(Candidate(*made, rejected=form.rule))
            return
        earlier = self.state.known.get(form.key)
        if earlier is None and form.key in self.fresh:
            earlier = self.tried[self.fresh[form.key][0]].id
        if earlier is not None:
            self.tried.append(Candidate(*made, repeats=earlier))
            return
        self.fresh[form.key] = len(self.tried), child
        self.tried.append(Candidate(*made, key=form.key, complexity=form.formula.complexity))

    @property
    def formulas(self) -> dict[int, Formula]:
        """The new formulas by the ids of their candidates."""
        return {self.tried[place].id: child.formula for place, child in self.fresh.values()}

    def evaluate(self) -> State:
        """The state with the new formulas evaluated."""
        forms = [child.form for _, child in self.fresh.values()]
        formulas = [form.formula for form in forms if isinstance(form, ScoredForm)]
        verdicts = self.toolbox.map(self.toolbox.evaluate, formulas)
        for (place, child), verdict in zip(self.fresh.values(), verdicts, strict=True):
            self.tried[place] = _judged(self.tried[place], child, verdict)
        fresh = {key: self.tried[place].id for key, (place, _) in self.fresh.items()}
        return replace(
            self.state,
            next_id=self.state.next_id + len(self.tried),
            known=self.state.known.extended(fresh),
            tried=tuple(self.tried),
            exhausted=self.exhausted,
        )


def _judged(candidate: Candidate, child: Offspring, verdict: Verdict | Rejected) -> Candidate:
    """The candidate with the verdict, its text with the fitted sign."""
    if isinstance(verdict, Rejected):
        return candidate._replace(rejected=verdict.rule)
    assert isinstance(child.form, ScoredForm)
    sign = verdict.sign * child.form.sign
    text = candidate.text if sign > 0 else f"-{candidate.text}"
    return candidate._replace(text=text, measures=verdict.measures, fitness=verdict.fitness)


class Evolution:
    """Evolution with these settings: a language to draw from and a toolbox.

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
        self.settings, self._first = settings, first
        self.language = Language(settings, columns)
        self.toolbox = toolbox = base.Toolbox()
        self.variation = register_variation(toolbox, self.language)
        toolbox.register("draw", self._draw)
        toolbox.register("vary", self._vary)
        toolbox.decorate("draw", pruned(self.language))
        toolbox.decorate("vary", pruned(self.language))
        toolbox.register("select_parent", tournament)
        toolbox.register("select", by_front if settings.method == "front" else self._survivors)
        toolbox.register("evaluate", judge)
        toolbox.register("map", _all_at_once)
        # By a parent's id: its neighbours that no generation before `_last` has looked at. Those
        # before them were pruned or are known, and stay so; to walk past them in every generation
        # would make the time of a campaign grow with the square of its evaluations.
        self._unseen: dict[int, Iterator[Formula]] = {}
        # By id: the formulas of the population without their signs, so that no text is parsed.
        self._parents: dict[int, Formula] = {}
        self._last: State | None = None

    def step(self, state: State, rng: random.Random) -> State:
        """The state after one more generation; generation 0 draws the first population."""
        if state is not self._last:
            self._unseen = {}
            self._parents = {c.id: c.formula.with_sign(1) for c in state.population}
        with as_global_rng(rng):
            generation = Generation(self.toolbox, state)
            self._fill(generation)
            after = generation.evaluate()
        if state.generation == 0:
            if not any(child.is_scored for child in after.tried):
                raise InputError(
                    "no formula of this space has a score on these tables: allow more statistics,"
                    " unaries or depth"
                )
            after = replace(after, exhausted=False)
        scored = [child for child in after.tried if child.is_scored]
        kept = self.toolbox.select([*state.population, *scored], self.settings.population)
        formulas = self._parents | generation.formulas
        self._parents = {candidate.id: formulas[candidate.id] for candidate in kept}
        self._last = replace(after, population=tuple(kept), generation=state.generation + 1)
        return self._last

    def replayed(self, candidates: Iterable[Candidate]) -> dict[str, Verdict | Rejected]:
        """The judge's verdicts by key, as a journal's candidates have them."""
        verdicts: dict[str, Verdict | Rejected] = {}
        for candidate in candidates:
            if candidate.key is None:
                continue
            if candidate.rejected is not None:
                rejected = Rejected(candidate.rejected, "as recorded in the journal")
                verdicts[candidate.key] = rejected
                continue
            formula = candidate.formula
            form = self.language.examine(formula.with_sign(1))
            sign = form.sign * formula.sign if isinstance(form, ScoredForm) else 1
            verdicts[candidate.key] = Verdict(sign, candidate.measures, candidate.fitness)
        return verdicts

    def _fill(self, generation: Generation) -> None:
        """Queue the new formulas of the generation."""
        state, method = generation.state, self.settings.method
        if state.generation == 0:
            self._fill_first(generation)
        elif method == "random":  # as many as the other methods evaluate
            generation.fill(self.settings.offspring, self.toolbox.draw)
        elif method == "paper":
            self._fill_as_paper(generation)
        else:
            n_neighbours = round(self.settings.neighbours * self.settings.offspring)
            self._add_neighbours(generation, n_neighbours)
            generation.fill(self.settings.offspring, lambda: self._offspring(state.population))

    def _fill_first(self, generation: Generation) -> None:
        for text in self.settings.start:
            self._consider(generation, self.language.read(text), "start")
        for formula in self._first():
            if len(generation.fresh) < self.settings.population:
                self._consider(generation, formula.with_sign(1), "beam")
        generation.fill(self.settings.population, self.toolbox.draw)

    def _consider(self, generation: Generation, formula: Formula, operator: str) -> None:
        if self.language.why_outside(formula) is None:
            form = self.language.examine(formula)
            generation.consider(Offspring(formula, operator, (), form))

    def _fill_as_paper(self, generation: Generation) -> None:
        """Algorithm 1, lines 6 to 16.

        Line 13 regenerates from the same two parents, possibly forever. After many attempts, this
        draws parents from the whole population, and after twice as many a random formula.
        """
        population = generation.state.population
        pool = population[: max(2, round(self.settings.pool * len(population)))]
        parents = [random.choice(pool) for _ in range(2)]
        attempts = 0

        def make() -> Offspring:
            nonlocal parents, attempts
            attempts += 1
            child: Offspring
            if attempts > 2 * _REGENERATE:
                child = self.toolbox.draw()
            else:
                if attempts > _REGENERATE:
                    parents = [random.choice(population) for _ in range(2)]
                child = self.toolbox.vary(*parents)
            return child

        generation.fill(self.settings.offspring, make)

    def _offspring(self, population: Sequence[Candidate]) -> Offspring:
        """An immigrant, or the offspring of the winners of two tournaments."""
        if random.random() < self.settings.immigrants:
            child: Offspring = self.toolbox.draw()
        else:
            parents = [self.toolbox.select_parent(population) for _ in range(2)]
            child = self.toolbox.vary(*parents)
        return child

    def _add_neighbours(self, generation: Generation, n: int) -> None:
        """Add the first n new formulas among the neighbours of the best ones.

        Pruned and known neighbours are skipped without a record, as in an exhaustive search.
        """
        parents = best_first(generation.state.population)
        self._unseen = {p.id: self._unseen[p.id] for p in parents if p.id in self._unseen}
        for parent in parents:
            if len(generation.fresh) >= n:
                return
            if parent.id not in self._unseen:
                self._unseen[parent.id] = self.variation.neighbours(self._parents[parent.id])
            for formula in self._unseen[parent.id]:
                form = self.language.examine(formula)
                if generation.is_new(form):
                    generation.consider(Offspring(formula, "neighbour", (parent.id,), form))
                if len(generation.fresh) >= n:
                    break

    def _draw(self) -> Origin:
        """A random formula of the space, of which `Language.check_not_empty` has found some."""
        while True:
            formula = self.language.draw(random)
            if self.language.why_outside(formula) is None:
                return formula, "random", ()

    def _vary(self, first: Candidate, second: Candidate) -> Origin:
        """A child of one parent or two; its sign is fitted again."""
        formula = self._parents[first.id]
        names, parents = [], [first.id]
        if random.random() < self.settings.crossover:
            formula = self.toolbox.mate(formula, self._parents[second.id])
            names, parents = ["crossover"], [first.id, second.id]
        is_copy = not names and self.settings.method != "paper"
        if random.random() < self.settings.mutation or is_copy:
            formula = self.toolbox.mutate(formula)
            names.append("mutation")
        return formula, "+".join(names) or "copy", tuple(parents)

    def _survivors(self, candidates: Sequence[Candidate], k: int) -> list[Candidate]:
        """The k best; or the offspring replace the worst (`--survivors`)."""
        if self.settings.survivors != REPLACE_WORST:
            return best_first(candidates)[:k]
        newest = max((candidate.generation for candidate in candidates), default=0)
        new = [candidate for candidate in candidates if candidate.generation == newest]
        old = [candidate for candidate in candidates if candidate.generation != newest]
        return best_first([*best_first(old)[: max(0, k - len(new))], *new])[:k]


def _all_at_once(function: Callable[[list[Any]], list[Any]], items: Sequence[Any]) -> list[Any]:
    """DEAP's map for a function that takes the whole generation."""
    return function(list(items))


def by_front(candidates: Sequence[Candidate], k: int) -> list[Candidate]:
    """The k candidates that NSGA-II selects for every objective and simplicity."""
    if not candidates:
        return []
    kind = _fitness_kind(len(candidates[0].fitness) + 1)
    items = [_Item(candidate, kind) for candidate in best_first(candidates)]
    return [item.candidate for item in tools.selNSGA2(items, min(k, len(items)), nd="log")]


def tournament(population: Sequence[Candidate]) -> Candidate:
    """The winner of a tournament: half the time by fitness, else by place in the population.

    Every order is total, so ties are never broken at random. Call it inside `as_global_rng`.
    """
    places = [random.randrange(len(population)) for _ in range(_TOURNAMENT)]
    if random.random() < 0.5:
        return population[min(places)]
    return min([population[place] for place in places], key=order)


class _Item:
    """What DEAP selects; its fitness is finite, because rejected candidates are never selected."""

    def __init__(self, candidate: Candidate, kind: type[Any]) -> None:
        self.candidate = candidate
        self.fitness = kind((*candidate.fitness, -float(candidate.complexity)))


@lru_cache(maxsize=8)
def _fitness_kind(n: int) -> type[Any]:
    return type("Fitness", (base.Fitness,), {"weights": (1.0,) * n})
