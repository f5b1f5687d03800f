"""The candidates of one generation: pruned, recognised or lined up, then judged all at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from lpzero.evolve.candidates import Candidate, Judge
from lpzero.evolve.language import Language
from primitives.canonical import canonical
from primitives.formula import Formula
from primitives.rejection import Rejected

_TRIES = 300  # for each new formula, before the space counts as exhausted

Origin = tuple[Formula, str, tuple[int, ...]]  # formula, operator, parents


@dataclass(frozen=True, slots=True)
class State:
    """`generation` is the next to run; `known` maps the key of every evaluated formula to its id.

    `exhausted`: the last step found nothing new, and none would.
    """

    generation: int = 0
    next_id: int = 0
    population: tuple[Candidate, ...] = ()
    known: Mapping[str, int] = field(default_factory=dict)
    births: tuple[Candidate, ...] = ()
    exhausted: bool = False


class Brood:
    """Collects what a generation tries; `hatch` gives the state that comes of it."""

    def __init__(self, language: Language, judge: Judge, state: State) -> None:
        self.language, self.judge, self.state = language, judge, state
        self.births: list[Candidate] = []
        self.fresh: dict[str, tuple[int, Formula]] = {}  # key -> place in births, what is scored
        self.exhausted = False

    def fill(self, n: int, make: Callable[[], Origin]) -> None:
        """Take from `make` until there are n new formulas, or none can be found."""
        for _ in range(_TRIES * n):
            if len(self.fresh) >= n:
                return
            self.consider(make())
        self.exhausted = len(self.fresh) == 0

    def consider(self, origin: Origin) -> None:
        """Prune it, recognise it, or line it up."""
        formula, operator, parents = origin
        number = self.state.next_id + len(self.births)
        made = Candidate(number, self.state.generation, operator, parents, formula)
        if self.language.why_outside(formula) is not None:
            return  # a draw outside the space is no candidate
        pruned = self.language.prune(formula)
        if pruned is not None:
            self.births.append(replace(made, rejected=pruned.rule))
            return
        scored = _scored_form(formula, bool(self.language.rules))
        key = str(scored)
        earlier = self.state.known.get(key)
        if earlier is None and key in self.fresh:
            earlier = self.births[self.fresh[key][0]].id
        if earlier is not None:
            self.births.append(replace(made, repeats=earlier))
            return
        self.fresh[key] = len(self.births), scored
        self.births.append(replace(made, key=key, complexity=scored.complexity))

    def hatch(self) -> State:
        """The state with the new formulas judged."""
        verdicts = self.judge([scored for _, scored in self.fresh.values()])
        for (place, scored), verdict in zip(self.fresh.values(), verdicts, strict=True):
            child = self.births[place]
            if isinstance(verdict, Rejected):
                self.births[place] = replace(child, rejected=verdict.rule)
                continue
            sign = verdict.sign * _relative_sign(child.formula, scored)
            self.births[place] = replace(
                child,
                formula=Formula(child.formula.expression, child.formula.reduction, sign),
                measures=verdict.measures,
                fitness=verdict.fitness,
            )
        fresh = {key: self.births[place].id for key, (place, _) in self.fresh.items()}
        return replace(
            self.state,
            next_id=self.state.next_id + len(self.births),
            known={**self.state.known, **fresh},
            births=tuple(self.births),
            exhausted=self.exhausted,
        )


def _scored_form(formula: Formula, deduplicate: bool) -> Formula:
    """The positive formula that is scored and whose text is the key.

    Without pruning every text is a formula of its own, as in a search that knows no better.
    """
    if not deduplicate:
        return Formula(formula.expression, formula.reduction)
    reduced = canonical(formula)
    return reduced if reduced.sign > 0 else -reduced


def _relative_sign(formula: Formula, scored: Formula) -> int:
    """The sign between the unsigned formula and its scored form."""
    plain = Formula(formula.expression, formula.reduction)
    return 1 if plain == scored else canonical(plain).sign
