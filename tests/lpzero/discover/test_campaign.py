"""Campaign directories: killed at any moment they go on as if nothing had happened."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lpzero import files
from lpzero.discover import campaign as running
from lpzero.discover.candidate import Candidate
from lpzero.errors import RunError, WriteError
from lpzero.judgement.measures import Measures
from lpzero.runs import layout
from lpzero.runs.directory import locked
from lpzero.runs.journal import Journal
from primitives.parser import parse
from spaces.tables.splits import Split
from tests import forks
from tests.lpzero.sealed_runs import rewrite_journal
from tests.lpzero.small_campaign import discovery, run_or_resume, sketches, table

COMPARED = (layout.JOURNAL, layout.HALL, layout.HALL_CSV, layout.HISTORY, layout.CHECKPOINT,
            layout.CONFIG, layout.RESULT, layout.SCORES)  # fmt: skip


@pytest.fixture(autouse=True)
def _save_every_generation(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "_SAVE_SECONDS", -1.0)


@pytest.fixture(scope="module")
def whole(campaign: Path) -> Path:
    """A campaign that nothing disturbed."""
    return campaign


@pytest.fixture(scope="module")
def finished_part(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same campaign with fewer generations: to be copied, damaged and extended."""
    out = tmp_path_factory.mktemp("part") / "campaign"
    discovery(out, generations=4).run()
    return out


def assert_equal(out: Path, whole: Path) -> None:
    for name in COMPARED:
        assert (out / name).read_bytes() == (whole / name).read_bytes(), name


def lines(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / layout.JOURNAL).read_text().splitlines()]


class Killed(BaseException):
    """Stands for kill -9: nothing on its way may tidy up the journal."""


@pytest.mark.slow
def test_equal_seeds_give_equal_directories(tmp_path: Path, whole: Path) -> None:
    discovery(tmp_path / "again", jobs=2).run()
    assert_equal(tmp_path / "again", whole)


@pytest.mark.slow
def test_the_journal_holds_every_fate_and_lineage(whole: Path) -> None:
    found = lines(whole)
    assert [line["id"] for line in found] == list(range(len(found)))
    for line in found:
        parse(line["formula"])
        assert sum(name in line for name in ("fitness", "rejected", "repeats")) == 1
        assert all(parent < line["id"] for parent in line["parents"])
    evaluated = [line["key"] for line in found if "key" in line]
    assert len(evaluated) == len(set(evaluated)) == 7 * 12
    result = json.loads((whole / layout.RESULT).read_text())
    assert result["evaluated"] == len(evaluated)
    assert sum(result["rejected"].values()) == sum("rejected" in line for line in found)
    assert result["repeats"] == sum("repeats" in line for line in found)


@pytest.mark.slow
def test_killed_at_four_moments_it_ends_as_if_it_had_not_been(
    tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Torn writes, and deaths before and after each of them; tests/faults tries hundreds."""
    rng = random.Random(0)
    write, save = Journal._write, files.write_bytes
    out = tmp_path / "campaign"

    def torn(journal: Journal, new: list[bytes]) -> None:
        if rng.random() < 0.3:
            data = b"".join(new)
            journal._file.append(data[: rng.randrange(len(data) + 1)])
            raise Killed
        write(journal, new)

    def half(path: Path, data: bytes) -> None:
        if rng.random() < 0.15:
            path.with_name(f".{path.name}.host-1-ab.tmp").write_bytes(data[: len(data) // 2])
            raise Killed
        save(path, data)
        if rng.random() < 0.1:
            raise Killed

    for _ in range(4):
        with monkeypatch.context() as patch:
            patch.setattr(Journal, "_write", torn)
            patch.setattr(files, "write_bytes", half)
            with pytest.raises(Killed):
                discovery(out, resume=True).run()
    discovery(out, resume=True).run()
    assert_equal(out, whole)


@pytest.mark.slow
def test_kill_minus_nine_really(tmp_path: Path) -> None:
    out, other = tmp_path / "killed", tmp_path / "whole"
    process = forks.start(run_or_resume, out, 300)
    deadline = time.monotonic() + 600
    while _size(out) < 4000 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    n_lines = len((out / layout.JOURNAL).read_bytes().splitlines())
    generations = 1 + max(line["generation"] for line in lines_of_whole(out))
    for folder_ in (out, other):
        run_or_resume(folder_, generations)
    assert len(lines(out)) >= n_lines - 1
    assert_equal_but_config(out, other)


def assert_equal_but_config(out: Path, other: Path) -> None:
    """The number of generations asked for first is all that may differ."""
    for name in set(COMPARED) - {layout.CONFIG}:
        assert (out / name).read_bytes() == (other / name).read_bytes(), name


def lines_of_whole(out: Path) -> list[dict[str, Any]]:
    text = (out / layout.JOURNAL).read_text()
    return [json.loads(line) for line in text[: text.rfind("\n")].splitlines()]


def _size(out: Path) -> int:
    path = out / layout.JOURNAL
    return path.stat().st_size if path.exists() else 0


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        "torn",
        "garbage",
        "empty state",
        "no state",
        "half state",
        "odd state",
        "changed state",
        "short journal",
        "changed journal",
        "no formula",
        "no journal",
    ],
)
def test_damage_is_repaired(tmp_path: Path, whole: Path, finished_part: Path, damage: str) -> None:
    out = shutil.copytree(finished_part, tmp_path / "campaign")
    journal, state = out / layout.JOURNAL, out / layout.CHECKPOINT
    data = journal.read_bytes()
    if damage == "torn":
        journal.write_bytes(data + b'{"id":9999,"gener')
    elif damage == "garbage":
        journal.write_bytes(data[: len(data) // 2] + b"\x00\xff\n" + data[len(data) // 2 :])
    elif damage == "changed journal":
        assert data.count(b'"rho":0.') > 9
        journal.write_bytes(data.replace(b'"rho":0.', b'"rho":0.1', 1))
    elif damage == "no formula":
        records = lines_of_whole(out)
        rewrite_journal(out, [{k: v for k, v in r.items() if k != "seal"} for r in records[:9]]
                        + [{**records[9], "formula": "sum(nothing(W))"}])  # fmt: skip
        state.unlink()
    elif damage == "changed state":
        found = json.loads(state.read_text())
        found["population"][0] += 1
        state.write_text(json.dumps(found))
    elif damage == "short journal":
        journal.write_bytes(data[: len(data) // 3])
    elif damage == "no journal":
        journal.unlink()
    elif damage == "no state":
        state.unlink()
    elif damage == "odd state":
        state.write_text('{"schema": 1, "config": "?"}')
    else:
        text = state.read_text()
        state.write_text("" if damage == "empty state" else text[: len(text) // 2])
    repaired = discovery(out, resume=True).run()
    assert_equal_but_config(out, whole)
    assert bool(repaired.remarks_) == (damage != "no journal")


@pytest.mark.slow
def test_lines_ahead_of_the_state_are_not_judged_again(
    tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = shutil.copytree(whole, tmp_path / "campaign")
    (out / layout.CHECKPOINT).unlink()
    again = discovery(out, resume=True)
    monkeypatch.setattr(
        type(again.objective.tables_fitness[0]), "measure", None
    )  # would fail if called
    again.run()
    assert_equal(out, whole)


@pytest.mark.slow
def test_a_finished_campaign_can_be_extended(
    tmp_path: Path, whole: Path, finished_part: Path
) -> None:
    out = shutil.copytree(finished_part, tmp_path / "campaign")
    found = discovery(out, resume=True, generations=6).run()
    assert len(found.history_) == 7
    assert_equal_but_config(out, whole)


@pytest.mark.slow
def test_a_full_disk_is_said_and_survived(tmp_path: Path, whole: Path, finished_part: Path) -> None:
    out = shutil.copytree(finished_part, tmp_path / "campaign")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    limit = (out / layout.JOURNAL).stat().st_size + 700
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, before[1]))
    try:
        with pytest.raises(WriteError, match=r"cannot write .*journal.*make room"):
            discovery(out, resume=True, generations=6).run()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    discovery(out, resume=True, generations=6).run()
    assert_equal_but_config(out, whole)
    assert not list(out.glob(".*.tmp"))


def test_a_directory_in_use_is_refused(tmp_path: Path) -> None:
    out = tmp_path / "campaign"
    message = f"in use by process {os.getpid()}"
    with locked(out), pytest.raises(RunError, match=message):
        discovery(out).search()
    discovery(out).search()


def test_the_lock_of_a_dead_process_is_no_lock(tmp_path: Path) -> None:
    out = tmp_path / "campaign"
    out.mkdir()
    (out / layout.LOCK).write_text("999999\n")
    discovery(out).search()


def test_a_campaign_does_not_start_over_another(tmp_path: Path, whole: Path) -> None:
    with pytest.raises(RunError, match="holds a campaign: resume it with --resume"):
        discovery(whole).search()
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(RunError, match=r"contains thesis.txt but no campaign"):
        discovery(tmp_path).search()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": 4}, "started with seed 3, not 4"),
        ({"split_seed": 1}, "started with split_seed 0, not 1"),
        ({"preset": "paper"}, "started with method 'front', not 'paper'"),
    ],
)
def test_other_settings_are_another_campaign(
    whole: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(RunError, match=message):
        discovery(whole, resume=True, **options).search()


def test_a_changed_table_is_refused(whole: Path) -> None:
    changed = replace(table(), digest="0" * 64)
    with pytest.raises(RunError, match="table made-up has changed"):
        discovery(whole, table=changed, resume=True).search()


@pytest.mark.parametrize("schema", [1, 99])
def test_a_directory_of_another_schema_is_refused_with_its_version(
    tmp_path: Path, whole: Path, schema: int
) -> None:
    out = shutil.copytree(whole, tmp_path / "campaign")
    content = json.loads((out / layout.CONFIG).read_text())
    content |= {"schema": schema, "versions": {"lpzero": "0.0.7"}}
    (out / layout.CONFIG).write_text(json.dumps(content))
    message = f"written by lpzero 0.0.7 with schema {schema}, but this version reads schema 3"
    with pytest.raises(RunError, match=message):
        discovery(out, resume=True).search()


def test_a_broken_config_is_said(tmp_path: Path) -> None:
    for text in ('{"schema": 3, "ha', '{"schema": 3}'):
        (tmp_path / layout.CONFIG).write_text(text)
        with pytest.raises(RunError, match=r"config.json is broken"):
            discovery(tmp_path, resume=True)


@pytest.mark.slow
def test_test_targets_are_never_read_by_the_search(
    tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(self: Split) -> Any:
        raise AssertionError("the search asked for the test rows")

    from spaces.tables import split

    blind = split(table(), 0).hide_test(table())
    monkeypatch.setattr(Split, "open_test", closed)
    out = tmp_path / "campaign"
    found = discovery(out, table=blind).search()
    assert not found.objective.tables_fitness[0].parts.is_open
    for name in (layout.JOURNAL, layout.HALL, layout.HISTORY):
        assert (out / name).read_bytes() == (whole / name).read_bytes()
    with pytest.raises(AssertionError, match="asked for the test rows"):
        found.judge()


def test_a_candidate_survives_the_journal() -> None:
    made = Candidate(3, 2, "crossover", (1, 2), "-sum(add(W, A))", "sum(add(A, W))", 3,
                     measures=(Measures(0.1, -0.2, 1 / 3),), fitness=(0.1,))  # fmt: skip
    assert Candidate.from_json(json.loads(json.dumps(made.to_json(["t"])))) == made
    assert len(sketches()) == len(table())
