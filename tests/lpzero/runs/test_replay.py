"""The journal of a resumed run: equal lines stay, and what differs from here on is cut."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lpzero.runs.journal import Journal

NUMBERS = [{"n": n} for n in range(6)]


def fits(record: dict[str, Any], number: int) -> bool:
    return "n" in record


def contents(path: Path) -> list[dict[str, Any]]:
    with Journal(path, fits) as journal:
        return journal.records()


def test_lines_that_come_out_otherwise_replace_all_that_follows(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path, fits) as journal:
        journal.append(NUMBERS)
    with Journal(path, fits) as journal:
        journal.go_to(2)
        journal.append([{"n": 2}, {"n": 33}])
        assert len(journal) == journal.position == 4
        journal.append([{"n": 44}])
    assert contents(path) == [{"n": 0}, {"n": 1}, {"n": 2}, {"n": 33}, {"n": 44}]


def test_equal_lines_are_not_written_twice(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path, fits) as journal:
        journal.append(NUMBERS)
    before = path.read_bytes()
    with Journal(path, fits) as journal:
        journal.append(NUMBERS[:4])
        assert (journal.position, len(journal)) == (4, 6)
        journal.append([*NUMBERS[4:], {"n": 6}])
    assert path.read_bytes().startswith(before)
    assert contents(path) == [*NUMBERS, {"n": 6}]
