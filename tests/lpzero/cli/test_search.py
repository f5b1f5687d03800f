"""`lpzero search` from the outside."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lpzero.cli import output
from lpzero.cli.main import run
from tests.lpzero.sealed_runs import content, rewrite

QUICK = ["--loop", "etas", "--samples", "20", "--mutants", "10", "--iterations", "2"]


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = run(["search", *words])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.slow
def test_json_has_the_best_and_the_trace(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "nano-gpt2", *QUICK, "--proxy", "parameters", "--format", "json")
    assert code == 0
    result: dict[str, Any] = json.loads(out)
    assert result["best"].keys() >= {"arch", "score", "parameters", "flops", "target"}
    assert result["best"]["score"] == result["best"]["parameters"]
    assert result["best"]["target"] == max(entry["target"] for entry in result["trace"])
    assert [entry["evaluations"] for entry in result["trace"]] == list(range(1, 10))
    assert result["evaluator"]["rho"] > 0.9
    assert "etas 2/2" in err


@pytest.mark.slow
def test_the_table_shows_architecture_size_and_trace(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = call(capsys, "nano-gpt2", *QUICK, "--proxy", "depth", "--quiet")
    assert code == 0
    assert json.loads(out.splitlines()[0]).keys() >= {"d_model", "n_head"}
    assert "decoder parameters" in out
    assert "cross-validated rmse" in out
    assert err == ""


@pytest.mark.slow
def test_a_search_is_resumed_by_its_directory_alone(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = str(tmp_path / "kept")
    first = call(
        capsys,
        "nano-gpt2",
        *QUICK,
        "--proxy",
        "depth",
        "--seed",
        "4",
        "--max-flops",
        "5e7",
        "--out",
        out,
        "--format",
        "json",
    )
    again = call(capsys, "--out", out, "--resume", "--format", "json")
    results = [json.loads(text) for _, text, _ in (first, again)]
    for result in results:
        result.pop("seconds")
    assert results[0] == results[1]
    code, _, err = call(capsys, "--out", out, "--resume", "--seed", "5")
    assert code == 2
    assert "started with seed 4, not 5" in err
    code, _, err = call(capsys, "--out", out, "--resume", "--loop", "random")
    assert code == 2
    assert "started with loop etas, not random" in err


@pytest.mark.parametrize("wrong", [{"more": 1}, {"constants": {"samples": "many"}}, {"loop": 3}])
def test_a_broken_request_is_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, wrong: dict[str, Any]
) -> None:
    out = tmp_path / "kept"
    assert call(capsys, "nano-gpt2", *QUICK, "--proxy", "depth", "--out", str(out))[0] == 0
    config = content(out, "config.json")
    config["request"] |= wrong
    rewrite(out, "config.json", config)
    code, text, err = call(capsys, "--out", str(out), "--resume")
    assert (code, text) == (2, "")
    assert err.count("\n") == 1
    assert run(["export", str(out), "--to", "json"]) == 2
    assert "is a search, which has no formulas" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nano-gpt2", "--loop", "etas", "--proxy", "paramters"], "did you mean 'parameters'"),
        (["nano-gpt2", "--loop", "eta", "--proxy", "depth"], "did you mean 'etas'"),
        (["nano-gpt", "--loop", "etas", "--proxy", "depth"], "did you mean 'nano-gpt2'"),
        (["nano-gpt2", "--loop", "trazor", "--proxy", "depth"], "no values of single blocks"),
        (["nano-gpt2", *QUICK, "--proxy", "depth", "--evaluator", "oracle"], "unknown evaluator"),
        (["nano-gpt2", *QUICK, "--proxy", "depth", "--max-parameters", "7"], "none of 10,000"),
        (["nano-gpt2", *QUICK, "--proxy", "depth", "--max-latency", "0"], "at most 0 latency"),
        (["nano-gpt2", "--loop", "trazor", "--proxy", "snip", "--gamma1", "nan"], "gamma1 is nan"),
        (["nano-gpt2", *QUICK, "--proxy", "depth", "--steps", "7"], "loop etas has no steps"),
        (["nano-gpt2", *QUICK, "--proxy", "none", "--evaluator", "proxy"], "name one with --proxy"),
        (["nano-gpt2", *QUICK, "--evaluator", "table", "--beyond-table"], "--beyond-table is for"),
        (["nano-gpt2", *QUICK, "--compare", "--time-limit", "9"], "--time-limit is for one search"),
        (["nano-gpt2", *QUICK, "--proxy", "depth", "--table", "flexibert"], "flexibert"),
        (
            ["nano-gpt2", *QUICK, "--proxy", "depth", "--table", "nano-flexibert"],
            "its fields are those of another family",
        ),
        (["nano-gpt2", *QUICK, "--proxy", "sum(mul(G, W)"], "at character 13"),
        (["nano-gpt2", *QUICK, "--proxy", "missing.json"], "no file missing.json"),
        (["nano-gpt2", *QUICK, "--proxy", "runs/missing"], "no file or directory runs/missing"),
        (["nano-gpt2", *QUICK, "--proxy", "depth", "--resume"], "--resume needs --out"),
        (["--proxy", "depth"], "no space given"),
        (["nano-gpt2", *QUICK, "--proxy", "depth", "--proxy", "flops"], "--compare"),
        (["gpt2", *QUICK, "--proxy", "depth", "--evaluator", "training"], "no training recipe"),
        (["nano-gpt2", *QUICK, "--proxy", "depth", "--training-steps", "9"], "does not train"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    code, out, err = call(capsys, *words)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_a_directory_with_something_else_is_left_alone(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    words = ["nano-gpt2", *QUICK, "--proxy", "depth", "--out", str(tmp_path)]
    for more, kind in (([], "search"), (["--compare"], "comparison")):
        code, _, err = call(capsys, *words, *more)
        assert code == 2
        assert f"contains letter.txt but no {kind}" in err
    assert {path.name for path in tmp_path.iterdir()} <= {"letter.txt", "lock"}


@pytest.mark.parametrize(
    ("score", "shown"), [(7.90869e-4, "0.000790869"), (4442596.951, "4442597")]
)
def test_scores_of_any_size_are_told_apart(
    capsys: pytest.CaptureFixture[str], score: float, shown: str
) -> None:
    output.print_rows([{"score": score, "n": 0.5}], "table", significant=("score",))
    assert capsys.readouterr().out.split() == ["score", "n", shown, "0.500"]


@pytest.mark.slow
def test_a_space_alone_is_enough(capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--samples", "40", "--mutants", "5", "--iterations", "1"]
    code, out, err = call(capsys, "nano-flexibert", *sizes, "--format", "json")
    assert code == 0
    result = json.loads(out)
    assert (result["loop"], result["proxy"]) == ("etas", "engine-encoder")
    assert result["evaluator"]["evaluator"] == "surrogate"
    assert result["inside_table"]
    assert result["best"]["outside_table"] == []
    lines = err.splitlines()
    assert lines[0].startswith("surrogate of 96 rows of nano-flexibert, in ")
    assert "cross-validated rho 0.9" in lines[0]
    assert lines[1].startswith("about ")
    assert ": 45 networks at " in lines[1]


def test_a_search_that_its_time_limit_ends_is_continued(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["nano-gpt2", *QUICK, "--proxy", "depth", "--out"]
    assert call(capsys, *words, str(tmp_path / "whole"))[0] == 0
    code, out, err = call(capsys, *words, str(tmp_path / "cut"), "--time-limit", "1e-9")
    assert code == 0
    assert "depth" in out
    assert f"continue with: lpzero search --out {tmp_path / 'cut'} --resume" in err
    assert content(tmp_path / "cut", "result.json")["stopped_by"] == "time limit"
    facts = {name: (tmp_path / name / "journal.jsonl").read_bytes() for name in ("cut", "whole")}
    assert facts["whole"].startswith(facts["cut"])
    assert len(facts["cut"]) < len(facts["whole"])
    # The space may be named again.
    assert call(capsys, "nano-gpt2", "--out", str(tmp_path / "cut"), "--resume")[0] == 0
    for name in ("journal.jsonl", "result.json", "trace.csv"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
