"""Every experiment's page says when its figures were measured, with what and by which command."""

from __future__ import annotations

import re
import shlex
import sys
from datetime import date
from importlib import import_module
from pathlib import Path

import click
import numpy as np
import pytest
import torch

from experiments.measured import measured, prints_measured
from experiments.pages import MEASURED, Block, blocks, read
from lpzero.cli.main import cli
from lpzero.version import VERSION

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("experiments/*/README.md"), *ROOT.glob("tests/*/README.md")])
_FIGURE = re.compile(r"[-−+]?\d+\.\d")  # at the start of a cell
# Scripts that others read from: they make inputs and print no figure.
INPUTS = {"benchmarks/dashboard_runs.py", "benchmarks/growth_campaign.py",
          "faults/audited_command.py", "faults/hostile_inputs.py", "pictures/characters.py",
          "pictures/draw.py", "prenas/nano_trainings.py"}  # fmt: skip


def uncovered(parts: list[Block]) -> list[str]:
    """Where tables have figures and neither their section nor one around it has the line."""
    covered = {
        part.headings for part in parts if part.kind == "text" and MEASURED.search(part.text)
    }
    return [
        part.place
        for part in parts
        if part.kind == "table"
        and any(_FIGURE.match(cell) for row in part.cells[1:] for cell in row)
        and not any(part.headings[: len(above)] == above for above in covered)
    ]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.parent.name)
def test_a_page_says_when_its_figures_were_measured_and_how(path: Path) -> None:
    parts = read(path, ROOT)
    lines = [match for part in parts for match in MEASURED.finditer(part.text)]
    assert uncovered(parts) == [], f"without the line, as here: {measured('COMMAND')}"
    for match in lines:
        date.fromisoformat(match[1])  # a real day, or an error
        for command in re.findall(r"`([^`]+)`", match[5]):
            _check(shlex.split(command), path.parent)


def _check(words: list[str], folder: Path) -> None:
    """Fail unless the command is the folder's or lpzero's own, and has the options it is given."""
    asked = {word for word in words if word.startswith("--")}
    if words[0] == "lpzero":
        known = cli.get_command(click.Context(cli), words[1])
        assert known is not None
    else:
        assert words[:2] == ["python", "-m"]
        assert words[2].startswith(f"{folder.parent.name}.{folder.name}.")
        module = import_module(words[2])
        if not isinstance(module.main, click.Command):
            source = Path(str(module.__file__)).read_text(encoding="utf-8")
            assert {option for option in asked if f'"{option}"' not in source} == set()
            return
        known = module.main
    assert asked <= {name for one in known.params for name in one.opts}


def test_most_pages_have_the_line() -> None:
    named = {
        path.parent.name for path in PAGES if MEASURED.search(" ".join(path.read_text().split()))
    }
    assert len(named) >= len(PAGES) - 3  # pictures has no figures, others may not be measured yet


def test_a_table_outside_the_lines_section_is_found() -> None:
    line = measured("python -m experiments.made.up")
    table = "| proxy | rho |\n|---|---|\n| a | 0.5 |\n"
    page = f"# Title\n\n## One\n\n{line}\n\n{table}\n### Part\n\n{table}\n## Two\n\n{table}"
    assert uncovered(blocks(page, "page")) == ["page:19"]
    assert uncovered(blocks(f"# Title\n\n{line}\n\n{page[9:]}", "page")) == []


def test_the_index_names_every_page_and_a_page_every_script() -> None:
    index = (ROOT / "experiments" / "README.md").read_text(encoding="utf-8")
    for path in PAGES:
        assert f"{path.parent.name}/README.md)" in index, "a line of experiments/README.md"
        text = path.read_text(encoding="utf-8")
        scripts = [one for one in path.parent.glob("*.py") if "__main__" in one.read_text()]
        assert [one.name for one in scripts if not re.search(rf"\b{one.stem}\b", text)] == []


def test_every_script_that_prints_figures_prints_the_line() -> None:
    places = (
        "experiments/*/*.py",
        *(f"tests/{tool}/*.py" for tool in ("faults", "fuzz", "mutants")),
    )
    found = [path for place in places for path in ROOT.glob(place)]
    scripts = [path for path in found if "__main__" in path.read_text()]
    assert len(scripts) > 30
    silent = {
        f"{path.parent.name}/{path.name}"
        for path in scripts
        if not re.search(
            r"^@prints_measured$|print\(measured\(\)\)|^main = released_command",
            path.read_text(),
            re.M,
        )
    }
    assert silent == INPUTS


def test_the_line_has_the_date_the_versions_and_the_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["run.py", "--language", "+ ends"])
    main = sys.modules["__main__"]
    monkeypatch.setattr(main, "__spec__", type("Spec", (), {"name": "experiments.a.run"}))
    prints_measured(lambda form: print("a table"))(form="table")
    table, line = capsys.readouterr().out.splitlines()
    found = MEASURED.fullmatch(line)
    assert table == "a table"
    assert found is not None
    torch_version = torch.__version__.partition("+")[0]
    assert found.groups()[1:4] == (VERSION, torch_version, np.__version__)
    assert found[5] == "`python -m experiments.a.run --language '+ ends'`"
    assert (date.today() - date.fromisoformat(found[1])).days in (-1, 0, 1)
    prints_measured(lambda form: None)(form="json")
    assert MEASURED.fullmatch(capsys.readouterr().err.strip())
