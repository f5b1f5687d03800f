"""`lpzero stats`: fills the store once, says what it did, stops cleanly."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import spaces
from lpzero.cli.main import run
from lpzero.sketches.builder import Builder, build
from lpzero.sketches.store import Store
from spaces.tables.table import Table, make_table

ROOT = Path(__file__).parents[3]


@pytest.fixture
def small_table(monkeypatch: pytest.MonkeyPatch) -> Table:
    """A table of four architectures under the name nano-gpt2."""
    space = spaces.get("nano-gpt2")
    rows = [(str(i), space.sample(random.Random(i)), float(i)) for i in range(4)]
    table = make_table("nano-gpt2", space, rows, "made up", "none")
    monkeypatch.setattr("spaces.tables.load_any", lambda name, data=None, space=None: table)
    return table


def stats(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert run(["stats", *arguments, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_the_first_call_fills_and_the_second_finds(
    small_table: Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = str(tmp_path)
    first = stats(capsys, "nano-gpt2", "--cache", cache)
    again = stats(capsys, "nano-gpt2", "--cache", cache)
    assert (first["n"], first["built"], first["present"]) == (4, 4, 0)
    assert (again["n"], again["built"], again["present"]) == (4, 0, 4)
    assert again["bytes"] == first["bytes"] > 0
    assert again["failures"] == []


@pytest.mark.slow
def test_options_make_other_sketches(
    small_table: Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = str(tmp_path)
    for more in (["--elements", "64"], ["--exact"], ["--loss", "ones"], ["--seed", "1"]):
        assert stats(capsys, "nano-gpt2", "--cache", cache, *more)["built"] == 4
    rows = stats(capsys, "--list", "--cache", cache)
    assert sorted(row["sketches"] for row in rows) == [4, 4, 4, 4]
    [removed] = stats(capsys, "--prune", "all", "--cache", cache)
    assert removed["removed"] == 16
    assert stats(capsys, "--list", "--cache", cache) == []


@pytest.mark.slow
def test_failures_are_listed_on_stderr(
    small_table: Table,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: Any) -> Any:
        raise MemoryError("no room")

    with monkeypatch.context() as patched:
        patched.setattr("lpzero.sketches.builder.build_sketch", fail)
        assert run(["stats", "nano-gpt2", "--cache", str(tmp_path)]) == 0
    error = capsys.readouterr().err
    assert "4 failed; --retry-failed retries them" in error
    assert "MemoryError: no room" in error
    assert stats(capsys, "nano-gpt2", "--cache", str(tmp_path))["failed"] == 4
    assert stats(capsys, "nano-gpt2", "--cache", str(tmp_path), "--retry-failed")["built"] == 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no table given"),
        (["no-such-table"], "unknown table 'no-such-table'"),
        (["nano-gpt2", "--backend", "dask"], "needs a scheduler"),
        (["nano-gpt2", "--elements", "0"], "0 is not in the range"),
    ],
)
def test_bad_input_is_one_line_and_code_2(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["stats", *arguments, "--cache", str(tmp_path)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.slow
def test_a_full_store_is_seen_without_torch(tmp_path: Path) -> None:
    space = spaces.get("nano-gpt2")
    archs = [space.sample(random.Random(i)) for i in range(2)]
    assert build(space, archs, Builder(store=Store(tmp_path)))[0].built == 2
    code = (
        "import random, sys\n"
        "from pathlib import Path\n"
        "import spaces\n"
        "from lpzero.sketches.builder import Builder, build\n"
        "from lpzero.sketches.store import Store\n"
        "space = spaces.get('nano-gpt2')\n"
        "archs = [space.sample(random.Random(i)) for i in range(2)]\n"
        "report, _ = build(space, archs, Builder(store=Store(Path(sys.argv[1]))))\n"
        "print(report.built, 'torch' in sys.modules)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["0", "False"]
