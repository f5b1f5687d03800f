"""A call on a run's files that fails ends in one line; the same command again loses nothing."""

from __future__ import annotations

import errno
import re
import shutil
from pathlib import Path

import pytest

from experiments.faults.attempt import FailingCalls, Failure
from lpzero.report import style
from lpzero.runs import layout
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


@pytest.mark.slow
@pytest.mark.parametrize(("write", "every"), [(rank, 11), (search, 11), (discover, 23)])
def test_after_any_failing_call_the_same_command_gives_the_same_files(
    write: Write,
    every: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(style, "encode", lambda figure, form: b"<svg></svg>")
    folder = tmp_path / "run"
    assert write(folder) == 0
    expected = files_of(folder)
    is_over, n_refused = False, 0
    for call in range(1, 1000, every):
        shutil.rmtree(folder)
        calls = FailingCalls(Failure(call, ERRORS[call % len(ERRORS)], folder))
        capsys.readouterr()
        try:
            code = write(folder)
        finally:
            calls.stop()
        said = capsys.readouterr().err
        assert code in (0, 1, 2), said
        assert "unexpected" not in said, (call, said)
        assert "Traceback" not in said, (call, said)
        n_refused += code != 0
        is_over = calls.n < call
        assert write(folder) == 0, call
        assert files_of(folder) == expected, call
        if is_over:
            break
    assert is_over
    assert n_refused > 0
