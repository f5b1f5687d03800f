"""Counts and history of a campaign, by hand."""

from __future__ import annotations

from lpzero.discover.candidate import Candidate
from lpzero.discover.tally import Tally
from primitives.parser import parse

FORMULA = parse("sum(W)")


def candidate(number: int, generation: int, **fate: object) -> Candidate:
    return Candidate(number, generation, "random", (), FORMULA, **fate)  # type: ignore[arg-type]


def test_every_fate_is_counted_and_the_best_so_far_is_kept() -> None:
    tally = Tally()
    tally.count(
        [
            candidate(0, 0, key="a", complexity=5, fitness=(0.7,)),
            candidate(1, 0, rejected="constant"),
            candidate(2, 0, key="b", rejected="constant-score"),
            candidate(3, 0, repeats=0),
            candidate(4, 1, key="c", complexity=2, fitness=(0.6,)),
            candidate(5, 2, key="d", complexity=3, fitness=(0.7,)),
        ]
    )
    assert (tally.tried, tally.evaluated, tally.repeats) == (6, 4, 1)
    assert tally.rejected == {"constant": 1, "constant-score": 1}
    shown = [(row["generation"], row["evaluated"], row["best"]) for row in tally.history]
    assert shown == [(0, 2, 0), (1, 3, 0), (2, 4, 5)], "the simpler of equals is the best"
    assert [row["fitness"] for row in tally.history] == [0.7, 0.7, 0.7]
    assert [row["rejected"] for row in tally.history] == [2, 2, 2]
