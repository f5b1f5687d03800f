"""`lpzero discover`: the contract of its output, its errors and its interruption."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lpzero.cli import main as cli
from lpzero.discover import evolution as steps
from lpzero.discover.objective import Objective
from lpzero.errors import InputError
from lpzero.judgement import counters
from lpzero.judgement.rivals import headline
from lpzero.runs import layout
from lpzero.runs.config import read_config
from lpzero.verbs.discover import line
from spaces.tables.table import Table
from tests.lpzero.small_campaign import sketches, table

SMALL = ["--population", "10", "--offspring", "10", "--generations", "3", "--unaries", "1"]
# Where the result is not read: without the search that starts the first population, and the floor.
SHORT = [*SMALL, "--terms", "1", "--permutations", "0"]


@pytest.fixture(autouse=True)
def _made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables by name come from the tests, and no network is run."""

    def load(name: str, data: Any = None, space: Any = None) -> Table:
        names = {"made-up": 40, "small": 12, "tiny": 8, "noise": 40}
        if name not in names:
            raise InputError(f"unknown table {name}")
        made = table(names[name], name)
        if name != "noise":
            return made
        drawn = np.random.default_rng(11).permutation(len(made))
        return replace(made, targets=made.targets[drawn])

    monkeypatch.setattr("lpzero.discover.discovery.load", load)
    monkeypatch.setattr(
        "lpzero.sketches.builder.sketches",
        lambda table, builder: [sketches()[int(name)] for name in table.ids],
    )


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = cli.run(["discover", *arguments])
    return code, *capsys.readouterr()


@pytest.mark.slow
def test_json_keeps_the_contract(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = str(tmp_path / "c")
    code, text, _ = run(capsys, "made-up", "--out", out, "--format", "json", *SMALL)
    assert code == 0
    result = json.loads(text)
    assert set(result["best"]["rho"]) == {"train", "valid", "test"}
    assert isinstance(result["best"]["formula"], str)
    assert all(set(line["rho"]) == {"train", "valid", "test"} for line in result["top"])
    assert result["evaluated"] == 40
    assert all(isinstance(count, int) for count in result["rejected"].values())
    assert result["seconds"] > 0
    assert result["out"] == out
    assert set(result["count"]["rho"]) == {"train", "valid", "test"}
    # Every seed has the same made-up sketches here, so that all scores repeat.
    repeats = {"table": "made-up", "n": 1, "median": 1.0, "least": 1.0}
    assert result["stability"] == pytest.approx(repeats)
    assert result["ensemble"]["members"][0] == result["best"]["formula"]
    assert set(result["ensemble"]["judged"]) == {"made-up"}
    assert result["verdict"].startswith("It ")
    [floor] = result["floor"]
    assert (floor["permutations"], len(floor["fitted"])) == (result["permutations"], 20)
    low, high = result["difference"]["rho_ci"]
    assert low <= result["difference"]["rho"] <= high
    names = {path.name for path in Path(out).iterdir()}
    assert {layout.CONFIG, layout.JOURNAL, layout.CHECKPOINT, layout.HALL, layout.HALL_CSV} <= names


@pytest.mark.slow
def test_of_40_rows_of_noise_it_says_that_nothing_holds(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = str(tmp_path / "c")
    code, _, err = run(capsys, "noise", "--out", out, *SMALL)
    assert code == 0
    assert "warning: nothing holds: the cross-validated rho" in " ".join(err.split())
    result = json.loads((Path(out) / layout.RESULT).read_text())
    assert result["levels"]["chosen"] == "counter"
    assert result["best"]["formula"].lstrip("-") in counters.names()
    assert result["best"]["id"] is None  # fitted to train and valid, not tried by a generation


@pytest.mark.slow
def test_people_see_the_winner_beside_the_counters(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = str(tmp_path / "c")
    code, text, err = run(capsys, "made-up", "--out", out, "--choose", "nested", *SMALL)
    assert code == 0
    result = json.loads((Path(out) / layout.RESULT).read_text())
    first, [floor] = result["differences"][0], result["floor"]
    for word in (
        "formula (chosen by --choose nested): ",
        "level: ",
        "expected on new rows: rho ",
        "test: parameters",
        "in " + out,
        "rho untied",
    ):
        assert word in text
    test = result["best"]["judged"]["made-up"]["test"]
    assert text.startswith(f"{headline(test, first['against'], first['outcome'])}\n")
    assert f"{result['learning']['sentence']}\n" in text
    assert text.endswith(
        f"next: lpzero report {out}\n      lpzero search nano-gpt2 --proxy {out}\n"
    )
    facts = (
        f"{first['share_above']:.0%}",
        "(the best counter on train and valid)",
        "median 1.0000, least 1.0000",
        f"fits {floor['fit']:.3f} [",
        f"tests at {floor['test']:.3f} [",
    )
    for fact in facts:
        assert fact in text
    [line] = [line for line in err.splitlines() if "generation 3 of 3" in line]
    for word in ("train 0.", "valid", "size", "left"):
        assert word in line
    assert len(line) < 80


@pytest.mark.slow
def test_quiet_means_quiet(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    code, _, err = run(capsys, "made-up", "--out", str(tmp_path / "c"), "--quiet", *SHORT)
    assert (code, err) == (0, "")


@pytest.mark.slow
def test_every_option_reaches_the_settings(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "c"
    code, _, err = run(
        capsys,
        "made-up",
        "--out",
        str(out),
        "--preset",
        "paper",
        "--reductions",
        "sum,mean",
        "--chains",
        "up-to",
        "--population",
        "10",
        "--generations",
        "2",
        "--unaries",
        "3",
        "--depth",
        "2",
        "--statistics",
        "A,H,W,G",
        "--forward-only",
        "--objective",
        "rho,partial",
        "--archs",
        "15",
        "--seed",
        "9",
        "--same-statistic",
        "--start",
        "sum(add(W, A))",
        "--start",
        "sum(H)",
        "--crossover",
        "0.6",
        "--mutation",
        "0.7",
        "--choose",
        "valid",
        "--rules",
        "off",
        "--time-limit",
        "60",
        "--split-seed",
        "2",
        "--jobs",
        "2",
        "--random",
        "--offspring",
        "3",
    )
    assert code == 0, err
    config = json.loads((out / layout.CONFIG).read_text())
    settings = config["request"]["settings"]
    assert settings == settings | {
        "method": "random", "population": 10, "generations": 2, "offspring": 3, "unaries": 3,
        "depth": 2, "statistics": ["A", "H", "W"], "objectives": ["rho", "rho_given_params"],
        "archs": 15, "seed": 9, "same_statistic": True, "start": ["sum(add(W, A))", "sum(H)"],
        "rules": [], "crossover": 0.6, "mutation": 0.7, "choose": "valid",
    }  # fmt: skip
    assert config["request"]["split_seed"] == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--resume"], "no --out given"),
        ([], "no table given: lpzero discover TABLE"),
        (["--out", "c"], "no table is given"),
        (["nonesuch", "--out", "c"], "unknown table"),
        (["tiny", "--out", "c"], "a split needs at least 10"),
        (["small", "--out", "c"], "6 of them for training"),
        (["made-up", "--out", "c", "--statistics", "Q"], "unknown statistic 'Q'"),
        (
            ["made-up", "--out", "c", "--statistics", "S", "--unaries", "0", "--terms", "1"],
            "survives pruning",
        ),
        (["made-up", "--out", "c", "--objective", "tau"], "unknown measure 'tau'"),
        (["made-up", "--out", "c", "--objective", "within"], "cannot be measured"),
        (["made-up", "--out", "c", "--population", "1"], "population"),
        (["made-up", "--out", "c", "--population", "x"], "population"),
        (["made-up", "--out", "c", "--crossover", "2"], "crossover"),
        (["made-up", "--out", "c", "--start", "sum(Q)"], "unknown name 'Q'"),
        (["made-up", "--out", "c", "--start", "sum(W"], "expected ')'"),
        (["made-up", "--out", "c", "--time-limit", "0"], "time-limit"),
        (["made-up", "--out", "c", "--preset", "nature"], "preset"),
        (["made-up", "--out", "c", "--mutation", "0", "--crossover", "0"], "no new formulas"),
    ],
)
def test_bad_input_is_one_line_and_code_two(
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err
    assert not (tmp_path / "c").exists(), "a refused campaign leaves nothing behind"


@pytest.mark.slow
def test_a_second_campaign_in_the_same_place_is_refused_and_resume_goes_on(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = str(tmp_path / "c")
    assert run(capsys, "made-up", "--out", out, "--quiet", *SHORT)[0] == 0
    code, _, err = run(capsys, "made-up", "--out", out, "--quiet", *SHORT)
    assert code == 2
    assert "resume it with --resume" in err
    code, _, err = run(capsys, "--out", out, "--resume", "--seed", "5")
    assert code == 2
    assert "started with seed 0, not 5" in err
    more = ["--out", out, "--resume", "--generations", "5", "--format", "json"]
    code, text, _ = run(capsys, *more, "--quiet")
    assert code == 0
    assert json.loads(text)["generations"] == 5


@pytest.mark.slow
def test_a_campaign_that_a_limit_stopped_is_listed_as_stopped_and_says_how_far_it_is(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    out = tmp_path / "c"
    asked = ["made-up", "--out", str(out), "--quiet", *SHORT, "--generations", "40"]
    assert run(capsys, *asked, "--time-limit", "0.000001")[0] == 0
    config = read_config(out)
    assert config is not None
    stopped = line(config)
    assert (stopped.state, stopped.progress) == ("stopped", "generation 0 of 40")
    assert re.fullmatch(r"test rho -?[\d.]+; [\w -]+: (not )?(ahead|settled)", stopped.best)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_finishes_the_generation_and_says_how_to_go_on(
    number: signal.Signals,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = str(tmp_path / "c")
    step = steps.Evolution.step

    def interrupted(self: Any, state: Any, rng: Any) -> Any:
        if state.generation == 2:
            os.kill(os.getpid(), number)
        return step(self, state, rng)

    with monkeypatch.context() as patch:
        patch.setattr(steps.Evolution, "step", interrupted)
        code, text, err = run(capsys, "made-up", "--out", out, *SHORT)
    assert code == 130
    assert text == ""
    assert f"continue with: lpzero discover made-up --out {out}" in err
    assert err.rstrip().endswith("--resume")
    state = json.loads((Path(out) / layout.CHECKPOINT).read_text())
    assert state["next_generation"] == 3
    assert run(capsys, "--out", out, "--resume", "--quiet")[0] == 0
    other = str(tmp_path / "d")
    assert run(capsys, "made-up", "--out", other, "--quiet", *SHORT)[0] == 0
    journals = [(Path(path) / layout.JOURNAL).read_bytes() for path in (out, other)]
    assert journals[0] == journals[1]


def test_a_signal_before_the_first_generation_stops_at_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = str(tmp_path / "c")

    def prepare(self: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        pytest.fail("it went on")

    monkeypatch.setattr(Objective, "prepare", prepare)
    code, text, err = run(capsys, "made-up", "--out", out, *SMALL)
    assert (code, text) == (130, "")
    again = shlex.join(["lpzero", "discover", "made-up", "--out", out, *SMALL, "--resume"])
    assert err == f"stopped; finished work is saved, continue with: {again}\n"
