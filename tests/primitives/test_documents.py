"""The numbers and tables in the documents are those of the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from primitives.classics import CLASSICS
from primitives.pruning import RULES
from primitives.sizes import measure

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.slow
@pytest.mark.parametrize("unaries", [1, 2])
def test_the_printed_sizes_are_current(unaries: int) -> None:
    size = measure(unaries)
    row = f"| {unaries} | {size.before:,} | {size.kept:,} | {size.distinct:,} |"
    assert row in (DOCS / "primitives.md").read_text(encoding="utf-8")


def test_every_rule_is_documented() -> None:
    text = (DOCS / "primitives.md").read_text(encoding="utf-8")
    assert [name for name in RULES if f"| `{name}` |" not in text] == []


def test_the_table_of_classics_is_current() -> None:
    text = (DOCS / "classic-proxies.md").read_text(encoding="utf-8")
    for classic in CLASSICS:
        formula = f"`{classic.text}`" if classic.text else "-"
        row = f"| {classic.name} | {formula} | {classic.fidelity.value} | {classic.note} |"
        assert row in text
