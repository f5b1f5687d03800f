"""Columns without networks on the command line: from a file to a formula, and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lpzero.cli import main as cli
from tests.lpzero.column_file import write_csv

SMALL = ["--population", "20", "--offspring", "10", "--generations", "2", "--quiet"]
SMALL += ["--splits", "2", "--permutations", "2"]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run(list(arguments))
    return code, *capsys.readouterr()


def discovered(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> tuple[str, str, dict[str, object]]:
    path, out = str(write_csv(folder)), str(folder / "run")
    asked = ("discover", path, "--target", "accuracy", "--columns-only", "--out", out)
    code, text, _ = run(capsys, *asked, "--format", "json", *SMALL)
    assert code == 0
    return path, out, json.loads(text)


@pytest.mark.slow
def test_a_file_is_discovered_ranked_exported_and_resumed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path, out, result = discovered(capsys, tmp_path)
    formula = result["best"]["formula"]  # type: ignore[index]
    asked = ("rank", path, "--target", "accuracy", "--format", "json")
    code, text, _ = run(capsys, *asked, "--proxy", out, "--proxy", "params", "--proxy", formula)
    assert code == 0
    found, again, single = json.loads(text)
    assert found["rho"] == again["rho"] > single["rho"]
    assert (found["in_sample"], single["proxy"]) == (True, "params_column")
    assert found["test"]["rho"] == result["best"]["rho"]["test"]  # type: ignore[index]
    for form in ("json", "latex", "sympy", "python", "csv"):
        target = str(tmp_path / f"best.{form}")
        assert run(capsys, "export", out, "--to", form, "--out", target)[0] == 0
    exported = str(tmp_path / "best.json")
    code, text, _ = run(capsys, *asked, "--proxy", exported)
    assert json.loads(text)[0]["rho"] == found["rho"]
    resume = ("--resume", "--permutations", "2", "--splits", "2", "--format", "json")
    code, text, _ = run(capsys, "discover", "--out", out, *resume)
    assert json.loads(text)["best"] == result["best"]


@pytest.mark.slow
def test_the_page_shows_the_columns_and_the_command_that_repeats_the_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path, out, _ = discovered(capsys, tmp_path)
    assert run(capsys, "report", out)[0] == 0
    page = Path(out, "report", "index.html").read_text(encoding="utf-8")
    assert "model_size" in page
    command = page[page.index(f"lpzero discover {path} ") :].split("<")[0]
    assert "--target accuracy" in command
    assert "--columns-only" in command


def test_every_column_is_ranked_without_a_proxy(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, text, _ = run(capsys, "rank", str(write_csv(tmp_path)), "--target", "accuracy")
    assert code == 0
    assert "metrics: accuracy, 4 columns, no networks" in text
    assert all(name in text for name in ("model_size", "params_column", "cost", "change"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["discover", "{csv}", "--out", "{out}"], "use --target COLUMN"),
        (["discover", "{csv}", "--columns-only", "--out", "{out}"], "use --target COLUMN"),
        (["discover", "{csv}", "--columns-only", "--target", "acc", "--out", "{out}"],
         "there is no column 'acc' (--target); the file has: arch, Model Size, params"),
        (["discover", "{csv}", "--columns-only", "--target", "accuracy", "--columns", "speed",
          "--out", "{out}"], "table metrics has no column 'speed'"),
        (["discover", "none.csv", "--columns-only", "--target", "x", "--out", "{out}"],
         "none.csv: cannot be read"),
        (["discover", "nano-gpt2", "--columns-only", "--out", "{out}"],
         "no column: name some with --columns or --terms-from"),
        (["discover", "nano-gpt2", "--columns", "latency", "--out", "{out}"],
         "table nano-gpt2 has no column 'latency'"),
        (["discover", "nano-gpt2", "--terms-from", "snipp", "--out", "{out}", "--columns-only"],
         "did you mean 'snip'"),
        (["rank", "{csv}", "--target", "accuracy", "--proxy", "sum(l1(W))"], "has none"),
        (["rank", "{csv}", "--target", "accuracy", "--proxy", "snip"], "has no column 'snip'"),
        (["rank", "{csv}", "--target", "accuracy", "--proxy", "mul(cost, speed)"],
         "the formula names column 'speed'"),
        (["rank", "{csv}", "--target", "accuracy", "--proxy", "log(cost)"], "cannot be scored"),
        (["rank", "{csv}"], "use --target COLUMN"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_code_two(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    places = {"csv": str(write_csv(tmp_path)), "out": str(tmp_path / "run")}
    code, text, errors = run(capsys, *(word.format(**places) for word in arguments))
    assert (code, text) == (2, "")
    assert message in errors
    assert "Traceback" not in errors
    assert len([line for line in errors.splitlines() if "rror" in line]) == 1


@pytest.mark.slow
def test_too_few_columns_are_named_and_no_statistics_are_blamed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "one.csv"
    path.write_text("x,accuracy\n" + "".join(f"{-i},{i + i % 3}\n" for i in range(60)))
    asked = ("discover", str(path), "--target", "accuracy", "--columns-only")
    code, _, err = run(capsys, *asked, "--out", str(tmp_path / "out"))
    assert code == 2
    assert "too few that can be combined: signed_log(x)" in err
    assert "statistics" not in err


def test_scores_next_to_zero_are_ranked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tiny.csv"
    path.write_text("x,accuracy\n" + "".join(f"{i + 1}e-312,{i}\n" for i in range(40)))
    asked = ("rank", str(path), "--target", "accuracy", "--proxy", "x", "--format", "json")
    code, out, _ = run(capsys, *asked)
    assert code == 0
    assert json.loads(out)[0]["rho"] == pytest.approx(1.0)
