"""Kills, failing calls and corruptions over every verb, run directories, the cache and tables.

    python -m tests.faults.run --out runs/faults

Every case is a line of a journal in --out, so the same command continues. Exits with code 1 unless
there is no silent difference, no traceback, no hang and no other failure.
"""

from __future__ import annotations

import argparse
import errno
import gc
import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from experiments.measured import measured

os.environ.setdefault("OMP_NUM_THREADS", "1")

from lpzero.files import write_json
from lpzero.judgement import bootstrap
from lpzero.report import style
from lpzero.runs.journal import Journal
from spaces.training import tasks
from tests.faults import workload
from tests.faults.attempt import Attempt, Failure, Kill, attempt
from tests.faults.damage import DAMAGES, WEIGHTS
from tests.faults.imports import import_packages
from tests.faults.made_tables import register, write
from tests.faults.workload import (
    FAILING,
    KILLED,
    READ_AFTER_KILLS,
    RUNS,
    TARGETS,
    Place,
    Target,
)

FAILURES = ("silent difference", "differs after repair", "traceback", "hang", "crash", "failed")
KILLS = 130  # asked for; some come after the end
# Errors of a full disk, of a broken one and of missing rights, in turns.
ERRORS = (errno.ENOSPC, errno.EIO, errno.EACCES)
PARTS = 20  # of the cases, more than there are processes


@dataclass(frozen=True)
class Undisturbed:
    """The run directories, the cache and the tables that cases copy; `part` of the cases."""

    root: Path
    part: int = 0

    @property
    def case(self) -> Path:
        return self.root / f"case-{self.part}"

    @property
    def reference(self) -> Path:
        return self.root / f"reference-{self.part}"

    def place(self, run: str = "none") -> Place:
        return Place(self.root / "runs" / run, self.root / "cache", self.root / "data")

    def other(self, run: str) -> Path:
        return self.root / "others" / run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/faults"))
    parser.add_argument("--kills", type=int, default=KILLS)
    parser.add_argument("--corruptions", type=int, default=sum(t.share for t in TARGETS))
    parser.add_argument("--errors", type=int, default=len(ERRORS), help="tried at every call")
    parser.add_argument("--failing", nargs="*", choices=FAILING, default=FAILING, help="commands")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    out = given.out.resolve()
    _prepare()
    _make(Undisturbed(out))
    cases = [*_kill_cases(given.kills), *_damage_cases(given.corruptions)]
    turns = range(given.errors)
    cases += [{"failing": verb, "turn": turn} for verb in given.failing for turn in turns]
    parts = [Part(Undisturbed(out, part), cases) for part in range(PARTS)]
    for process in [_fork(parts[job :: given.jobs]) for job in range(given.jobs)]:
        os.waitpid(process, 0)
    failed = _print([record for part in parts for record in part.records()])
    words = [sys.executable, "-m", "tests.faults.hostile", "--jobs", str(given.jobs)]
    failed += subprocess.run([*words, "--out", str(out / "hostile")], check=False).returncode
    print(measured())
    raise SystemExit(1 if failed else 0)


@dataclass(frozen=True)
class Part:
    """Every n-th case, by one process; its journal says which are done."""

    made: Undisturbed
    cases: list[dict[str, Any]]

    def journal(self) -> Journal:
        number = self.made.part
        place = f"{len(self.cases)} cases, part {number} of {PARTS}"
        return Journal(self.made.root / f"cases-{number}.jsonl", lambda *_: True, place)

    def records(self) -> list[dict[str, Any]]:
        """The last outcome of every case: what failed is tried again when the script is."""
        with self.journal() as journal:
            return list({record["number"]: record for record in journal.records()}.values())

    def run(self) -> None:
        done = {r["number"] for r in self.records() if r["outcome"] not in FAILURES}
        with self.journal() as journal:
            journal.go_to(len(journal))
            for number in range(len(self.cases))[self.made.part :: PARTS]:
                if number in done:
                    continue
                case = self.cases[number]
                judge = _killed if "verb" in case else _failing if "failing" in case else _damaged
                journal.append([{"number": number, **judge(self.made, case, number)}])
        shutil.rmtree(self.made.case, ignore_errors=True)


def _fork(parts: list[Part]) -> int:
    process = os.fork()
    if process == 0:
        code = 1
        try:
            for part in parts:
                part.run()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return process


def _prepare() -> None:
    """Import what commands need, so that forks need not, and leave out what is not under test.

    Figures are made and not drawn; intervals have few resamples; trainings are hardly measured.
    """
    import_packages()
    tasks.N_HELD_OUT_WINDOWS = 8
    bootstrap.RESAMPLES = 50
    style.encode = _figure_data
    gc.collect()
    gc.freeze()  # a collection in a fork would copy every page


def _figure_data(figure: Any, form: str) -> bytes:
    """A digest of what a figure shows, instead of the figure."""
    shown: list[Any] = []
    for axes in figure.axes:
        shown += [line.get_xydata().tolist() for line in axes.lines]
        shown += [str(one.get_offsets()) + str(one.get_array()) for one in axes.collections]
        shown += [str(one) for one in axes.patches]
        shown += [one.get_text() for one in axes.texts]
        shown += [str(one.get_array()) for one in axes.images]
    digest = hashlib.sha256(repr(shown).encode()).hexdigest()
    return f"<svg><text>{digest}</text></svg>".encode()


def _make(made: Undisturbed) -> None:
    """Every run once, and once more with other options, undisturbed."""
    data = made.root / "data"
    is_ready = (made.root / "ready").exists()
    if not is_ready:
        shutil.rmtree(made.root, ignore_errors=True)
        write(data)
    register(data, data)
    if is_ready:
        return
    workload.fill(made.place(), workload.STATS)
    workload.fill(made.place(), workload.RANK)
    for run, (command, others) in RUNS.items():
        workload.fill(made.place(run), command)
        workload.fill(replace(made.place(), run=made.other(run)), command, others)
    for verb, (command, _) in KILLED.items():
        if verb in ("exhaust --terms 2", "search --compare"):
            workload.fill(made.place(verb), command)
    (made.root / "ready").touch()


def _kill_cases(n: int) -> list[dict[str, Any]]:
    """Cases of up to three kills each, over all verbs."""
    rng = random.Random("kills")
    verbs, cases, count = list(KILLED), [], 0
    while count < n:
        kills = rng.randint(1, 3)
        cases.append({"verb": verbs[len(cases) % len(verbs)], "kills": kills})
        count += kills
    return cases


def _damage_cases(n: int) -> list[dict[str, Any]]:
    rng = random.Random("corruptions")
    total = sum(target.share for target in TARGETS)
    cases = [
        {"target": target.name, "command": number % len(target.commands)}
        for target in TARGETS
        for number in range(max(1, round(target.share * n / total)))
    ]
    rng.shuffle(cases)
    return cases


def _killed(made: Undisturbed, case: dict[str, Any], number: int) -> dict[str, Any]:
    """The outcome of a command that was killed some times and then finished."""
    rng = random.Random(f"kill {number}")
    command, is_empty = KILLED[case["verb"]]
    case_root = made.case
    whole = _whole(made, case["verb"])
    place = workload.copy(made.place(), _place(case_root), False, not is_empty)
    died, problem = 0, None
    for _ in range(case["kills"]):
        kill = _moment(whole, rng, has_workers="jobs" in case["verb"])
        killed = attempt(command(place), case_root, kill)
        died += killed.code == -9 or killed.is_worker_killed
        if kill.is_worker and _class(killed) is not None:
            problem = _class(killed)
    final = attempt(command(place), case_root)
    unread, more = _read_as_well(place, case_root, rng)
    died += more
    outcome = _class(final) or problem or unread
    same = _same_run(whole, place)
    if outcome is None:
        printed = workload.printed(final, place)
        same = same and printed == whole["printed"]
        outcome = "as if uninterrupted" if same else "silent difference"
    return {**case, "died": died, "outcome": outcome, "said": final.err[-400:] if not same else ""}


def _failing(made: Undisturbed, case: dict[str, Any], number: int) -> dict[str, Any]:
    """The outcome of a command in which every call that writes fails in turn, then is repeated."""
    command, _ = KILLED[case["failing"]]
    whole = _whole(made, case["failing"], False)
    outcomes: Counter[str] = Counter()
    said, call = "", 0
    while True:
        call += 1
        place = workload.copy(made.place(), _place(made.case), False)
        error = ERRORS[(call + case["turn"]) % len(ERRORS)]
        disturbed = attempt(command(place), made.case, Failure(call, error, place.run))
        if disturbed.code == 0 and disturbed.steps < call:
            break
        final = attempt(command(place), made.case)
        outcome = _after_failure(whole, place, disturbed, final)
        outcomes[outcome] += 1
        if outcome in FAILURES:
            said += (
                f"call {call}, {errno.errorcode[error]}: {disturbed.err[-300:]}{final.err[-300:]}"
            )
    worst = next((name for name in FAILURES if outcomes[name]), "as if undisturbed")
    return {**case, "outcome": worst, "outcomes": dict(outcomes), "said": said[:2000]}


def _after_failure(whole: dict[str, Any], place: Place, disturbed: Attempt, final: Attempt) -> str:
    """What one failing call did to the command, and to the same command run again."""
    bad = _class(disturbed)
    if bad in FAILURES:
        return bad
    if final.code != 0:
        return _class(final) if _class(final) in FAILURES else "failed"
    prints = [final] if bad == "refused" else [disturbed, final]
    same = all(workload.printed(one, place) == whole["printed"] for one in prints)
    if not (same and _same_run(whole, place)):
        return "silent difference"
    return "refused, then as if undisturbed" if bad == "refused" else "as if undisturbed"


def _whole(made: Undisturbed, verb: str, may_be_empty: bool = True) -> dict[str, Any]:
    """Time, steps and results of the undisturbed command, by default with its usual cache."""
    command, is_empty = KILLED[verb]
    is_empty = is_empty and may_be_empty

    def measure() -> dict[str, Any]:
        place = _place(made.reference)
        workload.copy(made.place(), place, False, not is_empty)
        found = attempt(command(place), made.reference)
        assert found.code == 0, found.err
        return {
            "seconds": found.seconds,
            "steps": found.steps,
            "printed": workload.printed(found, place),
            "files": workload.contents(place.run),
            "cache": workload.contents(place.cache) if is_empty else {},
        }

    return _known(made, f"killed {verb}{' with no cache' * is_empty}", measure)


def _place(root: Path) -> Place:
    return Place(root / "run", root / "cache", root / "data")


def _known(made: Undisturbed, name: str, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What `measure` returned when it was first called, for any process."""
    path = made.root / "references" / f"{name}.json"
    if not path.exists():
        write_json(path, measure())
        shutil.rmtree(made.reference, ignore_errors=True)
    return dict(json.loads(path.read_text()))


def _moment(whole: dict[str, Any], rng: random.Random, has_workers: bool) -> Kill:
    if has_workers and rng.random() < 0.6:
        return Kill(seconds=rng.uniform(0, whole["seconds"]), is_worker=True)
    if whole["steps"] and rng.random() < 0.6:
        return Kill(step=rng.randint(1, whole["steps"]), share=rng.random())
    return Kill(seconds=rng.uniform(0, whole["seconds"]))


def _same_run(whole: dict[str, Any], place: Place) -> bool:
    found = {n: t for n, t in workload.contents(place.run).items() if n != "formula.csv"}
    same = found == whole["files"]
    if whole["cache"]:
        same = same and workload.contents(place.cache) == whole["cache"]
    return same and not list(place.run.glob(".*.tmp"))


def _read_as_well(place: Place, root: Path, rng: random.Random) -> tuple[str | None, int]:
    """What goes wrong when readers of the finished run are killed and called again; and kills."""
    died = 0
    if not (place.run / "result.json").exists():
        return None, died
    for command in READ_AFTER_KILLS.values():
        if rng.random() < 0.3:
            killed = attempt(command(place), root, Kill(seconds=rng.uniform(0, 0.4)))
            died += killed.code == -9
            found = attempt(command(place), root)
            if found.code != 0 and "no formulas to export" not in found.err:
                return _class(found) or "failed", died
    return None, died


def _damaged(made: Undisturbed, case: dict[str, Any], number: int) -> dict[str, Any]:
    """The outcome of a command after one file was damaged."""
    rng = random.Random(f"corruption {number}")
    target = next(t for t in TARGETS if t.name == case["target"])
    root, place = made.case, _place(made.case)
    source = made.place(target.run or "none")
    workload.copy(source, place, target.run is not None)
    kinds, weights = list(DAMAGES), [WEIGHTS.get(kind, 1) for kind in DAMAGES]
    kind = rng.choices(kinds, weights)[0]
    path, others = _chosen(made, target, place, kind, rng)
    DAMAGES[kind](path, others, rng)
    command = target.commands[case["command"]]
    data = made.root / "data"
    register(place.data, data)
    found = attempt(command(place), root)
    register(data, data)
    outcome = _judged(made, target, command, place, found)
    name = path.relative_to(root).as_posix()
    verb = command(place)[0]
    said = found.err[-300:] if outcome in FAILURES else ""
    return {**case, "kind": kind, "file": name, "ran": verb, "outcome": outcome, "said": said}


def _chosen(
    made: Undisturbed, target: Target, place: Place, kind: str, rng: random.Random
) -> tuple[Path, list[Path]]:
    folder = {"run": place.run, "cache": place.cache, "data": place.data}[target.area]
    files = sorted(p for pattern in target.patterns for p in folder.glob(pattern) if p.is_file())
    path = rng.choice(files)
    others = [p for p in files if p != path and p.suffix == path.suffix]
    if kind == "of another run" and target.run is not None:
        foreign = made.other(target.run) / path.relative_to(folder)
        others = []
        if foreign.is_file():
            scratch = place.run.parent / f"foreign{path.suffix}"
            shutil.copy(foreign, scratch)
            others = [scratch]
    return path, others


def _judged(
    made: Undisturbed, target: Target, command: workload.Command, place: Place, found: Attempt
) -> str:
    bad = _class(found)
    if bad is not None:
        return bad
    expected = _expected(made, target, command)
    same = workload.printed(found, place) == expected["printed"]
    if command is workload.REPORT:
        same = same and workload.page(place) == expected["page"]
    elif not command.is_reader and target.run is not None:
        same = same and workload.contents(place.run) == expected["files"]
    if target.area == "cache" and command is workload.STATS:
        # The cache also has sketches of other seeds, which this command does not read.
        of_command = _whole(made, "stats")["cache"]
        after = workload.contents(place.cache)
        same = same and all(after.get(name) == one for name, one in of_command.items())
    if same:
        return "repaired" if found.notes else "unaffected"
    may_differ = command.is_reader or target.area == "data"
    if found.notes:
        return "noted" if may_differ else "differs after repair"
    return "silent difference"


def _expected(made: Undisturbed, target: Target, command: workload.Command) -> dict[str, Any]:
    def measure() -> dict[str, Any]:
        place = _place(made.reference)
        workload.copy(made.place(target.run or "none"), place, target.run is not None)
        found = attempt(command(place), made.reference)
        assert found.code == 0, found.err
        assert target.run is None or not found.notes, found.err
        return {
            "printed": workload.printed(found, place),
            "page": workload.page(place),
            "files": workload.contents(place.run),
        }

    return _known(made, f"{target.name} {target.commands.index(command)}", measure)


def _class(found: Attempt) -> str | None:
    """The outcome of a command that did not end well; None if it did."""
    if found.code is None:
        return "hang"
    if found.code < 0:
        return "crash"
    if "Traceback" in found.err or "unexpected " in found.err:
        return "traceback"
    if found.code == 0:
        return None
    errors = [line for line in found.err.splitlines() if line.startswith("error: ")]
    return "refused" if found.code in (1, 2) and len(errors) == 1 else "failed"


def _print(records: list[dict[str, Any]]) -> int:
    """Print the counts; the number of cases that failed."""
    kills = [record for record in records if "verb" in record]
    damages = [record for record in records if "target" in record]
    print(f"{sum(r['died'] for r in kills)} kills in {len(kills)} runs")
    for line in _table(kills, "verb"):
        print(line)
    failing = [record for record in records if "failing" in record]
    counts = Counter({"calls": 0})
    for record in failing:
        counts += Counter(record["outcomes"])
    print(f"\n{counts.total()} failing calls: {dict(counts)}")
    for line in _table(failing, "failing"):
        print(line)
    print(f"\n{len(damages)} corruptions")
    for line in _table(damages, "target"):
        print(line)
    for line in _table(damages, "kind"):
        print(line)
    failed = [record for record in records if record["outcome"] in FAILURES]
    for record in failed:
        print(record)
    counts = Counter(record["outcome"] for record in records)
    print(", ".join(f"{name} {counts[name]}" for name in FAILURES))
    return len(failed)


def _table(records: list[dict[str, Any]], column: str) -> Iterator[str]:
    outcomes = sorted({record["outcome"] for record in records})
    yield f"\n| {column} | n | {' | '.join(outcomes)} |"
    yield "|---|" + "---|" * (len(outcomes) + 1)
    for name in sorted({record[column] for record in records}):
        of = Counter(record["outcome"] for record in records if record[column] == name)
        yield f"| {name} | {of.total()} | {' | '.join(str(of[o]) for o in outcomes)} |"


if __name__ == "__main__":
    main()
