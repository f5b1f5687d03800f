"""`lpzero exhaust`: the contract of the command line."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

import spaces
from lpzero.cli.main import run
from lpzero.runs.config import RunConfig, write_config
from lpzero.sketches.sketch import Sketch, SketchOptions, address, encode, identity
from lpzero.sketches.store import Store
from primitives.parser import parse
from spaces.tables.table import make_table
from tests.lpzero import random_sketches

pytestmark = pytest.mark.slow


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A table of 24 architectures with drawn sketches in the cache; the working folder."""
    space = spaces.get("nano-gpt2")
    rng = random.Random(0)
    archs = [space.sample(rng) for _ in range(24)]
    rows = [(str(i), arch, space.depth(arch) + rng.random()) for i, arch in enumerate(archs)]
    table = make_table("nano-gpt2", space, rows, "made up", "none")
    monkeypatch.setattr("spaces.tables.load_any", lambda name, data=None, space=None: table)
    store = Store(tmp_path / "cache")
    for seed in (0, 1):  # the other seed's are for the winner's stability
        options = SketchOptions(seed=seed, batch_seed=seed)
        for index, arch in enumerate(archs):
            one = random_sketches.sketch(index, space.depth(arch))
            whole = Sketch({**identity(space, arch, options), **one.header}, one.numbers)
            store.write(space.name, address(space, arch, options), encode(whole))
    monkeypatch.setenv("LPZERO_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def exhaust(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert run(["exhaust", "nano-gpt2", *arguments, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_json_holds_what_the_contract_says(
    prepared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = exhaust(capsys)
    assert {"best", "top", "evaluated", "rejected", "seconds", "counters"} <= set(result)
    assert {"count", "difference", "stability", "verdict"} <= set(result)
    for line in [result["best"], *result["top"]]:
        assert set(line["rho"]) == {"train", "valid", "test"}
        assert str(parse(line["formula"])) == line["formula"]
    assert result["best"]["formula"] == result["top"][0]["formula"]
    assert result["rejected"]["no-effect"] > 0
    assert (prepared / "runs" / "exhaust-nano-gpt2-1-split0" / "config.json").is_file()


def test_a_second_call_answers_another_question_from_the_same_run(
    prepared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = exhaust(capsys)
    again = exhaust(capsys, "--jobs", "2")
    assert {**again, "seconds": 0} == {**first, "seconds": 0}
    forward = exhaust(capsys, "--forward-only", "--by", "within", "--top", "3")
    assert len(forward["top"]) == 3
    assert not any(name in line["formula"] for line in forward["top"] for name in ("G", "J"))
    assert exhaust(capsys, "--reduction", "mean", "--operation", "add", "--using", "S")["top"]


def test_the_table_form_shows_formulas_counters_and_the_judgement(
    prepared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["exhaust", "nano-gpt2", "--top", "2"]) == 0
    text = capsys.readouterr().out
    shown = (
        "rho test",
        "depth-sqrt-width",
        "rho given params",
        "(the best counter on train and valid)",
    )
    for part in (*shown, "formulas evaluated"):
        assert part in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--memory", "lots"], "is not an amount of memory"),
        (["--memory", "1MB"], "give --memory more"),
        (["--unaries", "3"], "3 is not in the range"),
        (["--by", "luck"], "unknown measure 'luck'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    prepared: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert run(["exhaust", "nano-gpt2", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err.splitlines()[-1]


def test_a_directory_that_cannot_be_used_is_refused_before_sketches_are_extracted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    extracted: list[object] = []
    monkeypatch.setattr("lpzero.sketches.builder.sketches", lambda *_: extracted.append(1))
    write_config(tmp_path, RunConfig("search", {}))
    assert run(["exhaust", "nano-gpt2", "--out", str(tmp_path)]) == 2
    assert "holds a search, not an exhaustive run" in capsys.readouterr().err
    assert not extracted
