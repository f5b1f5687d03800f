"""The leaderboard: the rows of rank, going on where it was killed, files of strangers."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from lpzero.cli.main import run as command
from lpzero.proxies import Context, get
from lpzero.proxies.ranking import Ranking, rank
from lpzero.runs import layout
from lpzero.runs.run import line_of, open_run
from lpzero.verbs import leaderboard
from spaces import tables
from spaces.tables import Table
from tests.lpzero.report.test_report import read

ROOT = Path(__file__).parents[3]
SCHEMA = json.loads((ROOT / "docs" / "leaderboard.schema.json").read_text())
LOAD = tables.load
TABLES, PROXIES = ("nano-gpt2", "nano-rnn"), ("depth", "sept", "snip")
WORDS = ["leaderboard", *TABLES, "--quiet", *(w for n in PROXIES for w in ("--proxy", n))]
N = 8


def few(name: str, data: Any = None, space: Any = None) -> Table:
    """Some rows of a table; of the recurrent cells the smallest."""
    table = LOAD(name, data, space)
    order = sorted(range(len(table)), key=lambda row: table.space.flops(table.archs[row]))
    return table.only(order[:N] if name == "nano-rnn" else range(0, 5 * N, 5))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _few_rows(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "load", few)
    monkeypatch.setenv("LPZERO_CACHE", str(cache))
    monkeypatch.chdir(tmp_path)


def board(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    """What the command prints as JSON."""
    capsys.readouterr()
    assert command([*WORDS, *words, "--format", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def cell(found: dict[str, Any], table: str, proxy: str) -> dict[str, Any]:
    [one] = [c for c in found["cells"] if (c["table"], c["proxy"]) == (table, proxy)]
    return dict(one)


@pytest.mark.slow
def test_its_cells_are_the_rows_of_rank_and_the_rest_is_missing(
    capsys: pytest.CaptureFixture[str], cache: Path
) -> None:
    found = board(capsys)
    jsonschema.Draft202012Validator(SCHEMA).validate(found)
    jsonschema.validate(json.loads((leaderboard._OUT / layout.RESULT).read_text()), SCHEMA)
    for name in TABLES:
        ranking = Ranking(Context(folder=cache))
        for row in rank(few(name), [get(proxy) for proxy in PROXIES], ranking):
            own = cell(found, name, row["proxy"])
            assert own["state"] == "complete"
            shared = row.keys() & own.keys()
            assert len(shared) > 12
            assert {key: row[key] for key in shared} == {key: own[key] for key in shared}
    missing = cell(found, "nano-gpt2", "grasp")
    assert (missing["state"], missing["left"], missing["n"]) == ("missing", N, 0)
    refused = cell(found, "nano-rnn", "softmax-confidence")
    assert refused["failures"] == {"the networks of nano-rnn have no S": N}
    counts = [c["state"] for c in found["cells"]]
    assert found["states"] == {state: counts.count(state) for state in found["states"]}
    assert len(counts) == len(found["tables"]) * len(found["proxies"])
    [means] = found["mean_ranks"]
    assert {row["proxy"] for row in means["rows"]} == set(PROXIES)
    assert means["left_out"]["grasp"] == sorted(TABLES)
    assert cell(found, "nano-gpt2", "best count")["in_sample"]
    text = read(leaderboard._OUT / "report" / "index.html").text
    assert "nano-gpt2: minus validation loss, 8 rows, 6 proxies" in text
    assert f"{found['states']['missing']:,} missing" in text
    assert line_of(open_run(leaderboard._OUT).config).table == "nano-rnn, nano-gpt2"


KILLED = """
import os, signal, sys
from lpzero.runs.journal import Journal
from lpzero.cli.main import run
from spaces import tables
from tests.lpzero.verbs.test_leaderboard import few

tables.load, sync = few, Journal.sync

def killed(journal):
    sync(journal)
    if len(journal) > int(sys.argv[1]):
        os.kill(os.getpid(), signal.SIGKILL)

Journal.sync = killed
run(sys.argv[2:])
"""


@pytest.mark.slow
@pytest.mark.usefixtures("_searched_whole")
def test_a_killed_board_goes_on_to_the_same_bytes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    for folder in (killed, whole):
        folder.mkdir()
        monkeypatch.chdir(folder)
        if folder == killed:
            words = [sys.executable, "-c", KILLED, "7", *WORDS]
            monkeypatch.setenv("PYTHONPATH", str(ROOT))
            assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
            assert not (leaderboard._OUT / layout.RESULT).exists()
            assert "not finished" in open_run(leaderboard._OUT).remarks[0]
            assert line_of(open_run(leaderboard._OUT).config).progress == "8 cells"
        board(capsys)
    names = [path.relative_to(whole) for path in whole.rglob("*") if path.is_file()]
    assert {layout.JOURNAL, layout.RESULT, "index.html"} <= {name.name for name in names}
    for name in names:
        if name.name not in (layout.TIMING, layout.LOCK):
            assert (killed / name).read_bytes() == (whole / name).read_bytes(), name


@pytest.mark.slow
def test_what_the_time_did_not_reach_is_partial_and_completed_later(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[float] = []

    def over(start: float, limit: float) -> bool:
        asked.append(limit)
        return len(asked) > limit

    monkeypatch.setattr(leaderboard, "_over", over)
    monkeypatch.setenv("LPZERO_CACHE", str(tmp_path / "empty"))
    found = board(capsys, "--time-limit", "9")
    part = cell(found, "nano-rnn", "snip")
    assert part["state"] == "partial"
    assert 1 < part["n"] < N == part["rows"]
    assert part["left"] == N - part["n"]
    assert cell(found, "nano-gpt2", "snip")["state"] == "missing"
    assert "snip" not in {row["proxy"] for means in found["mean_ranks"] for row in means["rows"]}
    found = board(capsys)
    assert [cell(found, name, "snip")["state"] for name in TABLES] == ["complete"] * 2


@pytest.mark.slow
def test_a_strangers_formula_stands_beside_them(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    formula = "mul(square(embedding-rank), sum(width))"
    (tmp_path / "mine.json").write_text(json.dumps({"formula": formula, "name": "mine"}))
    found = board(capsys, "--proxy", "mine", "--add", "mine.json")
    assert cell(found, "nano-gpt2", "mine")["state"] == "complete"
    [about] = [entry for entry in found["proxies"] if entry["proxy"] == "mine"]
    assert (about["family"], about["definition"]) == (leaderboard.ADDED, formula)
    # Without it the board is as before: what is kept is the journal's.
    assert "mine" not in {entry["proxy"] for entry in board(capsys)["proxies"]}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"formula": "__import__(1)"}', "is called '__import__'"),
        ('{"format": "lpzero-predictor", "schema": 1, "space": "evil.py:SPACE"}', "mine.json"),
        ('{"formula": "sum(width)", "name": "depth"}', "there is a proxy depth already"),
        ("[" * 100_000, "mine.json"),
    ],
)
def test_a_hostile_file_is_one_line(
    text: str, said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "mine.json").write_text(text)
    assert command([*WORDS, "--add", "mine.json"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert said in printed.err
    assert not leaderboard._OUT.exists()


def test_another_seed_is_another_board(capsys: pytest.CaptureFixture[str]) -> None:
    few_words = ["leaderboard", "nano-gpt2", "--proxy", "depth", "--quiet", "--out", "board"]
    assert command([*few_words, "--format", "json"]) == 0
    assert command([*few_words, "--weights-seed", "1"]) == 2
    assert "was started with seed 0, not 1" in capsys.readouterr().err
