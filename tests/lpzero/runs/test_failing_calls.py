"""A call on a run's files that fails ends in one line; the same command again loses nothing."""

from __future__ import annotations

import errno
import re
import shutil
from pathlib import Path

import pytest

from lpzero.report import style
from lpzero.runs import layout
from tests.faults.attempt import FailingCalls, Failure
from tests.lpzero.runs.test_links import Write, discover, rank, search

ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)


def files_of(folder: Path) -> dict[str, bytes]:
    """What equal runs have in common: files without seconds, and without seals of these."""
    compared = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name not in (layout.LOCK, layout.TIMING):
            seconds = rb'"seconds(_per_arch)?": ?[\d.e-]+|"seal": ?"\w+"'
            compared[str(path.relative_to(folder))] = re.sub(seconds, b"", path.read_bytes())
    return compared


def calls_of(write: Write, folder: Path, failure: Failure) -> tuple[int, int]:
    """The exit code of the command with this failure, and how many calls it made."""
    calls = FailingCalls(failure)
    try:
        return write(folder), calls.n
    finally:
        calls.stop()


@pytest.mark.slow
@pytest.mark.parametrize("write", [rank, search, discover])
def test_after_any_failing_call_the_same_command_gives_the_same_files(
    write: Write,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At four moments; `tests.faults.run --failing` tries them all."""
    monkeypatch.setattr(style, "encode", lambda figure, form: b"<svg></svg>")
    folder = tmp_path / "run"
    code, n_calls = calls_of(write, folder, Failure(0, errno.EIO, folder))
    assert code == 0
    assert n_calls > 20
    expected = files_of(folder)
    n_refused = 0
    for moment in range(4):
        shutil.rmtree(folder)
        call, error = 2 + moment * (n_calls - 3) // 3, ERRORS[moment % len(ERRORS)]
        capsys.readouterr()
        code, _ = calls_of(write, folder, Failure(call, error, folder))
        said = capsys.readouterr().err
        assert code in (0, 1, 2), said
        assert "unexpected" not in said, (call, said)
        assert "Traceback" not in said, (call, said)
        n_refused += code != 0
        assert write(folder) == 0, call
        assert files_of(folder) == expected, call
    assert n_refused > 0
