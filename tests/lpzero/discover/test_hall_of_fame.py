"""The hall of fame: each formula once, the front complete, readable by anyone."""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from lpzero.discover.candidate import Candidate
from lpzero.discover.hall_of_fame import HallOfFame, Tally, admit, front
from lpzero.files import write_csv
from lpzero.judgement.measures import Measures
from primitives.parser import parse
from tests.formula_keys import key_up_to_sign


def candidate(number: int, text: str, rho: float, given: float = 0.0) -> Candidate:
    formula = parse(text)
    key = key_up_to_sign(formula)
    return Candidate(
        number, 1, "random", (), text, key, formula.complexity,
        measures=(Measures(rho, given, 0.0),), fitness=(rho,),
    )  # fmt: skip


def test_the_same_formula_in_another_order_is_one_entry() -> None:
    hall = admit(HallOfFame(), [candidate(0, "sum(add(W, A))", 0.5)])
    hall = admit(hall, [candidate(1, "-sum(add(A, W))", 0.5, 0.1)])
    assert [entry.id for entry in hall.entries] == [0]


def test_of_formulas_that_rank_alike_the_simplest_stays() -> None:
    hall = admit(HallOfFame(), [candidate(0, "sum(add(exp(W), A))", 0.5)])
    hall = admit(hall, [candidate(1, "sum(W)", 0.5), candidate(2, "sum(add(W, J))", 0.5)])
    assert [entry.id for entry in hall.entries] == [1]


def test_rejected_candidates_and_repeats_stay_out() -> None:
    rejected = Candidate(0, 0, "random", (), "sum(W)", "sum(W)", 1, rejected="constant")
    repeat = Candidate(1, 0, "random", (), "sum(W)", repeats=0)
    assert admit(HallOfFame(), [rejected, repeat]) == HallOfFame()


def test_the_front_is_kept_beyond_the_size() -> None:
    texts = ["sum(W)", "sum(exp(W))", "sum(add(W, A))", "sum(add(exp(W), A))"]
    everyone = [candidate(i, text, 0.1 * (i + 1)) for i, text in enumerate(texts)]
    everyone += [candidate(9, "sum(add(exp(J), exp(A)))", 0.05)]
    hall = admit(HallOfFame(size=1), everyone)
    assert [entry.id for entry in hall.entries] == [3, 2, 1, 0]
    assert hall.front == hall.entries


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(1, 6)), max_size=40), st.integers())
def test_admitting_in_portions_changes_nothing(pairs: list[tuple[int, int]], seed: int) -> None:
    everyone = [
        Candidate(
            i,
            0,
            "random",
            (),
            "sum(W)",
            str(i),
            complexity,
            measures=(Measures(rho / 8, 0.0, 0.0),),
            fitness=(rho / 8,),
        )
        for i, (rho, complexity) in enumerate(pairs)
    ]
    whole = admit(HallOfFame(size=5), everyone)
    hall, rest, rng = HallOfFame(size=5), list(everyone), random.Random(seed)
    while rest:
        n = rng.randint(1, 5)
        hall, rest = admit(hall, rest[:n]), rest[n:]
    assert hall == whole
    best = {(c.fitness[0], c.complexity) for c in front(everyone)}
    assert {(c.fitness[0], c.complexity) for c in whole.front} == best


def test_rows_can_be_read_without_the_library(tmp_path: Path) -> None:
    hall = admit(HallOfFame(), [candidate(0, "-sum(add(W, A))", 0.5), candidate(1, "sum(W)", 0.4)])
    rows = hall.rows(["nano"])
    path = tmp_path / "hall.csv"
    write_csv(path, rows)
    with open(path, newline="") as file:
        read = list(csv.DictReader(file))
    assert [row["formula"] for row in read] == ["'-sum(add(A, W))", "sum(W)"]
    assert [float(row["nano rho"]) for row in read] == [0.5, 0.4]
    assert {"nano rho_given_params", "nano rho_within"} <= set(read[0])
    assert {row["front"] for row in read} == {"True"}
    write_csv(path, [])
    assert path.read_text() == ""


def scored(number: int, rho: float, complexity: int) -> Candidate:
    return Candidate(
        number, 1, "random", (), "sum(W)", str(number), complexity,
        measures=(Measures(rho, number / 100, 0.0),), fitness=(rho,),
    )  # fmt: skip


def test_equally_simple_formulas_are_covered_by_the_fitter() -> None:
    everyone = [scored(0, 0.5, 3), scored(1, 0.4, 3), scored(2, 0.5, 4), scored(3, 0.3, 2)]
    assert [c.id for c in front(everyone)] == [0, 3]


def test_a_full_hall_admits_a_simpler_formula_and_an_equally_fit_one() -> None:
    full = admit(HallOfFame(size=2), [scored(0, 0.9, 5), scored(1, 0.8, 5)])
    assert [c.id for c in admit(full, [scored(2, 0.1, 1)]).entries] == [0, 1, 2]
    # As fit as the worst and simpler: it takes its place, which the front no longer needs.
    assert [c.id for c in admit(full, [scored(3, 0.8, 4)]).entries] == [0, 3]
    assert admit(full, [scored(4, 0.7, 6)]) == full
    # Even where a fitter one is simpler still.
    full = admit(HallOfFame(size=2), [scored(0, 0.9, 3), scored(1, 0.8, 5)])
    assert [c.id for c in admit(full, [scored(2, 0.8, 4)]).entries] == [0, 2]


def counted(number: int, generation: int, **fate: Any) -> Candidate:
    return Candidate(number, generation, "random", (), "sum(W)", **fate)


def test_every_fate_is_counted_and_the_best_so_far_is_kept() -> None:
    tally = Tally()
    everyone = [
        counted(0, 0, key="a", complexity=5, fitness=(0.7,)),
        counted(1, 0, rejected="constant"),
        counted(2, 0, key="b", rejected="constant-score"),
        counted(3, 0, repeats=0),
        counted(4, 1, key="c", complexity=2, fitness=(0.6,)),
        counted(5, 2, key="d", complexity=3, fitness=(0.7,)),
    ]
    tally.count(everyone)
    assert (tally.tried, tally.evaluated, tally.repeats) == (6, 4, 1)
    assert tally.rejected == {"constant": 1, "constant-score": 1}
    shown = [(row["generation"], row["evaluated"], row["best"]) for row in tally.history]
    assert shown == [(0, 2, 0), (1, 3, 0), (2, 4, 5)], "the simpler of equals is the best"
    assert [row["fitness"] for row in tally.history] == [0.7, 0.7, 0.7]
    assert [row["rejected"] for row in tally.history] == [2, 2, 2]
    assert [row["tried"] for row in tally.history] == [4, 5, 6]
    assert tally.hall == admit(HallOfFame(), everyone)
