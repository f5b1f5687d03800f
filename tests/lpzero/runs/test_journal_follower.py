"""A journal is followed as it grows, is torn, cut, replaced and damaged."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lpzero.runs.journal import Journal, JournalFollower, read_journal

PLACE = "run/journal.jsonl"


def fits(record: dict[str, Any], number: int) -> bool:
    return record["n"] == number


def lines(start: int, stop: int, text: str = "") -> list[dict[str, Any]]:
    return [{"n": n, "text": text or "x" * (n % 7)} for n in range(start, stop)]


def append(path: Path, records: list[dict[str, Any]]) -> None:
    with Journal(path, fits, PLACE) as journal:
        journal.go_to(len(journal))
        journal.append(records)


def everything(follower: JournalFollower, limit: int = 1 << 20) -> list[dict[str, Any]]:
    found = []
    while True:
        piece = follower.read(limit)
        found += piece.records
        if not follower.is_behind:
            return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.jsonl"


@pytest.mark.parametrize("limit", [120, 500, 1 << 20])
def test_pieces_of_any_size_give_what_the_journal_holds(path: Path, limit: int) -> None:
    append(path, lines(0, 200))
    follower = JournalFollower(path, fits, PLACE)
    assert everything(follower, limit) == read_journal(path, fits, PLACE).records
    assert follower.offset == follower.size == path.stat().st_size
    append(path, lines(200, 230))
    assert everything(follower, limit) == lines(200, 230)
    assert follower.read().records == []


def test_a_torn_line_is_waited_for(path: Path) -> None:
    append(path, lines(0, 3))
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    follower = JournalFollower(path, fits, PLACE)
    assert everything(follower) == lines(0, 2)
    assert follower.remark is None
    path.write_bytes(whole)
    assert everything(follower) == lines(2, 3)


def test_a_journal_that_was_cut_or_replaced_is_read_from_its_start(path: Path) -> None:
    append(path, lines(0, 10))
    follower = JournalFollower(path, fits, PLACE)
    assert follower.read().is_first
    assert not follower.read().is_first
    path.unlink()
    append(path, lines(0, 12, "other"))
    piece = follower.read()
    assert piece.is_first
    assert piece.records == lines(0, 12, "other")
    path.write_bytes(b"")
    assert follower.read() == ([], True)
    path.unlink()
    assert follower.read() == ([], True)


@pytest.mark.parametrize(
    ("damage", "n_read", "remark"),
    [
        (lambda data: data.replace(b'"n":4', b'"n":9'), 4, "line 5 .* was changed"),
        (lambda data: data + b'{"n":6}\n', 6, "line 7 .* was changed"),
        (lambda data: data + b"\n", 6, "line 7 .* was changed"),
        (lambda data: data + b"\0" * (2 << 20), 6, "line 7 .* longer than any"),
        (lambda data: data + b"\0" * (1 << 20), 6, "line 7 .* longer than any"),
    ],
)
def test_reading_stops_at_damage_and_goes_on_when_it_is_repaired(
    path: Path, damage: Any, n_read: int, remark: str
) -> None:
    append(path, lines(0, 6))
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    follower = JournalFollower(path, fits, PLACE)
    assert len(everything(follower, 4 << 20)) == n_read
    assert follower.remark is not None

    assert re.search(remark, follower.remark)
    path.write_bytes(whole)
    assert everything(follower) == lines(n_read, 6)
    assert follower.remark is None


def test_a_long_line_that_is_being_written_is_waited_for(path: Path) -> None:
    append(path, lines(0, 6))
    with path.open("ab") as file:
        file.write(b"x" * ((1 << 20) - 1))
    follower = JournalFollower(path, fits, PLACE)
    assert len(everything(follower)) == 6
    assert follower.remark is None


def test_links_and_pipes_are_not_read(path: Path) -> None:
    append(path, lines(0, 3))
    link = path.with_name("link")
    link.symlink_to(path)
    assert JournalFollower(link, fits, PLACE).read().records == []
