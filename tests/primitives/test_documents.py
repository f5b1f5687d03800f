"""The numbers and tables in the documents are those of the code."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from primitives.classics import CLASSICS
from primitives.pruning import OUTER_RULES, RULES
from primitives.reductions import POSITION_REDUCTIONS
from primitives.space_size import measure
from primitives.statistics import SIZES

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.slow
@pytest.mark.parametrize("unaries", [1, 2])
def test_the_printed_sizes_are_current(unaries: int) -> None:
    size = measure(unaries)
    row = f"| {unaries} | {size.before:,} | {size.kept:,} | {size.distinct:,} |"
    assert row in (DOCS / "primitives.md").read_text(encoding="utf-8")


def test_every_rule_is_documented() -> None:
    text = (DOCS / "primitives.md").read_text(encoding="utf-8")
    assert [name for name in (*RULES, *OUTER_RULES) if f"| `{name}` |" not in text] == []


def test_sizes_and_reductions_are_documented_as_they_are_declared() -> None:
    text = (DOCS / "primitives.md").read_text(encoding="utf-8")
    for size in SIZES.values():
        at_ends = "yes" if size.at_ends else "no"
        assert f"| `{size.name}` | {size.meaning} | {size.symbol} | {at_ends} |" in text
    for facts in POSITION_REDUCTIONS.values():
        assert f"| `{facts.name}` | {facts.meaning} |" in text


def test_the_examples_run() -> None:
    results = doctest.testfile(str(DOCS / "primitives.md"), module_relative=False)
    assert results.attempted >= 7
    assert results.failed == 0


def test_the_table_of_classics_is_current() -> None:
    text = (DOCS / "classic-proxies.md").read_text(encoding="utf-8")
    for classic in CLASSICS:
        formula = f"`{classic.text}`" if classic.text else "-"
        row = f"| {classic.name} | {formula} | {classic.fidelity.value} | {classic.note} |"
        assert row in text
