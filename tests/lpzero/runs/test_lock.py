"""One process at a time works in a directory; a file system without locks is named."""

from __future__ import annotations

import errno
import fcntl
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

import pytest

from lpzero.cli.main import run
from lpzero.errors import InputError, RunError
from lpzero.runs.config import RunConfig
from lpzero.runs.directory import RunDirectory, locked
from lpzero.runs.layout import JOURNAL
from tests.faults.attempt import BUSY, Attempt, attempt
from tests.lpzero.column_file import write_csv


def without_locks(handle: int, operation: int) -> NoReturn:
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


def test_a_file_system_without_locks_is_said_and_can_be_used_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcntl, "flock", without_locks)
    said = r"cannot lock files \(No locks available\).*--no-lock"
    with pytest.raises(RunError, match=said), locked(tmp_path):
        pass
    with locked(tmp_path, lock=False):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def test_a_lock_in_use_names_its_process(tmp_path: Path) -> None:
    said = f"in use by process {os.getpid()}"
    with locked(tmp_path), pytest.raises(RunError, match=said), locked(tmp_path):
        pass


def unlocked(folder: Path) -> RunDirectory:
    return RunDirectory(folder, RunConfig("campaign", {}), True, lambda *_: True, lock=False)


@pytest.mark.parametrize("records", [[{"n": 0}], [{"n": 5}]])
def test_of_processes_without_a_lock_none_writes_after_another(
    tmp_path: Path, records: list[dict[str, int]]
) -> None:
    said = "another process has changed .*journal.jsonl"
    with unlocked(tmp_path) as first, unlocked(tmp_path) as second:
        first.journal.append([{"n": 0}])
        with pytest.raises(InputError, match=said):
            second.journal.append(records)
        first.write_checkpoint({})
    with unlocked(tmp_path) as again:
        assert again.journal.records() == [{"n": 0}]
        assert not again.remarks


def test_a_journal_that_another_process_appended_to_ends_the_run(tmp_path: Path) -> None:
    with unlocked(tmp_path) as first:
        first.journal.append([{"n": 0}])
        with (tmp_path / "journal.jsonl").open("ab") as file:
            file.write(b"{}\n")
        with pytest.raises(InputError, match="another process"):
            first.write_result({}, 0.0)
    assert not (tmp_path / "result.json").exists()


@pytest.mark.slow
def test_three_processes_without_a_lock_spoil_no_finished_journal(tmp_path: Path) -> None:
    table = str(write_csv(tmp_path))
    words = ["discover", table, "--target", "accuracy", "--choose", "train", "--predictor", "none"]
    words += ["--columns-only", "--generations", "30", "--population", "20", "--offspring", "20"]
    words += ["--permutations", "0", "--splits", "0", "--quiet", "--no-lock", "--resume", "--out"]
    alone, together = tmp_path / "alone", tmp_path / "together"
    assert run([*words, str(alone)]) == 0

    def again(name: str) -> Attempt:
        return attempt([*words, str(together)], tmp_path / name, limit=BUSY)

    with ThreadPoolExecutor() as threads:  # each waits for a fork
        done = list(threads.map(again, "abc"))
    codes = {one.code for one in done}
    assert codes <= {0, 2}, done
    for one in done:
        assert one.code == 0 or one.err.count("error: ") == 1, one.err
        assert "Traceback" not in one.err
        assert "unexpected" not in one.err
    expected = (alone / JOURNAL).read_bytes()
    if 0 in codes:
        assert (together / JOURNAL).read_bytes() == expected
    assert run([*words, str(together)]) == 0
    assert (together / JOURNAL).read_bytes() == expected


def test_a_refused_directory_has_no_lock_afterwards(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(RunError, match=r"contains notes\.txt"), unlocked(tmp_path):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
