"""Evolution: variation stays in the space, steps are functions, nothing is judged twice."""

from __future__ import annotations

import hashlib
import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lpzero.discover.candidate import Candidate, Measures, Verdict, best_first
from lpzero.discover.evolution import Evolution, State, by_front
from lpzero.discover.language import Language, ScoredForm
from lpzero.discover.settings import Settings, preset
from lpzero.discover.variation import as_global_rng, replace_name
from lpzero.errors import InputError
from primitives.errors import Rejected
from primitives.expressions import walk
from primitives.formula import Formula
from primitives.parser import parse
from primitives.pruning import check
from tests.formula_keys import key_up_to_sign
from tests.lpzero.discover.toolboxes import toolbox_of, variation_of

# The space of single terms; products have tests of their own.
TERM = {"terms": 1, "choose": "valid"}
SMALL = {"population": 10, "generations": 5, "offspring": 10, **TERM}


class Oracle:
    """A judge that knows no tables: fitness is drawn from the formula's text."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, formulas: Sequence[Formula]) -> list[Verdict | Rejected]:
        self.asked += map(str, formulas)
        return [self._judge(str(formula)) for formula in formulas]

    def _judge(self, text: str) -> Verdict | Rejected:
        value = int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) / 0xFFFFFFFF
        if value < 0.05:
            return Rejected("constant-score", "so it was drawn")
        found: Measures = (value, value / 2, value / 3)
        return Verdict(1 if value < 0.5 else -1, (found,), (value,))


class Planted(Oracle):
    """A judge whose fitness is the share of names that a formula has in common with the best."""

    best = "sum(mul(log(zscore(H)), fro(softmax(W))))"

    def _judge(self, text: str) -> Verdict | Rejected:
        here, there = (Counter(re.findall(r"\w+", t)) for t in (text, self.best))
        value = (here & there).total() / (here | there).total()
        return Verdict(1, ((value, value, value),), (value,))


def evolve(asked: Settings, judge: Oracle | None = None) -> list[State]:
    evolution = Evolution(asked, judge or Oracle())
    rng, states = random.Random(asked.seed), [State()]
    while states[-1].generation <= asked.generations and not states[-1].exhausted:
        states.append(evolution.step(states[-1], rng))
    return states[1:]


def tried(states: list[State]) -> list[Candidate]:
    return [child for state in states for child in state.tried]


METHODS = [
    preset("default", **SMALL),
    preset("default", depth=2, unaries=3, same_statistic=True, **SMALL),
    preset("default", method="random", **SMALL),
    preset("default", rules=(), **SMALL),
    preset("default", statistics=("W", "S"), unaries=0, **SMALL),
    preset("paper", population=10, generations=20),
]


@pytest.mark.parametrize("asked", METHODS, ids=range(len(METHODS)))
def test_every_candidate_lies_in_the_space_and_is_accounted_for(asked: Settings) -> None:
    states = evolve(asked)
    language = Language(asked)
    found = tried(states)
    assert [child.id for child in found] == list(range(len(found)))
    for child in found:
        assert language.why_outside(child.formula) is None
        assert all(parent < child.id for parent in child.parents)
        fates = [child.is_scored, child.rejected is not None, child.repeats is not None]
        assert sum(fates) == 1
    repeats = [child.repeats for child in found if child.repeats is not None]
    assert repeats
    assert all(found[first].key is not None for first in repeats)


@pytest.mark.parametrize("asked", METHODS, ids=range(len(METHODS)))
def test_no_formula_is_judged_twice(asked: Settings) -> None:
    judge = Oracle()
    found = tried(evolve(asked, judge))
    assert len(judge.asked) == len(set(judge.asked))
    assert judge.asked == [child.key for child in found if child.key is not None]


@pytest.mark.slow
@pytest.mark.parametrize("asked", [asked for asked in METHODS if asked.rules])
def test_with_rules_no_two_judged_formulas_are_equal_up_to_sign(asked: Settings) -> None:
    judged = [child for child in tried(evolve(asked)) if child.key is not None]
    assert judged
    assert len({key_up_to_sign(child.formula) for child in judged}) == len(judged)


@pytest.mark.parametrize("asked", METHODS, ids=range(len(METHODS)))
def test_a_step_is_a_function_of_state_and_generator(asked: Settings) -> None:
    evolution = Evolution(asked, Oracle())
    rng = random.Random(5)
    state = evolution.step(State(), rng)
    here = rng.getstate()
    random.seed(1)
    once = evolution.step(state, rng)
    again = random.Random()
    again.setstate(here)
    random.seed(2)
    outside = random.getstate()
    assert Evolution(asked, Oracle()).step(state, again) == once
    assert again.getstate() == rng.getstate()
    assert random.getstate() == outside


FRONTS = [
    preset("default", **SMALL),
    preset("default", **{**SMALL, "terms": 3, "generations": 12}),
    preset("default", **{**SMALL, "unaries": 1, "statistics": ("W", "S"), "neighbours": 1.0}),
]


@pytest.mark.parametrize("asked", FRONTS, ids=range(len(FRONTS)))
def test_neighbours_that_were_seen_are_left_out_without_changing_anything(asked: Settings) -> None:
    """Every step by a new Evolution walks through all neighbours again, the naive way."""
    rng, states = random.Random(asked.seed), [State()]
    while states[-1].generation <= asked.generations and not states[-1].exhausted:
        states.append(Evolution(asked, Oracle()).step(states[-1], rng))
    assert states[1:] == evolve(asked)
    assert any(child.operator == "neighbour" for child in tried(states[1:]))


def test_an_evolution_starts_again_from_an_earlier_state() -> None:
    evolution = Evolution(FRONTS[0], Oracle())
    first = evolution.step(State(), random.Random(1))
    once = evolution.step(first, random.Random(2))
    for _ in range(3):
        once_more = evolution.step(once, random.Random(3))
    assert evolution.step(first, random.Random(2)) == once
    assert evolution.step(once, random.Random(3)) == once_more


@pytest.mark.slow
def test_no_neighbour_is_made_twice_while_its_parent_stays() -> None:
    asked = preset("default", **{**SMALL, "generations": 40})
    evolution, made = Evolution(asked, Planted()), Counter[tuple[Formula, Formula]]()
    plain = evolution.variation.neighbours

    def counted(formula: Formula) -> Iterator[Formula]:
        for neighbour in plain(formula):
            made[formula, neighbour] += 1
            yield neighbour

    evolution.variation.neighbours = counted  # type: ignore[method-assign,assignment]
    rng, state = random.Random(0), State()
    for _ in range(asked.generations):
        state = evolution.step(state, rng)
    assert len(made) > 200
    for parent in {parent for parent, _ in made}:
        ways = Counter(plain(parent))  # some formulas are one change away in two ways
        again = {f for (p, f), count in made.items() if p == parent and count > ways[f]}
        assert again == set()


@pytest.mark.slow
def test_another_process_takes_the_same_steps() -> None:
    code = (
        "from tests.lpzero.discover.test_evolution import *\n"
        "for child in tried(evolve(METHODS[1]) + evolve(METHODS[5])): print(child.formula)"
    )
    run = [
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    here = tried(evolve(METHODS[1]) + evolve(METHODS[5]))
    for process in run:
        assert process.stdout.splitlines() == [str(child.formula) for child in here]


def test_the_paper_preset_is_algorithm_1() -> None:
    asked = preset("paper")
    assert (asked.population, asked.generations, asked.offspring, asked.archs) == (80, 1000, 1, 50)
    assert (asked.pool, asked.crossover, asked.mutation, asked.seed) == (0.1, 0.5, 0.5, 42)
    states = evolve(preset("paper", population=20, generations=30))
    assert len(states) == 31
    for before, after in pairwise(states):
        (new,) = (child for child in after.tried if child.key is not None)
        pool = {child.id for child in before.population[:2]}
        assert set(new.parents) <= pool or len(after.tried) > 100
        everyone = [*before.population, *([new] if new.is_scored else [])]
        assert list(after.population) == best_first(everyone)[:20]


@pytest.mark.parametrize("method", ["front", "random"])
def test_generations_evaluate_as_many_as_asked(method: str) -> None:
    states = evolve(preset("default", method=method, **SMALL))
    counts = [sum(child.key is not None for child in state.tried) for state in states]
    assert counts == [10] * 6


LONGER = {"population": 20, "generations": 15, "offspring": 20, **TERM}


def best_by_generation(asked: Settings, judge: Oracle) -> list[float]:
    """The best fitness in the population after each generation."""
    states = evolve(asked, judge)
    assert len(judge.asked) == 320
    return [max(child.fitness[0] for child in state.population) for state in states]


@pytest.mark.slow
@pytest.mark.parametrize("judge", [Oracle, Planted])
@pytest.mark.parametrize("seed", range(3))
def test_the_best_never_gets_worse(seed: int, judge: type[Oracle]) -> None:
    best = best_by_generation(preset("default", seed=seed, **LONGER), judge())
    assert len(best) == 16
    assert best == sorted(best)


@cache
def best_by_chance(seed: int) -> float:
    """The best of as many random formulas."""
    chance = preset("default", method="random", seed=seed, **LONGER)
    return best_by_generation(chance, Planted())[-1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "asked",
    [preset("default", **LONGER), preset("paper", population=20, generations=300)],
    ids=["front", "paper"],
)
def test_with_equal_evaluations_search_beats_chance(asked: Settings) -> None:
    """Where parts of a good formula are good: by far."""
    found = best_by_generation(replace(asked, seed=0), Planted())[-1]
    assert found > best_by_chance(0) + 0.1


def test_starting_formulas_come_first() -> None:
    texts = ("sum(add(W, A))", "sum(add(square(inverse(H)), log_softmax(fro(A))))")
    states = evolve(preset("default", start=texts, **SMALL))
    first, second = states[0].tried[:2]
    assert first.operator == second.operator == "start"
    assert key_up_to_sign(first.formula) == "sum(add(A, W))"
    # The pruned one is replaced by the formula that has its score.
    assert key_up_to_sign(second.formula) == "sum(square(inverse(H)))"


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        ("sum(add(W, exp(exp(exp(A)))))", {}, "3 unary operations in a row"),
        ("sum(add(W, add(A, J)))", {}, "2 binary operations deep"),
        ("sum(add(W, A))", {"statistics": ("W",)}, "statistic A"),
        ("sum(mul(W, exp(W)))", {}, "paired with itself"),
        ("sum(exp(add(W, A)))", {}, "above the binary"),
        ("sum(mean(softmax(W)))", {}, "rejected by constant"),
    ],
)
def test_a_starting_formula_outside_the_space_is_refused(
    text: str, options: dict[str, tuple[str, ...]], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        evolve(preset("default", start=(text,), **SMALL, **options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"population": 1}, "population is 1, expected 2"),
        ({"unaries": -1}, "unaries is -1"),
        ({"crossover": 1.5}, "crossover is 1.5, expected 0 to 1"),
        ({"mutation": float("nan")}, "mutation is nan"),
        ({"crossover": 0.0, "mutation": 0.0}, "no new formulas"),
        ({"objectives": ("rhoo",)}, "did you mean 'rho'"),
        ({"objectives": ()}, "no objective is given"),
        ({"objectives": ("rho", "rho")}, "is repeated"),
        ({"statistics": ("Q",)}, "unknown statistic 'Q'"),
        ({"statistics": ()}, "no statistic is given"),
        ({"rules": ("inverse-pairs",)}, "did you mean 'inverse-pair'"),
        ({"method": "annealing"}, "unknown method"),
        ({"archs": 3}, "archs is 3"),
        ({"populaton": 3}, "did you mean 'population'"),
    ],
)
def test_bad_settings_are_refused_with_a_hint(options: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message.replace("(", r"\(")):
        preset("default", **options)


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'paper'"):
        preset("papers")


def test_settings_survive_json() -> None:
    asked = preset("paper", start=("sum(W)",), rules=())
    assert Settings.from_json(asked.to_json()) == asked
    with pytest.raises(InputError, match="fields"):
        Settings.from_json({"population": 3})


def test_a_space_without_survivors_is_refused() -> None:
    language = Language(preset("default", statistics=("S",), unaries=0, depth=1, **TERM))
    with pytest.raises(InputError, match="no formula of this space survives pruning"):
        language.check_not_empty()


@pytest.mark.slow
def test_a_small_space_is_exhausted_and_the_search_ends() -> None:
    asked = preset(
        "default", statistics=("W", "A"), unaries=0, population=10, generations=50, **TERM
    )
    states = evolve(asked)
    assert states[-1].exhausted
    assert len(states) < 50
    # Either reduction of: the sum, difference and product of the two, and each alone.
    assert len(states[-1].known) == 10


@pytest.mark.slow
@given(st.integers(0, 10**9), st.integers(0, 4), st.integers(0, 3))
@settings(max_examples=30)
def test_variation_stays_in_the_space(seed: int, unaries: int, depth: int) -> None:
    asked = {"unaries": unaries, "depth": depth, "statistics": tuple("AJWG")}
    language = Language(preset("default", **asked, **TERM))
    toolbox, rng = toolbox_of(language), random.Random(seed)
    drawn = [f for f in (language.draw(rng) for _ in range(12)) if not language.why_outside(f)]
    assume(len(drawn) >= 2)
    with as_global_rng(rng):
        made = [toolbox.mate(drawn[0], drawn[1]), toolbox.mutate(drawn[0])]
    for formula in made:
        assert language.why_outside(formula) is None
        assert parse(str(formula)) == formula


def test_neighbours_are_one_change_away_and_distinct() -> None:
    language = Language(preset("default", unaries=1, **TERM))
    start = parse("sum(add(log(W), G))")
    found = [str(formula) for formula in variation_of(language).neighbours(start)]
    assert len(found) == len(set(found))
    expected = [
        "mean(add(log(W), G))",
        "sum(add(W, G))",
        "sum(sub(log(W), G))",
        "sum(add(log(W), exp(G)))",
        "sum(add(exp(W), G))",
    ]
    assert set(expected) <= set(found)
    assert str(start) not in found


def test_one_name_is_replaced() -> None:
    formula = parse("sum(add(log(W), G))")
    names = [
        str(replace_name(formula.term.expression, at, new))
        for at, new in enumerate(["mul", "exp", "A", "S"])
    ]
    assert names == ["mul(log(W), G)", "add(exp(W), G)", "add(log(A), G)", "add(log(W), S)"]
    assert len(list(walk(formula.term.expression))) == 4


def test_what_is_scored_has_the_formulas_score_up_to_sign() -> None:
    language = Language(preset("default", **TERM))
    found = language.examine(parse("sum(add(neg(W), neg(exp(A))))"))
    assert isinstance(found, ScoredForm)
    assert (found.sign, found.key) == (-1, "sum(add(W, exp(A)))")
    assert check(found.formula) is None


def test_the_front_keeps_the_simple_and_the_fit() -> None:
    def candidate(number: int, fitness: float, complexity: int) -> Candidate:
        return Candidate(
            number, 0, "random", (), "sum(W)", str(number), complexity, fitness=(fitness,)
        )

    everyone = [
        candidate(0, 0.1, 1),
        candidate(1, 0.9, 9),
        candidate(2, 0.5, 9),
        candidate(3, 0.6, 4),
        candidate(4, 0.4, 5),
    ]
    assert {c.id for c in by_front(everyone, 3)} == {0, 1, 3}
    assert [c.id for c in best_first(everyone)] == [1, 3, 2, 4, 0]
    equals = [candidate(7, 0.5, 4), candidate(6, 0.5, 9), candidate(5, 0.5, 4)]
    assert [c.id for c in best_first(equals)] == [5, 7, 6], "the simpler, then the older"
    assert by_front([], 3) == []
