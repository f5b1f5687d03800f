"""`lpzero train --supernet`, `lpzero specialise` and the evaluator, as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lpzero.cli.main import run
from lpzero.report import write
from lpzero.runs.run import open_run

pytestmark = pytest.mark.slow

SPACE = "nano-autoformer"
QUICK = ["--steps", "4", "--every", "2", "--batch", "8", "--images", "40", "--quiet"]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("one-shot") / "run"
    assert run(["train", "--supernet", SPACE, *QUICK, "--out", str(folder)]) == 0
    return folder


def test_a_selection_of_a_search_is_trained(tmp_path: Path, capsys: Capture) -> None:
    words = ["search", SPACE, "--loop", "prenas", "--margin", "30000", "--quiet"]
    assert run([*words, "--format", "json"]) == 0
    found = capsys.readouterr().out
    path, folder = tmp_path / "preferred.json", tmp_path / "run"
    path.write_text(found)
    words = ["train", "--supernet", SPACE, *QUICK, "--select", str(path), "--out", str(folder)]
    assert run([*words, "--format", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    expected = [entry["arch"] for entry in json.loads(found)["trace"]]
    assert [row["arch"] for row in result["networks"]] == expected
    for row in result["networks"]:
        assert row["test_ci"][0] <= row["test"] <= row["test_ci"][1]
    # The same command finds it finished; with other settings it is refused.
    assert run(words) == 0
    assert run([*words, "--sampler", "uniform"]) == 2
    assert "was started with sampler 'balanced', not 'uniform'" in capsys.readouterr().err


def test_a_network_and_a_page_come_out(trained: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "net.safetensors"
    words = ["specialise", str(trained), "--max-parameters", "90e3", "--out", str(out)]
    capsys.readouterr()
    assert run([*words, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["parameters"] <= 90_000
    assert out.exists()
    page = write(open_run(trained), tmp_path / "page.html").page.read_text()
    assert "nano-autoformer: supernet training" in page
    assert "lpzero train nano-autoformer" in page


@pytest.mark.parametrize(
    "loop",
    [
        ["etas", "--samples", "6", "--iterations", "1", "--mutants", "3"],
        ["random", "--samples", "6", "--evaluations", "2"],
    ],
)
def test_loops_search_the_supernet(trained: Path, loop: list[str], capsys: Capture) -> None:
    capsys.readouterr()
    words = ["search", SPACE, "--proxy", "parameters", "--loop", *loop, "--quiet"]
    assert run([*words, "--evaluator", f"supernet:{trained}", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["evaluator"]["evaluator"] == "supernet"
    assert 0 <= found["best"]["target"] <= 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "nano-gpt2", "--sampler", "uniform"], "--sampler is for --supernet"),
        (["train", "--supernet", "flexibert"], "space flexibert has no supernet"),
        (["train", "--supernet", SPACE, "--dataset", "text"], "reads images, and dataset text"),
        (["train", "--supernet", SPACE, "--weights", "none.pth"], "none.pth does not exist"),
        (["specialise", "nowhere", "--out", "x.safetensors"], "nowhere is not a directory"),
        (
            ["search", SPACE, "--loop", "random", "--evaluator", "supernet:nowhere"],
            "nowhere is not a directory",
        ),
    ],
)
def test_bad_input_is_one_line(words: list[str], message: str, capsys: Capture) -> None:
    assert run(words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error
