"""Every kind of run prints the command that reproduces it; a verb is one file."""

from __future__ import annotations

import json
import random
import re
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

import spaces
from lpzero import verbs
from lpzero.cli.main import run as command
from lpzero.report.page import commands
from lpzero.runs import layout
from lpzero.runs.run import open_run
from lpzero.supernet import weights
from tests.lpzero.column_file import write_csv
from tests.lpzero.sealed_runs import content, rewrite
from tests.spaces.test_minibatch import SENTENCE, tokenizer_file

# The smallest runs of each kind, with options that change what is found. COLUMNS is a file of
# columns, ROWS one of architectures; the other words in capitals are files, too.
SMALLEST = (
    (
        "campaign",
        "discover COLUMNS --target accuracy --smaller-is-better --columns-only --quiet"
        " --generations 1 --population 10 --offspring 5 --permutations 0 --splits 0 --split-seed 2",
    ),
    (
        "comparison",
        "search nano-gpt2 --compare --loop random --proxy depth --samples 9 --seeds 2"
        " --evaluator table --max-parameters 3e5 --quiet",
    ),
    ("leaderboard", "leaderboard nano-rnn --proxy depth --add FORMULA --weights-seed 1 --quiet"),
    (
        "exhaustive run",
        "exhaust ROWS --space nano-gpt2 --target accuracy --smaller-is-better --batch 2 --length 8"
        " --permutations 0 --top 3 --by within --split-seed 1 --weights-seed 1",
    ),
    ("ranking", "rank COLUMNS --target accuracy --smaller-is-better --proxy cost"),
    (
        "ranking",
        "rank ROWS --space nano-gpt2 --target accuracy --proxy sum(abs(A)) --batch 2 --length 8"
        " --corpus TEXT --tokenizer TOKENIZER",
    ),
    (
        "search",
        "search nano-gpt2 --loop random --proxy depth --samples 9 --evaluator proxy --seed 3"
        " --quiet",
    ),
    ("search", "search --hf SPACE --loop random --proxy depth --samples 4 --seed 3 --quiet"),
    (
        "supernet training",
        "train nano-autoformer --supernet --steps 1 --batch 2 --images 2 --select PREFERRED"
        " --weights WEIGHTS --quiet",
    ),
    ("table build", "train nano-rnn --n 2 --seeds 2 --steps 1 --quiet"),
)
_QUICK = {"ranking", "supernet training"}
# Where and how it is shown, not what is found.
_LOCAL = {"--quiet"}


def test_every_kind_of_run_has_a_smallest_one() -> None:
    assert {kind for kind, _ in SMALLEST} == set(verbs.kinds())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "line"),
    [
        pytest.param(*row, id=row[1][:20], marks=[] if row[0] in _QUICK else [pytest.mark.slow])
        for row in SMALLEST
    ],
)
def test_the_printed_command_makes_the_same_run(kind: str, line: str, tmp_path: Path) -> None:
    if "--hf" in line:
        pytest.importorskip("transformers", reason="the extra lpzero[hf] is not installed")
    words = [str(FILES[word](tmp_path)) if word in FILES else word for word in line.split()]
    first, second = tmp_path / "first", tmp_path / "second"
    assert command([*words, "--out", str(first), "--jobs", "1", "--format", "json"]) == 0
    stored = open_run(first)
    assert stored.kind == kind
    printed = shlex.split(commands(stored)[0])
    assert printed[0] == "lpzero"
    assert "--jobs" not in printed, "it does not change the result"
    assert {word for word in words if word.startswith("--")} - _LOCAL <= set(printed)
    printed[printed.index("--out") + 1] = str(second)
    assert command([*printed[1:], "--format", "json"]) == 0
    assert (second / layout.CONFIG).read_bytes() == (first / layout.CONFIG).read_bytes()
    name = layout.RESULT if kind != "table build" else layout.TABLE
    results = [_without_seconds(json.loads((out / name).read_text())) for out in (first, second)]
    assert results[0] == results[1]


def _without_seconds(value: Any) -> Any:
    """The value without the seconds that something took, at any depth."""
    if isinstance(value, list):
        return [_without_seconds(entry) for entry in value]
    if isinstance(value, dict):
        return {name: _without_seconds(v) for name, v in value.items() if name != "seconds"}
    return value


def _rows(folder: Path) -> Path:
    """Some small architectures with made-up accuracies."""
    space, rng = spaces.get("nano-gpt2"), random.Random(0)
    archs = sorted((space.sample(rng) for _ in range(60)), key=space.parameters)[:14]
    rows = [{**space.to_json(arch), "accuracy": rng.gauss(0, 1)} for arch in archs]
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _preferred(folder: Path) -> Path:
    """Two architectures to prefer, which the usual selection does not give."""
    space = spaces.get("nano-autoformer")
    path = folder / "preferred.json"
    archs = [space.sample(random.Random(seed)) for seed in range(2)]
    path.write_text(json.dumps([space.to_json(arch) for arch in archs]))
    return path


def _weights(folder: Path) -> Path:
    """The weights of a supernet that was drawn with another seed."""
    space: Any = spaces.get("nano-autoformer")
    path = folder / "weights.safetensors"
    weights.write(path, space.supernet(5).largest.state_dict(), {"space": space.name})
    return path


def _configurations(folder: Path) -> Path:
    path = folder / "small.yaml"
    path.write_text(
        "model_type: gpt2\nfields: {vocab_size: 64, n_positions: 16}\n"
        "search: {n_layer: [1, 2, 3], n_embd: [16, 32], n_head: [2, 4]}\nbatch: [2, 8]\n"
    )
    return path


def _formula(folder: Path) -> Path:
    path = folder / "formula.json"
    path.write_text(json.dumps({"formula": "mul(sum(width), sqrt(parameters))", "name": "mine"}))
    return path


def _text(folder: Path) -> Path:
    path = folder / "words.txt"
    path.write_text(SENTENCE)
    return path


FILES = {
    "COLUMNS": write_csv,
    "FORMULA": _formula,
    "TEXT": _text,
    "TOKENIZER": lambda folder: tokenizer_file(folder / "tokenizer.json"),
    "ROWS": _rows,
    "PREFERRED": _preferred,
    "WEIGHTS": _weights,
    "SPACE": _configurations,
}


@pytest.mark.slow
def test_a_run_without_its_command_says_so(tmp_path: Path) -> None:
    words = ["rank", str(write_csv(tmp_path)), "--target", "accuracy", "--proxy", "cost"]
    out = tmp_path / "run"
    assert command([*words, "--out", str(out), "--format", "json"]) == 0
    config = content(out, layout.CONFIG)
    del config["command"]
    rewrite(out, layout.CONFIG, config)
    run = open_run(out)
    assert run.command is None
    assert commands(run) == [f"lpzero report {out}"]


VERB = '''"""greet: Say hello to somebody."""

from dataclasses import dataclass

from lpzero.options import Whole, argument, option
from lpzero.verbs import Outcome, Screen


@dataclass(frozen=True, kw_only=True)
class Request:
    """Say hello to NAME."""

    name: str = argument("NAME")
    times: int = option(1, "How often.", Whole(1, 9))


def run(request: Request, screen: Screen) -> Outcome:
    """A row per greeting."""
    return Outcome([{"greeting": f"hello {request.name}"} for _ in range(request.times)])
'''


def test_a_verb_is_one_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "greet.py").write_text(VERB)
    monkeypatch.setattr(verbs, "__path__", [*verbs.__path__, str(tmp_path)])
    verbs.commands.cache_clear()
    try:
        assert command(["--help"]) == 0
        assert re.search(r"greet +Say hello to somebody\.", capsys.readouterr().out)
        assert command(["greet", "you", "--times", "2", "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out) == [{"greeting": "hello you"}] * 2
        assert command(["greet", "you", "--times", "10"]) == 2
        assert "10 is not in the range" in capsys.readouterr().err
    finally:
        sys.modules.pop("lpzero.verbs.greet", None)
        verbs.commands.cache_clear()
