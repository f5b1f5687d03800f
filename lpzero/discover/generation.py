"""The candidates of one generation: pruned, recognised as repeats or queued, then judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from lpzero.discover.candidate import Candidate, Judge
from lpzero.discover.known import Known
from lpzero.discover.language import Language, ScoredForm
from primitives.formula import Formula
from primitives.rejection import Rejected

_MOST_MISSES = 1000  # attempts in a row without a new formula before the space counts as exhausted

Origin = tuple[Formula, str, tuple[int, ...]]  # formula, operator, parents


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
    known: Known = field(default_factory=Known)
    tried: tuple[Candidate, ...] = ()
    exhausted: bool = False


class Generation:
    """Collects the candidates of a generation; `evaluate` returns the resulting state."""

    def __init__(self, language: Language, judge: Judge, state: State) -> None:
        self.language, self.judge, self.state = language, judge, state
        self.tried: list[Candidate] = []
        # The new formulas, queued for evaluation: key -> (index in tried, form to score).
        self.fresh: dict[str, tuple[int, ScoredForm]] = {}
        self.exhausted = False

    def fill(self, n: int, make: Callable[[], Origin]) -> None:
        """Call `make` until n new formulas are queued, or many calls in a row gave nothing new."""
        misses = 0
        while len(self.fresh) < n and misses < _MOST_MISSES:
            before = len(self.fresh)
            self.consider(make())
            misses = 0 if len(self.fresh) > before else misses + 1
        self.exhausted = len(self.fresh) == 0

    def is_new(self, formula: Formula) -> bool:
        """Whether the formula is neither pruned nor known."""
        scored = self.language.examine(formula)
        if isinstance(scored, Rejected):
            return False
        return scored.key not in self.state.known and scored.key not in self.fresh

    def consider(self, origin: Origin) -> None:
        """Prune the formula, record it as a repeat, or queue it for evaluation."""
        formula, operator, parents = origin
        number = self.state.next_id + len(self.tried)
        made = partial(Candidate, number, self.state.generation, operator, parents, str(formula))
        if self.language.why_outside(formula) is not None:
            return  # a formula outside the space is not a candidate
        scored = self.language.examine(formula)
        if isinstance(scored, Rejected):
            self.tried.append(made(rejected=scored.rule))
            return
        earlier = self.state.known.get(scored.key)
        if earlier is None and scored.key in self.fresh:
            earlier = self.tried[self.fresh[scored.key][0]].id
        if earlier is not None:
            self.tried.append(made(repeats=earlier))
            return
        self.fresh[scored.key] = len(self.tried), scored
        complexity = scored.formula.complexity
        self.tried.append(made(key=scored.key, complexity=complexity))

    def evaluate(self) -> State:
        """The state with the new formulas judged."""
        verdicts = self.judge([scored.formula for _, scored in self.fresh.values()])
        for (place, scored), verdict in zip(self.fresh.values(), verdicts, strict=True):
            child = self.tried[place]
            if isinstance(verdict, Rejected):
                self.tried[place] = child._replace(rejected=verdict.rule)
                continue
            plain, sign = child.formula, verdict.sign * scored.sign
            self.tried[place] = child._replace(
                text=str(plain.with_sign(sign)),
                measures=verdict.measures,
                fitness=verdict.fitness,
            )
        fresh = {key: self.tried[place].id for key, (place, _) in self.fresh.items()}
        return replace(
            self.state,
            next_id=self.state.next_id + len(self.tried),
            known=self.state.known.extended(fresh),
            tried=tuple(self.tried),
            exhausted=self.exhausted,
        )
