"""What every verb prints fits the terminal, and no number is cut; a pipe gets everything."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lpzero.cli import main as cli
from lpzero.cli import output, verb
from lpzero.parallel import progress
from lpzero.report import style
from lpzero.verbs import commands
from tests.lpzero.small_campaign import sketches, table
from tests.lpzero.verbs.test_reproduce import FILES

WIDTHS = (80, 100, 160)
_COUNTERS = "parameters decoder-parameters attention-parameters depth depth-sqrt-width flops sept"
_PROXIES = " ".join(f"--proxy {name}" for name in _COUNTERS.split())
_SMALL = "--batch 2 --length 8"
# A command of every verb; FOLDER is a folder of the test, the other words are those of FILES.
LINES = {
    "classics": "",
    "counters": "nano-gpt2",
    "dashboard": "FOLDER",
    "discover": "made-up --out campaign --choose nested --population 10 --offspring 10"
    " --generations 3 --unaries 1 --permutations 2 --quiet",
    "exhaust": f"ROWS --space nano-gpt2 --target accuracy {_SMALL} --permutations 2 --out all",
    "export": "sum(abs(W)) --to latex --out formula.tex",
    "leaderboard": "nano-gpt2 nano-rnn --proxy depth --proxy parameters --proxy sept --quiet",
    "rank": f"nano-gpt2 {_PROXIES} --proxy rank-mean(parameters,depth,flops)"
    " --proxy rank-mean(depth,attention-parameters,decoder-parameters,sept)"
    " --proxy projections",
    "report": "RANKING",
    "rules": "",
    "score": "model.py:MODEL --inputs model.py:BATCH --proxy snip --proxy synflow"
    " --proxy sum(abs(mul(W,G)))",
    "search": "nano-gpt2 --loop random --proxy sept --samples 30 --evaluator table --quiet",
    "specialise": "SUPERNET --out network.safetensors",
    "stats": f"ROWS --space nano-gpt2 --target accuracy {_SMALL}",
    "tables": "",
    "train": "nano-rnn --n 2 --seeds 1 --steps 1 --quiet --out trained",
}
_QUICK = {"classics", "counters", "tables"}
_MODEL = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(5, 5), nn.Linear(5, 5)])

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x

MODEL, BATCH = Model(), torch.rand(4, 5)
"""
_NUMBER = re.compile(r"(?<![\w.-])-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])")


def test_every_verb_has_a_command() -> None:
    assert set(LINES) == set(commands())


def _ranking(folder: Path) -> Path:
    out = folder / "ranking"
    words = ["nano-gpt2", "--proxy", "depth", "--out", str(out), "--format", "json"]
    assert cli.run(["rank", *words]) == 0
    return out


def _supernet(folder: Path) -> Path:
    out = folder / "supernet"
    line = "train nano-autoformer --supernet --steps 1 --batch 2 --images 2 --quiet --format json"
    more = ["--select", str(FILES["PREFERRED"](folder)), "--out", str(out)]
    assert cli.run([*line.split(), *more]) == 0
    return out


_FILES: dict[str, Callable[[Path], Any]] = {
    **FILES,
    "FOLDER": lambda folder: folder,
    "RANKING": _ranking,
    "SUPERNET": _supernet,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of files, in which no figure is drawn and tables by name may be made up."""
    from spaces.tables import load_any

    def load(name: str, *more: Any) -> Any:
        return table(40, name) if name == "made-up" else load_any(name, *more)

    monkeypatch.setattr("lpzero.discover.discovery.load", load)
    socket = SimpleNamespace(getsockname=lambda: ("127.0.0.1", 8787))
    monkeypatch.setattr("lpzero.dashboard.server.listen", lambda port: socket)
    monkeypatch.setattr("os.nice", lambda priority: priority)
    monkeypatch.setattr(style, "encode", lambda figure, form: b"<svg></svg>")
    monkeypatch.setenv("LPZERO_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model.py").write_text(_MODEL)
    return tmp_path


def printed_at(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> dict[int | None, str]:
    """What a command prints by width, None in a pipe; its work is done once."""
    outcomes: list[Any] = []
    call = verb.call

    def once(*given: Any) -> Any:
        if not outcomes:
            outcomes.append(replace(call(*given), then=None))
        return outcomes[0]

    monkeypatch.setattr(verb, "call", once)
    printed = {}
    for width in (None, *WIDTHS):
        monkeypatch.setattr(output, "width", lambda width=width: width)
        capsys.readouterr()
        assert cli.run(words) == 0
        printed[width] = capsys.readouterr().out
    return printed


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in _QUICK else [pytest.mark.slow]) for n in commands()]
)
def test_what_a_verb_prints_fits(
    name: str,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if name == "discover":
        monkeypatch.setattr(
            "lpzero.sketches.builder.sketches", lambda t, b: [sketches()[int(i)] for i in t.ids]
        )
    words = [str(_FILES[word](folder)) if word in _FILES else word for word in LINES[name].split()]
    printed = printed_at([name, *words], capsys, monkeypatch)
    everything = set(_NUMBER.findall(printed[None] or ""))
    for width in WIDTHS:
        lines = printed[width].splitlines()
        too_wide = [line for line in lines if len(line) > width and " " in line.strip()]
        assert not too_wide
        assert set(_NUMBER.findall(printed[width])) <= everything
    if name == "discover":
        assert len(printed[80].splitlines()) <= 20
        assert "\nnext: lpzero report campaign\n" in printed[80]


def test_rows_keep_their_first_columns_and_cut_names_in_the_middle(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "width", lambda: 60)
    name = "rank-mean(parameters,depth,attention-parameters,flops)"
    rows = [{"proxy": name, "n": 10, "rho": 0.5, "rho_ci": [0.25, 0.75], "tau": 0.4, "ms": 12.5}]
    output.print_rows(rows, "table")
    header, line, left_out = capsys.readouterr().out.splitlines()
    assert header.split() == ["proxy", "n", "rho", "rho", "ci", "tau"]
    assert re.fullmatch(r"rank-mean\(p\w*….*flops\)  10  0\.500  \[0\.250, 0\.750\]  0\.400", line)
    assert len(line) == 60
    assert left_out == "(ms: --wide)"


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdefg", 6, "abc…fg"),
        ("scale by 0.125 of it", 14, "scale b… of it"),
        ("pow(sum(W), 0.12345)", 13, "pow(su…)"),
        ("12345 of 67890", 9, "…"),
    ],
)
def test_no_number_is_cut_in_two(text: str, limit: int, shown: str) -> None:
    assert output.cut(text, limit) == shown


def test_nothing_to_do_has_no_bar(capfd: pytest.CaptureFixture[str]) -> None:
    with progress("sketches", 0):
        pass
    assert capfd.readouterr().err == ""
