"""The runner of the benchmarks: it knows them all, and keeps what they print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from experiments.benchmarks import run

FOLDER = Path(run.__file__).parent


def test_it_knows_every_benchmark() -> None:
    named = {line.split()[0] for lines in run.BENCHMARKS.values() for line in lines}
    scripts = {path.stem for path in FOLDER.glob("*.py") if "__main__" in path.read_text()}
    assert named == scripts - {"run", "growth_campaign"}  # which growth runs


def test_what_is_printed_is_kept_with_the_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "BENCHMARKS", {"one": ("a OUT/b",), "two": ("c",)})
    monkeypatch.setattr(run.sys, "executable", "/bin/echo")
    for _ in "ab":
        done = CliRunner().invoke(run.main, ["--out", str(tmp_path)])
        assert done.exit_code == 0, done.output
        assert "experiments.benchmarks.c" in done.output
    records = [json.loads(line) for line in (tmp_path / "history.jsonl").read_text().splitlines()]
    assert [one["benchmark"] for one in records] == ["one", "two"] * 2
    assert records[0]["printed"] == [f"-m experiments.benchmarks.a {tmp_path}/b"]
    assert records[0]["version"] == run.VERSION
