"""The command line's contract: exit codes, one-line errors, stdout for results alone."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from lpzero.cli import main as cli
from lpzero.cli.output import cell, print_rows
from lpzero.errors import InputError, LPZeroError
from lpzero.options import options
from lpzero.verbs import module
from lpzero.version import VERSION
from primitives.errors import FormulaError
from spaces.errors import FetchError, TableError

LPZERO = [sys.executable, "-m", "lpzero.cli.main"]


def fails(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    """The exit code and the one line on stderr of a command that prints nothing else."""
    code = cli.run(arguments)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert err.startswith("error: ")
    return code, err.removeprefix("error: ").strip()


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["--version"]) == 0
    assert VERSION in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-h"]])
def test_help_lists_every_verb(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert cli.run(arguments) == 0
    out = capsys.readouterr().out
    assert all(f"\n  {verb} " in out for verb in cli.commands())


@pytest.mark.parametrize("verb", list(cli.commands()))
def test_every_verb_has_help(capsys: pytest.CaptureFixture[str], verb: str) -> None:
    assert cli.run([verb, "--help"]) == 0
    assert f"Usage: lpzero {verb}" in capsys.readouterr().out


def test_an_unknown_verb_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    code, line = fails(capsys, "table")
    assert code == 2
    assert line == "unknown command 'table'; did you mean 'tables'?"


def test_a_verb_like_none_is_answered_with_all(capsys: pytest.CaptureFixture[str]) -> None:
    code, line = fails(capsys, "xyzzy")
    assert code == 2
    assert line.startswith("unknown command 'xyzzy'; choose from: classics, counters")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tables", "--bogus"], "--bogus"),
        (["tables", "--format", "xml"], "xml"),
        (["counters"], "TABLE"),
        (["counters", "flexbert"], "unknown table 'flexbert'; did you mean 'flexibert'?"),
        (["tables", "fetch", "flexbert"], "unknown table 'flexbert'; did you mean 'flexibert'?"),
    ],
)
def test_bad_input_is_one_line_and_code_two(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    code, line = fails(capsys, *arguments)
    assert code == 2
    assert message in line


def test_a_missing_table_is_code_two_and_prints_the_command(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, line = fails(capsys, "counters", "flexibert", "--data", str(tmp_path))
    assert code == 2
    assert line.endswith(f"lpzero tables fetch flexibert --data {tmp_path}")


def test_a_truncated_table_is_code_two_and_names_the_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = tmp_path / "flexibert" / "BERT_benchmark.json"
    path.parent.mkdir()
    path.write_text('[{"id": 0, "scor')
    code, line = fails(capsys, "counters", "flexibert", "--data", str(tmp_path))
    assert code == 2
    assert line.startswith(f"{path} has broken or truncated JSON at line 1 column")


class CustomError(LPZeroError, RuntimeError):
    pass


@pytest.mark.parametrize(
    ("error", "line", "code"),
    [
        (TableError("a\nb"), "a b", 2),
        (InputError("bad"), "bad", 2),
        (CustomError("worn out"), "worn out", 1),
        (FetchError("no network"), "no network", 1),
        (FormulaError("no formula"), "no formula", 2),
        (click.BadParameter("odd"), "Invalid value: odd", 2),
        (FileNotFoundError(2, "No such file", "x.json"), "x.json: No such file", 2),
        (OSError(28, "No space left", "out"), "out: No space left", 1),
        (MemoryError(), "not enough memory: give a smaller --chunk, batch or model", 2),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "not enough memory", 2),
        (RuntimeError("CUDA out of memory."), "not enough memory", 2),
        (OSError(12, "Cannot allocate memory"), "not enough memory", 2),
        (ImportError("x.so: failed to map segment from shared object"), "not enough memory", 2),
        (UnicodeEncodeError("utf-8", "a\udcff", 1, 2, "-"), r"'a\udcff' is not text in UTF-8", 2),
        (RuntimeError("odd"), "unexpected RuntimeError: odd", 1),
        (ZeroDivisionError("zero"), "unexpected ZeroDivisionError: zero (set LPZERO_TR", 1),
    ],
)
def test_errors_are_explained_in_one_line(error: Exception, line: str, code: int) -> None:
    message, found = cli.explain(error)
    assert message.startswith(line)
    assert found == code


def test_escape_sequences_are_printed_escaped(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = tmp_path / "a\x1b[31mred\u202e"
    assert cli.run(["report", str(folder)]) == 2
    assert cli.run(["stats", "--prune", "stale", "--cache", str(folder)]) == 0
    out, err = capsys.readouterr()
    assert r"a\x1b[31mred\u202e" in err
    assert r"a\x1b[31mred\u202e" in out
    assert "\x1b" not in out + err


def test_tables_as_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert cli.run(["tables", "--format", "json", "--data", str(tmp_path)]) == 0
    entries = {entry["name"]: entry for entry in json.loads(capsys.readouterr().out)}
    assert {"flexibert", "gpt2-wt103", "nano-gpt2", "nano-flexibert"} <= set(entries)
    assert set(entries["flexibert"]) >= {"name", "n", "present", "target", "licence"}
    assert entries["flexibert"]["n"] == 500
    assert entries["flexibert"]["present"] is False


def test_counters_as_json_carry_the_figures(
    capsys: pytest.CaptureFixture[str], real_data: Path
) -> None:
    arguments = ["counters", "flexibert", "--format", "json", "--data", str(real_data)]
    assert cli.run(arguments) == 0
    rows = {row["proxy"]: row for row in json.loads(capsys.readouterr().out)}
    assert round(rows["depth"]["rho"], 3) == 0.834
    assert round(rows["depth-sqrt-width"]["rho"], 3) == 0.925
    assert rows["depth"]["n"] == 500
    low, high = rows["depth"]["rho_ci"]
    assert low < rows["depth"]["rho"] < high
    assert set(rows["depth"]) >= {"proxy", "n", "rho", "tau", "rho_ci", "rho_given_params"}


def test_counters_in_another_space_count_what_it_builds(
    capsys: pytest.CaptureFixture[str], real_data: Path
) -> None:
    arguments = ["counters", "flexibert", "--format", "json", "--data", str(real_data)]
    assert cli.run([*arguments, "--space", "flexibert-upstream"]) == 0
    rows = {row["proxy"]: row for row in json.loads(capsys.readouterr().out)}
    # With every width the same, depth times the root of the width is depth.
    assert rows["depth-sqrt-width"]["rho"] == rows["depth"]["rho"]


def test_fetching_what_is_there_does_nothing(
    capsys: pytest.CaptureFixture[str], real_data: Path
) -> None:
    assert cli.run(["tables", "--data", str(real_data), "fetch", "flexibert"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("flexibert: already present and complete")
    assert err == ""


def test_a_wide_table_is_not_cut_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([{"name": "x" * 150, "formula": "y" * 150}, {"name": "[b]", "rho": 0.5}], "table")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert "x" * 150 in lines[1]
    assert "y" * 150 in lines[1]
    assert lines[2].split() == ["[b]", "-", "0.500"]


def test_json_refuses_numbers_that_are_not_finite() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        print_rows([{"rho": float("nan")}], "json")


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (True, "yes"), (3, "3"), (0.12345, "0.123"), ([0.1, 0.2], "[0.100, 0.200]")],
)
def test_cells(value: object, text: str) -> None:
    assert cell(value) == text


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [["tables", "--format", "json"], ["search", "--help"], ["export", "--help"]],
    ids=" ".join,
)
def test_listing_tables_and_help_import_nothing_heavy(arguments: list[str]) -> None:
    code = (
        f"import sys; from lpzero.cli.main import run; run({arguments});"
        "print([m for m in ('torch', 'sympy', 'scipy', 'deap') if m in sys.modules],"
        " file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


@pytest.mark.slow
def test_a_reader_that_leaves_early_hears_nothing() -> None:
    with subprocess.Popen(
        [*LPZERO, "tables"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""


INTERRUPTED = """
import os, signal
from lpzero.cli import main
from spaces import tables
tables.describe = lambda data: os.kill(os.getpid(), signal.SIGINT)
main.main(["tables"])
"""


@pytest.mark.slow
def test_an_interruption_is_code_130_and_one_line() -> None:
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True)
    assert done.returncode == 130
    assert done.stderr.strip() == "interrupted"
    assert done.stdout == ""


def test_a_traceback_can_be_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cli.TRACEBACK_VARIABLE, "1")
    with pytest.raises(click.UsageError):
        cli.run(["xyzzy"])


SEEDED = [
    verb
    for verb in cli.commands()
    if any("seed" in (entry.name, *entry.former) for entry in options(module(verb).Request))
]


@pytest.mark.parametrize("verb", SEEDED)
@pytest.mark.parametrize("seed", ["-1", "99999999999999999999"])
def test_a_seed_that_no_generator_takes_is_bad_input(
    capsys: pytest.CaptureFixture[str], verb: str, seed: str
) -> None:
    code, line = fails(capsys, verb, "x", "--seed", seed)
    assert code == 2
    assert "--seed" in line


@pytest.mark.parametrize("verb", ["rank", "stats"])
def test_a_batch_that_does_not_fit_is_bad_input(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, verb: str
) -> None:
    arguments = (verb, "nano-gpt2", "--batch", "1000000000", "--cache", str(tmp_path))
    more = ("--proxy", "snip") if verb == "rank" else ()
    code, line = fails(capsys, *arguments, *more)
    assert code == 2
    assert "a batch of 1,000,000,000 x 64 needs about" in line
    assert line.endswith("give --memory more")


@pytest.mark.slow
def test_a_closed_stdout_is_one_line_and_code_two() -> None:
    for closed, shown in ((">&-", "stdout or stderr is closed"), ("2>&-", "")):
        command = f"{shlex.join([*LPZERO, 'tables'])} {closed}"
        done = subprocess.run(command, shell=True, capture_output=True, text=True)
        assert done.returncode == 2
        assert done.stdout == ""
        assert shown in done.stderr
        assert done.stderr.count("\n") <= 1


@pytest.mark.slow
def test_too_little_address_space_is_one_line_and_code_two(tmp_path: Path) -> None:
    command = shlex.join([*LPZERO, "stats", "nano-gpt2", "--cache", str(tmp_path)])
    done = subprocess.run(
        ["bash", "-c", f"ulimit -v 400000; {command}"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stderr.startswith("error: the process may take 390 MB of memory (ulimit -v)")
    assert done.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_file_whose_name_is_not_text_is_ranked_but_keeps_no_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    name = os.fsdecode(os.fsencode(tmp_path) + b"/p\xff.csv")
    rows = "".join(f"r{i},{i},{i * i % 7},{i + i % 3}\n" for i in range(40))
    Path(name).write_text("id,a,b,accuracy\n" + rows)
    given = (name, "--target", "accuracy", "--format", "json")
    assert cli.run(["rank", *given, "--proxy", "a"]) == 0
    capsys.readouterr()
    out = tmp_path / "run"
    code, line = fails(capsys, "discover", *given, "--columns-only", "--out", str(out))
    assert code == 2
    assert line.endswith(r"p\udcff.csv', which is not text in UTF-8: rename the file")
    assert not out.exists()


@pytest.mark.parametrize(
    "line",
    [
        "rank FILE.csv --proxy depth",
        "counters flexibert --data FILE",
        "discover FILE.csv --target x --out y",
        "export FILE.json --to json",
        "rank nano-gpt2 --proxy FILE.json",
        "rank nano-gpt2 --proxy snip --corpus FILE.txt",
        "rank nano-gpt2 --proxy snip --corpus FILE.txt --tokenizer FILE.json",
        "report FILE",
        "score --hf FILE --proxy snip",
        "search nano-gpt2 --loop random --proxy depth --evaluator table --table FILE.json",
        "search --out FILE --resume",
        "specialise FILE --out x.safetensors",
        "tables --plugin FILE.py",
    ],
)
def test_the_home_of_an_unknown_user_is_one_line(
    line: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.run(line.replace("FILE", "~nobody-has-this-name/x").split()) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line[:7] for line in lines if not line.startswith("note: ")] == ["error: "]
    assert not list(tmp_path.iterdir())
