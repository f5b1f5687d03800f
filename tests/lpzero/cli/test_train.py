"""`lpzero train`: a nano table in a run's directory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lpzero.cli.main import run
from lpzero.parallel import Workers, stream
from lpzero.runs import layout
from lpzero.runs.run import open_run
from spaces.training.recipes import Plan

pytestmark = pytest.mark.slow


def test_a_small_table_is_trained_and_its_directory_can_be_opened(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "build"

    def train(plan: Plan, index: int, seed: int) -> dict[str, float]:
        """The line of a training; tests/lpzero/training has real ones."""
        steps = plan.recipe.steps
        return {"index": index, "seed": seed, "target": index, "steps": steps, "seconds": 0.5}

    monkeypatch.setattr("lpzero.training.table_build.train_one", train)
    command = ["train", "nano-gpt2", "--n", "4", "--steps", "1", "--out", str(out), "--quiet"]
    assert run([*command, "--format", "json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["n"] == 4
    rows = json.loads(Path(printed["table"]).read_text())["rows"]
    assert [row["runs"][0]["steps"] for row in rows] == [1] * 4
    found = open_run(out)
    assert (found.kind, found.remarks) == ("table build", [])
    (out / layout.TABLE).unlink()
    assert "lpzero train nano-gpt2" in open_run(out).remarks[0]
    assert run(command) == 0
    assert str(out / layout.TABLE) in capsys.readouterr().out


def test_an_unknown_space_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["train", "nano-gtp2"]) == 2
    assert "did you mean 'nano-gpt2'" in capsys.readouterr().err


OWN = """
import lpzero
from tests.spaces.own.small_space import CHOICES, Model


def train(arch, seed):
    if arch.width == 16 and arch.layers == 3 and arch.activation == "tanh":
        return float("inf")
    return arch.width * arch.layers + 0.01 * sum(layer.ffn for layer in arch.per_layer) + 0.1 * seed


def fail(arch, seed):
    raise OSError("no disk")


named = dict(build=Model, batch=(2, 6))
SPACE = lpzero.space(CHOICES, name="trained", train=train, target="planted", **named)
UNTRAINED = lpzero.space(CHOICES, name="untrained", **named)
FAILING = lpzero.space(CHOICES, name="failing", train=fail, **named)
TEXT = lpzero.space(CHOICES, name="texts", train=lambda arch, seed: "good", **named)
"""


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # Workers are kept between runs: these were started in another working folder.
    assert dict(stream(abs, [-1, -2], Workers(2))) == {0: 1, 1: 2}
    (tmp_path / "trained_space.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_space_of_ones_own_is_trained_into_a_table_that_every_verb_reads(
    own: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", "trained_space.py:SPACE", "--n", "24", "--seeds", "2", "--quiet"]
    assert run([*words, "--out", "my-table.json"]) == 0
    table = json.loads((own / "my-table.json").read_text())
    assert len(table["rows"]) + len({json.dumps(f["arch"]) for f in table["failures"]}) == 24
    assert table["failures"][0]["failure"] == "the target is inf"
    assert table["target"] == "planted"
    assert table["noise"]["rho_between_targets"] == 1.0
    for row in table["rows"]:
        expected = row["arch"]["width"] * row["arch"]["layers"] + 0.01 * sum(row["arch"]["ffn"])
        assert row["target"] == pytest.approx(expected + 0.05)  # the mean of seeds 0 and 1
        assert [one["seed"] for one in row["runs"]][:2] == [0, 1]
    assert len(table["rows"][0]["runs"]) == 4
    journal = (own / "my-table.run" / "journal.jsonl").read_bytes()
    (own / "my-table.run" / "journal.jsonl").write_bytes(journal[: len(journal) // 2])
    assert run([*words, "--out", "my-table.json", "--jobs", "2"]) == 0
    again = json.loads((own / "my-table.json").read_text())
    assert [row["target"] for row in again["rows"]] == [row["target"] for row in table["rows"]]
    assert run([*words[:-3], "--seeds", "3", "--out", "my-table.json"]) == 2
    capsys.readouterr()
    assert run(["rank", "my-table.json", "--proxy", "parameters", "--format", "json"]) == 0
    [found] = json.loads(capsys.readouterr().out)
    assert found["n"] == len(table["rows"])
    small = ["--samples", "8", "--mutants", "4", "--iterations", "1", "--quiet", "--format", "json"]
    where = ["search", "trained_space.py:SPACE", "--proxy", "depth", *small]
    assert run([*where, "--table", "my-table.json"]) == 0
    assert json.loads(capsys.readouterr().out)["evaluator"]["table"] == "my-table"
    assert run([*where, "--evaluator", "training"]) == 0
    best = json.loads(capsys.readouterr().out)["best"]
    assert best["target"] == pytest.approx(
        best["width"] * best["depth"] + 0.01 * sum(best["arch"]["ffn"])
    )


@pytest.mark.parametrize(
    ("words", "message", "code"),
    [
        (["UNTRAINED"], "has no training", 2),
        (["SPACE", "--steps", "3"], "--steps is for nano tables", 2),
        (["SPACE", "--n", "99999"], "fewer than the 99,999 to train", 2),
        (["FAILING"], "OSError: no disk", 1),
        (["TEXT"], "expected a number", 1),
    ],
)
def test_what_cannot_be_trained_is_one_line(
    own: Path, capsys: pytest.CaptureFixture[str], words: list[str], message: str, code: int
) -> None:
    name, *more = words
    assert run(["train", f"trained_space.py:{name}", *more, "--quiet", "--out", "t.json"]) == code
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
