"""The candidates of one generation: pruned, recognised or lined up, then judged all at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from lpzero.discover.candidate import Candidate, Judge
from lpzero.discover.language import Language, Scored
from primitives.formula import Formula
from primitives.rejection import Rejected

_TRIES = 1000  # in vain, one after the other, before the space counts as exhausted

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
    tried: tuple[Candidate, ...] = ()
    exhausted: bool = False


class Generation:
    """Collects what a generation tries; `evaluate` gives the state that comes of it."""

    def __init__(self, language: Language, judge: Judge, state: State) -> None:
        self.language, self.judge, self.state = language, judge, state
        self.tried: list[Candidate] = []
        self.fresh: dict[str, tuple[int, Scored]] = {}  # key -> place in tried
        self.exhausted = False

    def fill(self, n: int, make: Callable[[], Origin]) -> None:
        """Take from `make` until there are n new formulas, or none can be found any more."""
        in_vain = 0
        while len(self.fresh) < n and in_vain < _TRIES:
            before = len(self.fresh)
            self.consider(make())
            in_vain = 0 if len(self.fresh) > before else in_vain + 1
        self.exhausted = len(self.fresh) == 0

    def is_new(self, formula: Formula) -> bool:
        """Whether considering it would line it up."""
        scored = self.language.examine(formula)
        if isinstance(scored, Rejected):
            return False
        return scored.key not in self.state.known and scored.key not in self.fresh

    def consider(self, origin: Origin) -> None:
        """Prune it, recognise it, or line it up."""
        formula, operator, parents = origin
        number = self.state.next_id + len(self.tried)
        made = Candidate(number, self.state.generation, operator, parents, formula)
        if self.language.why_outside(formula) is not None:
            return  # a draw outside the space is no candidate
        scored = self.language.examine(formula)
        if isinstance(scored, Rejected):
            self.tried.append(replace(made, rejected=scored.rule))
            return
        earlier = self.state.known.get(scored.key)
        if earlier is None and scored.key in self.fresh:
            earlier = self.tried[self.fresh[scored.key][0]].id
        if earlier is not None:
            self.tried.append(replace(made, repeats=earlier))
            return
        self.fresh[scored.key] = len(self.tried), scored
        complexity = scored.formula.complexity
        self.tried.append(replace(made, key=scored.key, complexity=complexity))

    def evaluate(self) -> State:
        """The state with the new formulas judged."""
        verdicts = self.judge([scored.formula for _, scored in self.fresh.values()])
        for (place, scored), verdict in zip(self.fresh.values(), verdicts, strict=True):
            child = self.tried[place]
            if isinstance(verdict, Rejected):
                self.tried[place] = replace(child, rejected=verdict.rule)
                continue
            plain, sign = child.formula, verdict.sign * scored.sign
            self.tried[place] = replace(
                child,
                formula=Formula(plain.expression, plain.reduction, sign),
                measures=verdict.measures,
                fitness=verdict.fitness,
            )
        fresh = {key: self.tried[place].id for key, (place, _) in self.fresh.items()}
        return replace(
            self.state,
            next_id=self.state.next_id + len(self.tried),
            known={**self.state.known, **fresh},
            tried=tuple(self.tried),
            exhausted=self.exhausted,
        )
