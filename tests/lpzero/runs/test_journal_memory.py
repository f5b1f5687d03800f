"""A journal's lines stay in its file: what it keeps of them does not grow with their length."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lpzero.runs.journal import Journal

LINES, WIDTH = 3000, 500


def records(start: int = 0, stop: int = LINES) -> Iterator[dict[str, Any]]:
    return ({"n": n, "text": f"{n} " * (WIDTH // 5)} for n in range(start, stop))


def test_lines_that_were_written_are_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path, lambda record, number: True) as journal:
        tracemalloc.start()
        try:
            for start in range(0, LINES, 100):
                journal.append(records(start, start + 100))
            held = tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()
    assert path.stat().st_size > LINES * WIDTH
    assert held < path.stat().st_size / 10


def test_any_lines_and_seals_are_read_again_as_they_were(tmp_path: Path) -> None:
    path, wanted = tmp_path / "journal.jsonl", list(records(stop=40))
    with Journal(path, lambda record, number: True, "a run") as journal:
        seals = [journal.seal(0)]
        for record in wanted:
            journal.append([record])
            seals.append(journal.seal(len(journal)))
        assert len(set(seals)) == 41
        assert [journal.seal(line) for line in range(41)] == seals
    for part in (slice(0, None), slice(7, 9), slice(39, None), slice(5, 5), slice(30, 99)):
        with Journal(path, lambda record, number: True, "a run") as journal:
            assert journal.records(part.start, part.stop) == wanted[part]
            assert [journal.seal(line) for line in (0, 1, 39, 40)] == [
                seals[line] for line in (0, 1, 39, 40)
            ]


def test_a_cut_journal_continues_as_if_the_lines_had_not_been(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    with Journal(whole, lambda record, number: True) as journal:
        journal.append(records(stop=20))
    for number in (0, 1, 13, 19):
        with Journal(cut, lambda record, number: True) as journal:
            journal.append(records(stop=20))
            journal.cut(number)
            assert len(journal) == number
            journal.go_to(number)
            journal.append(records(number, 20))
            assert journal.position == 20
        assert cut.read_bytes() == whole.read_bytes()
