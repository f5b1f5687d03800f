"""The pages on the papers list everything that a paper numbers, and say what became of it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STATES = {"here", "in part", "not here"}
ROMAN = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"]
# Counted in the papers: the last number of each kind. T-Razor's tables have Roman numerals, and
# most equations of Training-free have no number.
NUMBERED = {
    "lpzero": {"Table": 8, "Figure": 13, "Algorithm": 1, "Equation": 16},
    "etas": {"Table": 5, "Figure": 2, "Algorithm": 1, "Equation": 23},
    "t-razor": {"Table": ROMAN, "Figure": 7, "Algorithm": 1, "Equation": 13},
    "prenas": {"Table": 9, "Figure": 6, "Algorithm": 1, "Equation": 13},
    "training-free": {"Table": 3, "Figure": 11, "Equation": 1},
}


def rows(page: str) -> list[list[str]]:
    text = (ROOT / "docs" / "papers" / f"{page}.md").read_text(encoding="utf-8")
    _, _, listed = text.partition("## Everything the paper numbers")
    lines = [line for line in listed.splitlines() if line.startswith("| ")][1:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


@pytest.mark.parametrize("page", NUMBERED)
def test_the_page_lists_everything_the_paper_numbers_once(page: str) -> None:
    expected = [
        f"{kind} {number}"
        for kind, last in NUMBERED[page].items()
        for number in (last if isinstance(last, list) else range(1, int(last) + 1))
    ]
    assert sorted(row[0] for row in rows(page)) == sorted(expected)


@pytest.mark.parametrize("page", NUMBERED)
def test_every_row_says_what_became_of_it_and_where(page: str) -> None:
    for number, what, state, where in rows(page):
        assert what
        assert state in STATES, number
        assert len(where) > 5, number
        for path in re.findall(r"`((?:lpzero|spaces|primitives|experiments)/[\w./]+)`", where):
            assert (ROOT / path).exists(), f"{number}: {path}"


def test_what_is_here_can_be_looked_up() -> None:
    found = [row for page in NUMBERED for row in rows(page) if row[2] == "here"]
    assert len(found) > 60
    for number, _, _, where in found:
        is_of_text = "the models in" in where or "selection" in where
        assert "`" in where or is_of_text, number
