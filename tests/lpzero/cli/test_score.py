"""`lpzero score`: its table, its JSON, and one line for whatever is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lpzero.cli.main import run
from tests.lpzero.hf.families import FAMILIES

pytest.importorskip("transformers", reason="the extra lpzero[hf] is not installed")

MODEL = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 8)
        layer = lambda: nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
        self.blocks = nn.ModuleList([layer(), layer()])

    def forward(self, tokens):
        x = self.words(tokens)
        for block in self.blocks:
            x = x + block(x)
        return x

def make():
    torch.manual_seed(0)
    return Model()

NUMBER = 3

def wrong(output, batch):
    return output
"""


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(FAMILIES["gpt2"]))
    return str(path)


@pytest.fixture
def module(tmp_path: Path) -> str:
    path = tmp_path / "my_model.py"
    path.write_text(MODEL)
    return str(path)


def scored(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert run(["score", *arguments, "--format", "json", "--device", "cpu"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_a_configuration_is_scored(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["snip", "ntk-condition", "dss++", "sum(mul(abs(G), abs(W)))"]
    options = [word for text in asked for word in ("--proxy", text)]
    rows = scored(capsys, "--hf", config, *options)
    assert [row["proxy"] for row in rows] == asked
    assert rows[0]["score"] > 0 > rows[1]["score"]
    assert rows[2]["score"] is None
    assert "ranks models" in rows[2]["reason"]
    assert scored(capsys, "--hf", config, *options, "--seed", "1")[0] != rows[0]
    assert run(["score", "--hf", config, *options, "--device", "cpu"]) == 0
    shown = capsys.readouterr()
    assert "ntk-condition" in shown.out
    assert "not scored: dss++: " in shown.err


@pytest.mark.slow
def test_the_layout_that_is_shown_can_be_given(
    config: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["score", "--hf", config, "--show-layout", "--device", "cpu"]) == 0
    layout = tmp_path / "layout.json"
    layout.write_text(capsys.readouterr().out)
    asked = ("--hf", config, "--proxy", "fisher", "--proxy", "mean(sub(abs(H), abs(S)))")
    given, found = (
        [row["score"] for row in scored(capsys, *asked, *more)]
        for more in (("--layout", str(layout)), ())
    )
    assert given == found


def test_a_model_of_a_file_is_scored(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = scored(capsys, f"{module}:make", "--proxy", "snip", "--batch", "4", "--length", "6")
    assert rows[0]["score"] > 0


def broken(text: str) -> dict[str, str]:
    return {"config.json": text}


@pytest.mark.parametrize(
    ("files", "arguments", "reason"),
    [
        ({}, ["--hf", "none.json"], "the file is missing"),
        (broken("{"), ["--hf", "config.json"], "has broken or truncated JSON"),
        (broken("[1]"), ["--hf", "config.json"], "expected an object"),
        (broken('{"model_type": "gtp2"}'), ["--hf", "config.json"], "did you mean gpt2"),
        (
            broken('{"model_type": "gpt2", "auto_map": {"AutoModel": "a.B"}}'),
            ["--hf", "config.json"],
            "asks for code",
        ),
        (
            {"layout.json": '{"A": ["mlp.none"]}'},
            ["--hf", "gpt2.json", "--layout", "layout.json"],
            "reads A at 'mlp.none'",
        ),
        (
            {"layout.json": '{"B": []}'},
            ["--hf", "gpt2.json", "--layout", "layout.json"],
            "a layout has the fields",
        ),
        ({}, ["--hf", "gpt2.json", "--proxy", "snipp"], "did you mean 'snip'"),
        ({}, ["--hf", "gpt2.json", "--length", "99"], "reads 32 tokens"),
        ({}, ["--hf", "gpt2.json", "--loss", "best"], "loss 'best' is unknown"),
        ({}, ["--hf", "gpt2.json", "--loss", "my_model.py:wrong", "--proxy", "snip"], "the loss"),
        ({}, ["my_model.py:NUMBER"], "expected a torch module"),
        ({}, ["my_model.py:Modle"], "unknown object in my_model.py 'Modle'"),
        ({}, ["my_model.py:make", "--proxy", "softmax-confidence"], "no attention probabilities"),
        ({}, [], "no model given"),
    ],
)
def test_bad_input_is_one_line_and_code_two(
    files: dict[str, str],
    arguments: list[str],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "gpt2.json": json.dumps(FAMILIES["gpt2"]),
        "my_model.py": MODEL,
        **files,
    }.items():
        (tmp_path / name).write_text(text)
    assert run(["score", *arguments, "--device", "cpu"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert reason in shown.err
    assert shown.err.startswith("error: ")
    assert shown.err.count("\n") == 1
