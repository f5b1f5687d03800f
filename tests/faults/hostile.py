"""Hostile inputs: nothing of them is run or fetched, no file of the user's changes, one line.

    python -m tests.faults.hostile --out runs/hostile --jobs 2

Every input is given to a command in a process of its own, under an audit hook: a fork of this one,
which has imported everything, so that the imports of torch and transformers do not count. Its
processor time and its peak of memory are compared with those of an honest command of the same
verb. The inputs are made by `hostile_inputs`, in another process.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from experiments.measured import measured

ROOT = Path(__file__).parents[2]
MOST_SECONDS, MOST_MEGABYTES = 2.0, 300.0  # beyond the honest command of the same verb
_HANGS_AFTER = 120.0
# What the hook saw, by the first word of its lines.
_CLASSES = {"runs": "executed", "starts": "executed", "unpickles": "executed", "asks": "fetched",
            "writes": "overwritten"}  # fmt: skip
FAILURES = ("executed", "fetched", "overwritten", "hang", "crash", "traceback", "unexpected",
            "failed", "too slow", "too large")  # fmt: skip
# How a new process is started: without standard output, or with little address space.
_STARTS = {"closed": 'exec "$@" >&-', "small": 'ulimit -v 400000; exec "$@"'}


@dataclass(frozen=True)
class Measured:
    """How a command ended (None: it hung), what it printed and took, and what the hook saw."""

    code: int | None
    out: str
    err: str
    seconds: float
    megabytes: float
    seen: tuple[str, ...]
    is_changed: bool  # a file of the user's


def perform(case: dict[str, Any]) -> Measured:
    """Run the case's command in its folder."""
    home = Path(case["home"])
    before = _digests(case["kept"])
    process = os.fork()
    if process == 0:
        _child(case)
    status, usage = _wait(process)
    code = None if status is None else os.waitstatus_to_exitcode(status)
    texts = [(home / name).read_text(errors="replace") for name in ("out", "err")]
    seen_file = home / "seen.json"
    seen = json.loads(seen_file.read_text()) if seen_file.exists() else []
    is_changed = _digests(case["kept"]) != before
    seconds = usage.ru_utime + usage.ru_stime
    return Measured(code, *texts, seconds, usage.ru_maxrss / 1024, tuple(seen), is_changed)


def _child(case: dict[str, Any]) -> None:
    """Run the case's command in this process, and end it."""
    code = 99
    try:
        os.setpgid(0, 0)
        home = Path(case["home"])
        os.chdir(case["cwd"])
        places = ("HOME", "LPZERO_CACHE", "XDG_CACHE_HOME", "TMPDIR")
        os.environ.update(dict.fromkeys(places, str(home)))
        tempfile.tempdir = None
        writes = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(home / name, writes), number)
        sys.stdout, sys.stderr = (os.fdopen(n, "w", buffering=1) for n in (1, 2))
        if case["start"]:
            _exec(case)
        from tests.faults.audited_command import main

        code = main(Path(case["folder"]), home / "seen.json", case["words"])
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _exec(case: dict[str, Any]) -> None:
    """Replace this process by a new one that is started in the case's way."""
    words = [sys.executable, "-P", "-m", "tests.faults.audited_command"]
    words += [case["folder"], f"{case['home']}/seen.json", *case["words"]]
    os.environ |= {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    os.execvp("bash", ["bash", "-c", _STARTS[case["start"]], "bash", *words])


def _wait(process: int) -> tuple[int | None, Any]:
    """The status of the process, None if it was ended here, and what it used."""
    start = time.monotonic()
    while time.monotonic() - start < _HANGS_AFTER:
        ended, status, usage = os.wait4(process, os.WNOHANG)
        if ended:
            return status, usage
        time.sleep(0.005)
    os.killpg(process, signal.SIGKILL)
    _, _, usage = os.wait4(process, 0)
    return None, usage


def perform_all(cases: list[dict[str, Any]], jobs: int, folder: Path) -> list[Measured]:
    """What each command did, by that many processes."""
    started = []
    for job in range(jobs):
        process = os.fork()
        if process == 0:
            measured = [asdict(perform(case)) for case in cases[job::jobs]]
            (folder / f"measured-{job}.json").write_text(json.dumps(measured))
            os._exit(0)
        started.append(process)
    found: list[Measured | None] = [None] * len(cases)
    for job, process in enumerate(started):
        os.waitpid(process, 0)
        rows = json.loads((folder / f"measured-{job}.json").read_text())
        found[job::jobs] = [Measured(**{**row, "seen": tuple(row["seen"])}) for row in rows]
    return [one for one in found if one is not None]


def _import_everything() -> None:
    """Import what the commands need, so that no fork of this process need do it."""
    os.environ["OMP_NUM_THREADS"] = "1"
    from tests.faults.imports import import_packages

    import_packages()
    for name in ("pandas", "pyarrow.parquet", "tests.lpzero.dashboard.served"):
        import_module(name)
    from lpzero import hf
    from lpzero.report import style
    from tests.lpzero.hf.families import FAMILIES

    for name in ("gpt2", "vit", "llama"):
        hf.build(FAMILIES[name])
    import_module("transformers.models.mixtral.modeling_mixtral")
    style.encode = lambda figure, form: b"<svg></svg>"  # drawing takes long and reads nothing
    gc.collect()
    gc.freeze()  # a collection in a fork would copy every page


def _digests(paths: list[str]) -> dict[str, bytes | None]:
    """The bytes of the files, None for those that do not exist; folders by what is in them."""
    found: dict[str, bytes | None] = {}
    for path in map(Path, paths):
        inner = [one for one in path.rglob("*") if one.is_file()] if path.is_dir() else [path]
        found |= {str(one): one.read_bytes() if one.exists() else None for one in inner}
    return found


def judge(case: dict[str, Any], measured: Measured, honest: Measured) -> list[str]:
    """The outcomes of a case: its failures, or that it was refused or accepted."""
    found = {_CLASSES[line.split()[0]] for line in measured.seen}
    if measured.is_changed:
        found.add("overwritten")
    said = measured.out + measured.err
    if measured.code is None:
        found.add("hang")
    elif measured.code < 0:
        found.add("crash")
    elif "Traceback" in said:
        found.add("traceback")
    elif "unexpected" in said:
        found.add("unexpected")
    elif measured.code not in case["codes"] or (measured.code and not _is_one_line(measured)):
        found.add("failed")
    if any(not (c.isprintable() or c in "\n\r\t") for c in measured.err):
        found.add("failed")
    if measured.seconds - honest.seconds > MOST_SECONDS:
        found.add("too slow")
    if measured.megabytes - honest.megabytes > MOST_MEGABYTES:
        found.add("too large")
    return sorted(found, key=FAILURES.index) or ["refused" if measured.code else "accepted"]


def _is_one_line(measured: Measured) -> bool:
    """Whether nothing but one error, and notes and progress before it, was printed."""
    *others, last = measured.err.splitlines() or [""]
    is_noted = all(line.startswith("note: ") or "\N{BOX DRAWINGS HEAVY HORIZONTAL}" in line
                   for line in others)  # fmt: skip
    return not measured.out and is_noted and last.startswith("error: ")


def check(folder: Path, jobs: int, only: str) -> int:
    """Try every input and print the counts and the failures; the number of inputs that failed."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    words = [sys.executable, "-P", "-m", "tests.faults.hostile_inputs", str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    environment |= {"LPZERO_CACHE": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run(words, env=environment, check=True)
    made = json.loads((folder / "cases.json").read_text())
    cases = [case for case in made["cases"] if only in case["name"]]
    _import_everything()
    like = list(made["honest"].values())
    honest = dict(zip(made["honest"], perform_all(like, jobs, folder), strict=True))
    for name, one in honest.items():
        print(f"honest: {name}: {one.seconds:.2f} s, {one.megabytes:.0f} MB", flush=True)
        words = made["honest"][name]["words"]
        assert (one.code, one.seen) == (0, ()), f"{words}: {one.seen} {one.err[-600:]}"
    performed = perform_all(cases, jobs, folder)
    rows = []
    for case, one in zip(cases, performed, strict=True):
        same = honest[case["honest"]]
        row = {**case, "outcomes": judge(case, one, same), "said": one.err[-300:]}
        row |= {"seconds": one.seconds - same.seconds, "seen": one.seen[:3], "code": one.code}
        rows.append({**row, "megabytes": one.megabytes - same.megabytes})
    (folder / "outcomes.json").write_text(json.dumps(rows, indent=1))
    return _print(rows)


def _print(rows: list[dict[str, Any]]) -> int:
    print(f"\n{len(rows)} hostile inputs")
    for line in _table(rows):
        print(line)
    counts = Counter(outcome for row in rows for outcome in row["outcomes"])
    print("\n" + ", ".join(f"{name} {counts[name]}" for name in FAILURES))
    failed = [row for row in rows if not {"refused", "accepted"} & set(row["outcomes"])]
    for row in failed:
        print(
            f"{row['name']}: {', '.join(row['outcomes'])}; code {row['code']},"
            f" {row['seconds']:+.2f} s, {row['megabytes']:+.0f} MB\n  {' '.join(row['words'])}"
            f"\n  {row['seen']} {row['said']!r}"
        )
    return len(failed)


def _table(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Lines of Markdown: per group the outcomes and the most that an input took."""
    yield "\n| inputs | n | refused | accepted | failed | seconds, at most | MB, at most |"
    yield "|---|---|---|---|---|---|---|"
    groups = sorted({row["name"].partition(": ")[0] for row in rows})
    for name in [*groups, "all"]:
        of = [row for row in rows if name in ("all", row["name"].partition(": ")[0])]
        counts = Counter(row["outcomes"][0] for row in of)
        n_good = counts["refused"] + counts["accepted"]
        seconds, megabytes = (max(row[key] for row in of) for key in ("seconds", "megabytes"))
        yield (
            f"| {name} | {len(of)} | {counts['refused']} | {counts['accepted']} |"
            f" {len(of) - n_good} | {seconds:+.2f} | {megabytes:+.0f} |"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/hostile"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", default="", help="inputs whose names contain this")
    given = parser.parse_args()
    n_failed = check(given.out.resolve(), given.jobs, given.only)
    print(measured())
    raise SystemExit(1 if n_failed else 0)


if __name__ == "__main__":
    main()
