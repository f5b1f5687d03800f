"""Puts small bugs into a copy of the code, one at a time, and counts those that a test catches.

    python -m tests.mutants.run [--only TEXT] [--out mutants.jsonl] [--minutes 60]
    python -m tests.mutants.run --random 100 --seed N

Every mutant is one replacement in one file (`bugs.py` and the lists beside it). The tests named
with it, a part of `make test`, run on the copy and stop at the first failure; a mutant that they
pass has survived. Results are lines of a file, and a second call continues where the first stopped.
The tests have to pass on the unchanged copy first. With `--random` mutants are drawn
(`random_bugs.py`), and the tests that enter the changed function run before the others of the
files that import its module or stand beside it.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from experiments.measured import prints_measured

# Before a library reads it: the tests' tensors are tiny.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from tests.mutants import (
    engine_bugs,
    output_bugs,
    primitive_bugs,
    random_bugs,
    space_bugs,
)
from tests.mutants.bugs import Mutant
from tests.mutants.random_bugs import RandomMutant, Tracer

ROOT = Path(__file__).parents[2]
BUGS = (*primitive_bugs.BUGS, *space_bugs.BUGS, *engine_bugs.BUGS, *output_bugs.BUGS)
MUTANTS = tuple(mutant for bugs in BUGS for mutant in bugs.mutants())
TIMEOUT = 600  # seconds of a processor for the tests of a mutant
_PATIENCE = 10  # times as many seconds of the clock, on a busy machine
_MOST_ENTERING = 200  # tests, the shortest, that run first
_NO_TESTS = 5  # pytest's exit code if every test was deselected
_WRONG_TREE = 77  # ours, if the tests would not see the bug
_OURS = ("lpzero", "primitives", "spaces", "experiments", "tests")
CAUGHT, SURVIVED, HUNG = "caught", "survived", "hung"
# Imported once, before the process is forked for each mutant: most of a short test's time.
_LIBRARIES = (
    "pytest", "hypothesis.extra.numpy", "torch", "scipy.stats", "sympy", "deap.gp", "joblib",
    "click.testing", "rich.progress", "yaml", "matplotlib.figure",
)  # fmt: skip


@prints_measured
def main() -> None:
    """Run the mutants that have no result yet, then print the share caught and the survivors."""
    parser = argparse.ArgumentParser(description="Count the small bugs that the tests catch.")
    parser.add_argument("--only", default="", help="Only mutants whose file or bug has this text.")
    parser.add_argument("--out", type=Path, default=Path("mutants.jsonl"), help="The results.")
    parser.add_argument(
        "--no-check", action="store_true", help="Do not run the tests on the unchanged code first."
    )
    parser.add_argument("--random", type=int, default=0, help="Draw so many instead of the list.")
    parser.add_argument("--seed", type=int, default=0, help="Of the draw.")
    parser.add_argument("--minutes", type=float, default=60, help="Start no mutant after this.")
    asked = parser.parse_args()
    listed = random_bugs.draw(ROOT, asked.random, asked.seed) if asked.random else MUTANTS
    chosen = [one for one in listed if asked.only in one.file or asked.only in one.bug]
    chosen = [one for one in chosen if _applies(one)]
    results = _stored(asked.out)
    missing = [one for one in chosen if one.key not in results]
    if missing:
        _run(missing, results, asked)
    _summary(chosen, results)


def _run(missing: Sequence[Mutant], results: dict[str, str], asked: argparse.Namespace) -> None:
    """Try these mutants; add their fates to the results and to the file."""
    end = time.monotonic() + 60 * asked.minutes
    for library in _LIBRARIES:
        importlib.import_module(library)
    with tempfile.TemporaryDirectory() as folder, asked.out.open("a") as file:
        copy = _copy(Path(folder))
        if not (asked.no_check or asked.random):  # drawn ones are traced on the unchanged code
            _check(copy, missing)
        for number, mutant in enumerate(missing, 1):
            if time.monotonic() > end:
                break
            start = time.monotonic()
            fate = results[mutant.key] = _fate(copy, mutant)
            line = {"key": mutant.key, "fate": fate, "bug": mutant.bug}
            print(json.dumps(line), file=file, flush=True)
            told = f"{number}/{len(missing)} {fate} {time.monotonic() - start:.0f} s"
            print(f"{told}  {mutant.file}: {mutant.bug}", flush=True)


def _applies(mutant: Mutant) -> bool:
    """Whether the code is still what the mutant replaces; says so if not."""
    try:
        mutant.apply((ROOT / mutant.file).read_text())
    except (ValueError, OSError) as error:
        print(f"does not apply and is not counted: {error}")
        return False
    return True


def _copy(folder: Path) -> Path:
    """A copy of the files under version control, and of new ones."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, target)
    return folder


def _check(copy: Path, mutants: Sequence[Mutant]) -> None:
    """Exit unless the tests pass on the unchanged code."""
    tests = tuple(dict.fromkeys(test for mutant in mutants for test in mutant.tests))
    print(f"the tests on the unchanged code: {len(tests)} places", flush=True)
    if _test(copy, tests, 6 * TIMEOUT, "--tb=short") != 0:
        sys.exit("the tests do not pass on the unchanged code")


def _fate(copy: Path, mutant: Mutant) -> str:
    if isinstance(mutant, RandomMutant):
        # Those that enter the changed function, then the others of the same files.
        entering, others = random_bugs.ordered(mutant, _traced(copy, mutant.file))
        tried = [(entering[:_MOST_ENTERING],), ([*others, *entering[_MOST_ENTERING:]],)]
    else:
        # Most are caught by a fast test.
        tried = [(mutant.tests, "-m", "not slow"), (mutant.tests, "-m", "slow")]
    path = copy / mutant.file
    text = path.read_text()
    path.write_text(mutant.apply(text))
    code: int | None = _NO_TESTS
    try:
        for tests, *options in tried:
            if tests and code in (0, _NO_TESTS):
                code = _test(copy, tests, TIMEOUT, "--tb=no", *options)
    finally:
        path.write_text(text)
    if code is None:
        return HUNG
    # Other codes: a test failed, or the package could not be imported.
    return SURVIVED if code in (0, _NO_TESTS) else CAUGHT


@cache
def _traced(copy: Path, file: str) -> dict[str, Any]:
    """The tests of a module with the functions that each enters; they pass on unchanged code."""
    found: dict[str, Any] = {}
    for name in random_bugs.test_files(copy, file):
        found |= _traced_file(copy, name)
    return found


@cache
def _traced_file(copy: Path, name: str) -> dict[str, Any]:
    place = copy / "traced.json"
    tracer = Tracer(copy.resolve(), lambda tests: place.write_text(json.dumps(tests)) and None)
    code = _test(copy, [name], 6 * TIMEOUT, "--tb=short", plugins=[tracer])
    if code not in (0, _NO_TESTS):
        sys.exit(f"{name} does not pass on the unchanged code")
    found: dict[str, Any] = json.loads(place.read_text())
    return found


def _test(
    copy: Path,
    tests: Sequence[str],
    seconds: int,
    *options: str,
    plugins: Sequence[object] = (),
) -> int | None:
    """pytest's exit code on these tests, in a forked process; None after too many seconds."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        _run_tests(copy, [*tests, *options], plugins)
    end = time.monotonic() + _PATIENCE * seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            if code == _WRONG_TREE:
                sys.exit("the tests import this tree and not the copy with the bug")
            return 1 if code < 0 else code  # the process died of the bug
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _run_tests(copy: Path, arguments: list[str], plugins: Sequence[object]) -> None:
    """In the child: run pytest on the copy and leave; never returns."""
    import pytest

    code = 3
    try:
        os.setsid()
        os.chdir(copy)
        # The copy's packages, not those of this tree.
        sys.path[:] = [str(copy), *(p for p in sys.path if p and Path(p) != ROOT)]
        for name in [m for m in sys.modules if m.split(".")[0] in _OURS]:
            del sys.modules[name]
        # lpzero's finders know where the packages beside it are, those of this tree.
        ours = [type(finder).__module__ in _OURS for finder in sys.meta_path]
        sys.meta_path[:] = [
            f for f, is_ours in zip(sys.meta_path, ours, strict=True) if not is_ours
        ]
        for name in _OURS[:3]:  # a package of this tree would hide the bug
            found = Path(str(importlib.import_module(name).__file__)).resolve()
            if not found.is_relative_to(copy.resolve()):
                os._exit(_WRONG_TREE)
        sys.dont_write_bytecode = True
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
        null = os.open(os.devnull, os.O_WRONLY)
        if "--tb=no" in arguments:
            os.dup2(null, 1)
            os.dup2(null, 2)
        # Libraries that were imported before are not rewritten, and pytest warns about it.
        quiet = ["-p", "no:xdist", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
        code = int(pytest.main([*arguments, "-x", *quiet], [*plugins]))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _stored(path: Path) -> dict[str, str]:
    """The fate of each mutant that was run before, by key."""
    if not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    return {line["key"]: line["fate"] for line in lines}


def _summary(chosen: Sequence[Mutant], results: dict[str, str]) -> None:
    done = [one for one in chosen if one.key in results]
    fates = Counter(results[one.key] for one in done)
    n_caught = fates[CAUGHT] + fates[HUNG]  # a run that hangs does not pass
    for one in done:
        if results[one.key] == SURVIVED:
            print(f"survived: {one.file}: {one.bug} ({one.survives or 'no reason is given'})")
    drawn = [one for one in done if isinstance(one, RandomMutant)]
    for name in ("package", "kind", "everything"):
        of = [(getattr(one, name, name), results[one.key] != SURVIVED) for one in drawn]
        print(*random_bugs.shares_caught(of), sep="\n", end="\n\n" if of else "")
    packages = Counter(one.file.split("/")[0] for one in done)
    print(f"{len(done)} of {len(chosen)} mutants run ({dict(packages)}),", end=" ")
    if done:
        print(f"{n_caught} caught: {n_caught / len(done):.1%}")


if __name__ == "__main__":
    main()
