"""A journal is cut where it was torn or changed, and otherwise left as it is."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from lpzero.errors import RunError
from lpzero.runs.journal import Journal, read_journal

PLACE = "a run/journal.jsonl"
RECORDS = [{"n": number, "value": number / 7} for number in range(20)]


def fits(record: dict[str, Any], number: int) -> bool:
    return bool(record["n"] == number)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "journal.jsonl"
    with Journal(found, fits, PLACE) as journal:
        journal.append(RECORDS)
    return found


def test_lines_are_json_and_are_read_back(path: Path) -> None:
    assert read_journal(path, fits, PLACE) == (RECORDS, 0)
    for line, record in zip(path.read_text().splitlines(), RECORDS, strict=True):
        found = json.loads(line)
        assert len(found.pop("seal")) == 32
        assert found == record


def test_every_changed_byte_is_found_at_its_line(path: Path) -> None:
    whole = path.read_bytes()
    before_last = whole.rfind(b"\n", 0, -1)
    rng = random.Random(0)
    for at in (*rng.sample(range(len(whole)), 200), len(whole) - 1, len(whole) - 20):
        changed = bytearray(whole)
        changed[at] ^= 1 << rng.randrange(8)
        path.write_bytes(changed)
        line = whole[:at].count(b"\n")
        if at < before_last:
            with pytest.raises(RunError, match=rf"line {line + 1} of .* was changed"):
                read_journal(path, fits, PLACE)
        else:  # as a killed run may leave it
            records, torn = read_journal(path, fits, PLACE)
            assert records == RECORDS[:line]
            assert torn > 0
        with Journal(path, fits, PLACE) as journal:
            assert len(journal) == line


def test_a_last_line_with_its_seal_but_another_content_is_refused(path: Path) -> None:
    with Journal(path, any_number, PLACE) as journal:
        journal.go_to(len(RECORDS))
        journal.append([{"n": 77}])
    with pytest.raises(RunError, match=rf"line {len(RECORDS) + 1} of .* is not of this run"):
        read_journal(path, fits, PLACE)


@pytest.mark.parametrize("move", ["swap", "drop", "twice"])
def test_lines_that_were_moved_do_not_fit(path: Path, move: str) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    changed = {
        "swap": [*lines[:4], lines[5], lines[4], *lines[6:]],
        "drop": [*lines[:4], *lines[5:]],
        "twice": [*lines[:4], lines[3], *lines[4:]],
    }[move]
    path.write_bytes(b"".join(changed))
    with pytest.raises(RunError, match="line 5 of"):
        read_journal(path, lambda record, number: True, PLACE)


def test_a_cut_journal_says_where_and_is_written_again(path: Path) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b'"n":6', b'"n":7', 1))
    with Journal(path, fits, PLACE) as journal:
        assert journal.remark is not None
        assert f"{path}: line 7 was changed" in journal.remark
        assert "13 lines after it" in journal.remark
        assert len(journal) == 6
        journal.append(RECORDS)
    assert path.read_bytes() == whole


def test_a_journal_of_another_run_is_refused(path: Path) -> None:
    with pytest.raises(RunError, match=r"line 1 of .* is not of this run"):
        read_journal(path, fits, "another run/journal.jsonl")


@pytest.mark.parametrize("value", ["1" * 6000, "[" * 100_000])
def test_a_line_that_cannot_be_read_ends_the_journal(path: Path, value: str) -> None:
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"n":20,"value":' + value.encode() + b"}\n")
    with Journal(path, fits, PLACE) as journal:
        assert len(journal) == 20
    assert path.read_bytes() == whole


def test_what_is_not_a_regular_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "journal.jsonl")
    with pytest.raises(RunError, match="not a regular file"):
        Journal(tmp_path / "journal.jsonl", fits, PLACE)


def any_number(record: dict[str, Any], number: int) -> bool:
    return "n" in record


NUMBERS = [{"n": n} for n in range(6)]


def test_lines_that_come_out_otherwise_replace_all_that_follows(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path, any_number, PLACE) as journal:
        journal.append(NUMBERS)
    with Journal(path, any_number, PLACE) as journal:
        journal.go_to(2)
        journal.append([{"n": 2}, {"n": 33}])
        assert len(journal) == journal.position == 4
        journal.append([{"n": 44}])
    found = read_journal(path, any_number, PLACE).records
    assert found == [{"n": 0}, {"n": 1}, {"n": 2}, {"n": 33}, {"n": 44}]


def test_equal_lines_are_not_written_twice(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path, any_number, PLACE) as journal:
        journal.append(NUMBERS)
    before = path.read_bytes()
    with Journal(path, any_number, PLACE) as journal:
        journal.append(NUMBERS[:4])
        assert (journal.position, len(journal)) == (4, 6)
        journal.append([*NUMBERS[4:], {"n": 6}])
    assert path.read_bytes().startswith(before)
    assert read_journal(path, any_number, PLACE).records == [*NUMBERS, {"n": 6}]
