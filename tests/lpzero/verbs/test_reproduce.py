"""Every kind of run prints the command that makes it again; a verb is one file."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from lpzero import verbs
from lpzero.cli.main import run as command
from lpzero.report import style
from lpzero.report.provenance import commands
from lpzero.runs import layout
from lpzero.runs.run import open_run
from tests.lpzero.column_file import write_csv

# The smallest run of each kind, with options that change what is found; FILE is a file of columns.
SMALLEST = {
    "campaign": "discover FILE --target accuracy --smaller-is-better --columns-only --quiet"
    " --generations 1 --population 10 --offspring 5 --permutations 2 --splits 0 --split-seed 2",
    "comparison": "search nano-gpt2 --compare --loop random --proxy depth --samples 9 --seeds 2"
    " --max-parameters 3e5 --quiet",
    "exhaustive run": "exhaust nano-gpt2 --permutations 0 --top 3 --by within --split-seed 1",
    "ranking": "rank FILE --target accuracy --smaller-is-better --proxy cost",
    "search": "search nano-gpt2 --loop random --proxy depth --samples 9 --evaluator proxy --seed 3"
    " --quiet",
    "supernet training": "train nano-autoformer --supernet --steps 1 --batch 2 --images 2"
    " --select PREFERRED --quiet",
    "table build": "train nano-gpt2 --n 3 --seeds 1 --steps 1 --quiet",
}
_SLOW = {"exhaustive run", "supernet training", "table build", "comparison"}


def test_every_kind_of_run_has_a_smallest_one() -> None:
    assert set(SMALLEST) == set(verbs.kinds())


@pytest.mark.parametrize(
    "kind",
    [pytest.param(kind, marks=[pytest.mark.slow] * (kind in _SLOW)) for kind in SMALLEST],
)
def test_the_printed_command_makes_the_same_run(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(style, "encode", lambda figure, form: b"<svg></svg>")
    files = {"FILE": str(write_csv(tmp_path)), "PREFERRED": str(_preferred(tmp_path))}
    words = [files.get(word, word) for word in SMALLEST[kind].split()]
    first, second = tmp_path / "first", tmp_path / "second"
    assert command([*words, "--out", str(first), "--jobs", "1", "--format", "json"]) == 0
    stored = open_run(first)
    assert stored.kind == kind
    printed = shlex.split(commands(stored)[0])
    assert printed[0] == "lpzero"
    assert "--jobs" not in printed, "it does not change the result"
    printed[printed.index("--out") + 1] = str(second)
    assert command([*printed[1:], "--format", "json"]) == 0
    assert (second / layout.COMMAND).read_bytes() == (first / layout.COMMAND).read_bytes()
    name = layout.RESULT if kind != "table build" else layout.TABLE
    assert _result(second / name) == _result(first / name)


def _result(path: Path) -> Any:
    """What a run gives, without the seconds that its trainings took."""
    found = json.loads(path.read_text())
    for row in found.get("rows", []):
        row.pop("seconds", None)
    return found


def _preferred(folder: Path) -> Path:
    """A file with two architectures to prefer, which the usual selection does not give."""
    import random

    import spaces

    space = spaces.get("nano-autoformer")
    archs = [space.to_json(space.sample(random.Random(seed))) for seed in range(2)]
    path = folder / "preferred.json"
    path.write_text(json.dumps(archs))
    return path


def test_a_run_without_its_command_says_so(tmp_path: Path) -> None:
    words = ["rank", str(write_csv(tmp_path)), "--target", "accuracy", "--proxy", "cost"]
    out = tmp_path / "run"
    assert command([*words, "--out", str(out), "--format", "json"]) == 0
    (out / layout.COMMAND).unlink()
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
        assert "greet       Say hello to somebody." in capsys.readouterr().out
        assert command(["greet", "you", "--times", "2", "--format", "json"]) == 0
        assert json.loads(capsys.readouterr().out) == [{"greeting": "hello you"}] * 2
        assert command(["greet", "you", "--times", "10"]) == 2
        assert "10 is not in the range" in capsys.readouterr().err
    finally:
        sys.modules.pop("lpzero.verbs.greet", None)
        verbs.commands.cache_clear()
