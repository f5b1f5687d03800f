"""Hostile inputs: each must end in one line, exit code 2, within 2 seconds and 500 MB.

A process of its own, because the peak of memory of a child is at least that of its parent.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

MOST_SECONDS, MOST_MEGABYTES = 2.0, 500.0
_HANGS_AFTER = 60.0
_NAME = "a\x1b[31mred\x1b[0m\u202eb"  # colours a terminal and turns its text round


def _yaml(text: str) -> Callable[[Path], list[str]]:
    def make(root: Path) -> list[str]:
        path = root / "lts" / "random_GPT2_wt103" / "ppl_summary.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(text)
        return ["counters", "gpt2-wt103", "--data", str(root)]

    return make


def _json(text: str) -> Callable[[Path], list[str]]:
    return _table(lambda path: path.write_text(text))


def _table(write: Callable[[Path], object]) -> Callable[[Path], list[str]]:
    def make(root: Path) -> list[str]:
        path = root / "flexibert" / "BERT_benchmark.json"
        path.parent.mkdir(parents=True)
        write(path)
        return ["counters", "flexibert", "--data", str(root)]

    return make


def _archive(write: Callable[[Path], object]) -> Callable[[Path], list[str]]:
    def make(root: Path) -> list[str]:
        path = root / "vit" / "gt_pit.pth"
        path.parent.mkdir(parents=True)
        write(path)
        return ["counters", "pit-c100", "--data", str(root)]

    return make


def _bomb(path: Path) -> None:
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("x/data.pkl", "w", force_zip64=True) as file,
    ):
        for _ in range(400):  # in pieces: a child's peak of memory is at least its parent's
            file.write(bytes(1 << 20))


def _run(name: str, write: Callable[[Path], object]) -> Callable[[Path], list[str]]:
    def make(root: Path) -> list[str]:
        root.mkdir(parents=True)
        write(root / name)
        return ["report", str(root)]

    return make


def _export(text: str) -> Callable[[Path], list[str]]:
    def make(root: Path) -> list[str]:
        root.mkdir(parents=True)
        (root / "formula.json").write_text(text)
        return ["export", str(root / "formula.json"), "--to", "latex"]

    return make


def _escaped(root: Path) -> list[str]:
    (root / _NAME).mkdir(parents=True)
    return ["report", str(root / _NAME)]


def _escaped_table(root: Path) -> list[str]:
    return ["counters", "flexibert", "--data", str(root / _NAME)]


def _aliases() -> str:
    levels = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    levels += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12)]
    return "\n".join(levels)


_ROW = '[{"id": %s, "hparams": {}}]'
_DEEP = 100_000
INPUTS: dict[str, Callable[[Path], list[str]]] = {
    "YAML: 100,000 opening brackets": _yaml("[" * _DEEP),
    "YAML: 100,000 opening braces": _yaml("{" * _DEEP),
    "YAML: 100,000 nested lists": _yaml("- " * _DEEP + "x"),
    "YAML: 100,000 nested keys": _yaml("? " * _DEEP + "x"),
    "YAML: a bomb of aliases": _yaml(_aliases()),
    "YAML: an alias of itself": _yaml("config_0_j0: &a [*a]"),
    "YAML: an integer of 6,000 digits": _yaml("config_0_j0: {valid_ppl: " + "9" * 6000 + "}"),
    "YAML: an integer of 4,000 digits": _yaml("config_0_j0: {valid_ppl: " + "9" * 4000 + "}"),
    "YAML: a date of month 13": _yaml("config_0_j0: 2001-13-41"),
    "YAML: a Python object": _yaml("config_0_j0: !!python/object/apply:os.system [true]"),
    "YAML: 64 MB": _yaml("#" * (64 << 20)),
    "YAML: 500 KB of small values": _yaml("".join(f"a{n}: 1\n" for n in range(45_000))),
    "YAML: a name with escape sequences": _yaml('"\\e[31m": {valid_ppl: 3}'),
    "JSON: 100,000 opening brackets": _json("[" * _DEEP),
    "JSON: 100,000 opening objects": _json('{"a":' * _DEEP),
    "JSON: an integer of 6,000 digits": _json(_ROW % ("9" * 6000)),
    "JSON: an integer of 4,000 digits": _json(_ROW % ("9" * 4000)),
    "JSON: 8 MB of empty lists": _json("[" + "[]," * (2 << 20) + "[]]"),
    "JSON: 64 MB": _json("[" + " " * (64 << 20) + "]"),
    "JSON: NaN": _json(_ROW % "NaN"),
    "table: a pipe": _table(lambda path: os.mkfifo(path)),
    "table: a link to an endless device": _table(lambda path: path.symlink_to("/dev/zero")),
    "table: a link to a terminal": _table(lambda path: path.symlink_to("/dev/tty")),
    "table: a folder": _table(lambda path: path.mkdir()),
    "table: a link to itself": _table(lambda path: path.symlink_to(path)),
    "archive: a pipe": _archive(lambda path: os.mkfifo(path)),
    "archive: an endless device": _archive(lambda path: path.symlink_to("/dev/zero")),
    "archive: 400 MB packed in 0.4": _archive(_bomb),
    "run: config.json is a pipe": _run("config.json", lambda path: os.mkfifo(path)),
    "run: config.json is an endless device": _run(
        "config.json", lambda path: path.symlink_to("/dev/zero")
    ),
    "run: config.json nested deeply": _run("config.json", lambda p: p.write_text("[" * _DEEP)),
    "run: config.json with a huge integer": _run(
        "config.json", lambda path: path.write_text('{"schema": ' + "9" * 6000 + "}")
    ),
    "run: an old run.json, nested deeply": _run("run.json", lambda p: p.write_text("[" * _DEEP)),
    "export: nested deeply": _export("[" * _DEEP),
    "export: an integer of 6,000 digits": _export(json.dumps({"schema": 1})[:-1] + ', "a": '
                                                  + "9" * 6000 + "}"),
    "path: escape sequences, a run": _escaped,
    "path: escape sequences, a data root": _escaped_table,
}  # fmt: skip


def check(root: Path) -> int:
    """Try every input and print the failures; their number."""
    failed, most_seconds, most_megabytes = [], 0.0, 0.0
    for number, (name, make) in enumerate(INPUTS.items()):
        problems, seconds, megabytes = _try(make(root / str(number)))
        most_seconds = max(most_seconds, seconds)
        most_megabytes = max(most_megabytes, megabytes)
        failed += [f"{name}: {problem}" for problem in problems]
    print(f"\n{len(INPUTS)} hostile inputs, {len(failed)} failures; at most {most_seconds:.2f} s of"
          f" processor time and {most_megabytes:.0f} MB")  # fmt: skip
    for line in failed:
        print(line)
    return len(failed)


def _try(arguments: list[str]) -> tuple[list[str], float, float]:
    """What went wrong, the processor seconds and the megabytes."""
    command = [sys.executable, "-m", "lpzero.cli.main", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    start = time.monotonic()
    ended, status, usage = 0, 0, None
    while not ended and time.monotonic() - start < _HANGS_AFTER:
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        time.sleep(0.01)
    if not ended or usage is None:
        process.kill()
        process.wait()
        return [f"hangs for {_HANGS_AFTER:.0f} s"], _HANGS_AFTER, 0.0
    assert process.stdout is not None
    assert process.stderr is not None
    process.returncode = os.waitstatus_to_exitcode(status)
    out, err = process.stdout.read().decode(), process.stderr.read().decode(errors="replace")
    seconds, megabytes = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
    problems = []
    if process.returncode != 2:
        problems.append(f"exit code {process.returncode}")
    if out or err.count("\n") != 1 or not err.startswith("error: ") or "unexpected" in err:
        problems.append(f"printed {(out + err)[-300:]!r}")
    if any(not (c.isprintable() or c == "\n") for c in err):
        problems.append("printed control characters")
    if seconds > MOST_SECONDS:
        problems.append(f"{seconds:.2f} s")
    if megabytes > MOST_MEGABYTES:
        problems.append(f"{megabytes:.0f} MB")
    return problems, seconds, megabytes


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        raise SystemExit(1 if check(Path(made)) else 0)
