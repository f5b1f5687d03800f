"""The store: written whole, verified, filled in parallel, the same bytes however it was filled."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spaces
from lpzero.errors import InputError, WriteError
from lpzero.parallel import Workers
from lpzero.sketches.builder import Builder, build, build_sketch, sketches
from lpzero.sketches.sketch import MAGIC, SketchError, SketchOptions, encode
from lpzero.sketches.store import Store, listing, prune
from lpzero.statistics import StatisticsError
from spaces.flexibert import FlexiBertSpace
from tests import forks

ROOT = Path(__file__).parents[3]
SPACE = spaces.get("nano-flexibert")
ARCHS = [SPACE.sample(random.Random(seed)) for seed in range(10)]


@dataclass(frozen=True)
class SmallTable:
    space: Any = SPACE
    archs: tuple[Any, ...] = tuple(ARCHS[:3])


def contents(folder: Path) -> dict[str, bytes]:
    """Every file under the folder, hidden ones too."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def n_sketches(folder: Path) -> int:
    return len(list(folder.rglob("*.sketch")))


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of an uninterrupted run in one process."""
    folder = tmp_path_factory.mktemp("reference")
    report, addresses = build(SPACE, ARCHS, Builder(store=Store(folder)))
    assert (report.n, report.built, report.present, report.failed) == (10, 10, 0, {})
    assert len(set(addresses)) == 10
    files = contents(folder)
    assert report.bytes == sum(map(len, files.values()))
    return files


@pytest.mark.slow
def test_two_jobs_write_the_same_bytes(tmp_path: Path, reference: dict[str, bytes]) -> None:
    build(SPACE, ARCHS, Builder(store=Store(tmp_path), workers=Workers(2)))
    assert contents(tmp_path) == reference


def test_a_second_call_makes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = SmallTable()
    first = sketches(table, Builder(store=Store(tmp_path)))
    monkeypatch.setattr(
        "lpzero.sketches.builder.build_sketch", lambda *_: pytest.fail("extracted again")
    )
    again = sketches(table, Builder(store=Store(tmp_path)))
    assert (first.report.built, again.report.built, again.report.present) == (3, 0, 3)
    for one, other in zip(first, again, strict=True):
        np.testing.assert_array_equal(one.numbers, other.numbers)
    assert [s.header["arch"] for s in again] == [SPACE.to_json(arch) for arch in table.archs]
    assert len(again[1:]) == 2
    assert again[-1].header == again[2].header


def test_equal_architectures_share_a_sketch(tmp_path: Path) -> None:
    report, addresses = build(SPACE, [ARCHS[0], ARCHS[0]], Builder(store=Store(tmp_path)))
    assert addresses[0] == addresses[1]
    assert (report.n, report.built, len(contents(tmp_path))) == (2, 2, 1)


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "swapped"])
def test_a_broken_file_is_reported_and_made_again(
    damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(tmp_path)
    _, [name, other] = build(SPACE, ARCHS[:2], Builder(store=store))
    path = store.path(SPACE.name, name)
    whole, swapped = path.read_bytes(), store.path(SPACE.name, other).read_bytes()
    middle = len(whole) // 2
    flipped = whole[:middle] + bytes([whole[middle] ^ 1]) + whole[middle + 1 :]
    damaged = {"cut": whole[:middle], "flip": flipped, "empty": b"", "swapped": swapped}
    path.write_bytes(damaged[damage])
    with pytest.raises(SketchError, match=name):
        store.load(SPACE.name, name)
    report, _ = build(SPACE, ARCHS[:1], Builder(store=store))
    assert (report.built, report.corrupt) == (1, 1)
    assert "rebuilding" in caplog.text
    assert path.read_bytes() == whole


@dataclass(frozen=True)
class Fragile(FlexiBertSpace):
    """A space in which wide models cannot be built until `repaired` exists."""

    name: str = "fragile"
    hidden: tuple[int, ...] = (32, 64)
    vocabulary: int = 300
    embedding: int = 32
    repaired: str = ""

    def build(self, arch: Any, seed: int) -> Any:
        if arch.hidden == 64 and not os.path.exists(self.repaired):
            raise MemoryError("no room for 64\nand a second line")
        return super().build(arch, seed)


@pytest.mark.slow
def test_a_failure_is_recorded_stops_nothing_and_is_retried_on_request(tmp_path: Path) -> None:
    space = Fragile(repaired=str(tmp_path / "repaired"))
    archs = [space.sample(random.Random(seed)) for seed in range(6)]
    wide = [i for i, arch in enumerate(archs) if arch.hidden == 64]
    assert 0 < len(wide) < 6
    store = Store(tmp_path / "store")
    for built in (6 - len(wide), 0):  # the second call leaves failures alone
        report, addresses = build(space, archs, Builder(store=store))
        assert report.failed == dict.fromkeys(wide, "MemoryError: no room for 64")
        assert report.built == built
    failure = store.failure(space.name, addresses[wide[0]])
    assert failure is not None
    assert failure.identity["arch"]["hidden"] == 64
    (tmp_path / "repaired").touch()
    report, _ = build(space, archs, Builder(store=store, retry_failed=True))
    assert (report.failed, report.built) == ({}, len(wide))
    assert store.failure(space.name, addresses[wide[0]]) is None


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_loss_that_no_architecture_has_is_no_failure_of_theirs(jobs: int, tmp_path: Path) -> None:
    builder = Builder(SketchOptions(loss="next-token"), Store(tmp_path), Workers(jobs))
    with pytest.raises(StatisticsError, match="predicts no tokens"):
        build(SPACE, ARCHS[:2], builder)
    assert contents(tmp_path) == {}


@pytest.mark.slow
def test_a_failed_architecture_says_why_when_asked_for(tmp_path: Path) -> None:
    space = Fragile()
    archs = tuple(space.sample(random.Random(seed)) for seed in range(6))
    found = sketches(SmallTable(space, archs), Builder(store=Store(tmp_path)))
    [bad, *_] = found.failed
    assert sorted([*found.usable, *found.failed]) == list(range(6))
    with pytest.raises(SketchError, match="no room"):
        found[bad]


def test_a_folder_that_cannot_be_written_is_an_error_of_its_own(tmp_path: Path) -> None:
    (tmp_path / SPACE.name).write_text("a file where a folder should be")
    with pytest.raises(WriteError, match="cannot write"):
        build(SPACE, ARCHS[:1], Builder(store=Store(tmp_path)))


FILL = """
import random, sys
from pathlib import Path
import spaces
from lpzero.errors import InputError, WriteError
from lpzero.parallel import Workers
from lpzero.statistics import StatisticsError
from lpzero.sketches.builder import Builder, build
from lpzero.sketches.store import Store
if __name__ == "__main__":
    space = spaces.get("nano-flexibert")
    archs = [space.sample(random.Random(seed)) for seed in range(10)]
    build(space, archs, Builder(store=Store(Path(sys.argv[1])), workers=Workers(2)))
"""


def fill(folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", FILL, str(folder)]
    return subprocess.Popen(command, cwd=ROOT, start_new_session=True)


@pytest.mark.slow
def test_two_processes_fill_one_store(tmp_path: Path, reference: dict[str, bytes]) -> None:
    other = forks.start(build, SPACE, ARCHS, Builder(store=Store(tmp_path)))
    while not n_sketches(tmp_path):  # then both write
        assert other.is_alive()
        time.sleep(0.005)
    build(SPACE, ARCHS[::-1], Builder(store=Store(tmp_path)))
    other.join()
    assert other.exitcode == 0
    assert contents(tmp_path) == reference


@pytest.mark.slow
def test_killed_in_the_middle_and_started_again(
    tmp_path: Path, reference: dict[str, bytes]
) -> None:
    first = fill(tmp_path)
    while n_sketches(tmp_path) < 3:
        assert first.poll() is None, "finished before it could be killed"
        time.sleep(0.005)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait(60)
    kept = contents(tmp_path)
    assert all(data == reference[name] for name, data in kept.items() if name in reference)
    report, _ = build(SPACE, ARCHS, Builder(store=Store(tmp_path)))
    assert report.present >= 3
    assert report.corrupt == 0
    assert contents(tmp_path) == reference


def test_what_a_dead_writer_left_is_swept_and_a_live_one_kept(tmp_path: Path) -> None:
    store = Store(tmp_path)
    _, [name] = build(SPACE, ARCHS[:1], Builder(store=store))
    path = store.path(SPACE.name, name)
    host = os.uname().nodename
    dead = path.with_name(f".{path.name}.{host}-999999999-ab.tmp")
    live = path.with_name(f".{path.name}.{host}-{os.getpid()}-ab.tmp")
    far = path.with_name(f".{path.name}.elsewhere-1-ab.tmp")
    for file in (dead, live, far):
        file.touch()
    assert store.sweep() == 1
    assert [file.exists() for file in (dead, live, far)] == [False, True, True]
    os.utime(far, (0, 0))
    assert store.sweep() == 1


def test_listing_and_pruning(tmp_path: Path) -> None:
    store = Store(tmp_path)
    build(SPACE, ARCHS[:2], Builder(store=store))
    build(SPACE, ARCHS[:1], Builder(SketchOptions(loss="ones"), store))
    gpt2 = spaces.get("nano-gpt2")
    build(gpt2, [gpt2.sample(random.Random(0))], Builder(store=store))
    rows = listing(store)
    assert {(r["space"], r["loss"], r["sketches"]) for r in rows} == {
        ("nano-flexibert", "auto", 2),
        ("nano-flexibert", "ones", 1),
        ("nano-gpt2", "auto", 1),
    }
    assert sum(r["bytes"] for r in rows) == sum(map(len, contents(tmp_path).values()))
    assert prune(store, "stale") == (0, 0)
    [[broken]] = store.groups("nano-gpt2").values()
    broken.write_bytes(b"nothing")
    assert [r["sketches"] for r in listing(store) if not r["readable"]] == [1]
    assert prune(store, "stale") == (1, 7)
    [sketch, *_] = next(iter(store.groups().values()))
    sketch.with_name(f"{sketch.stem}.derived").write_bytes(b"goes with it")
    assert prune(store, "nano-flexibert")[0] == 4
    with pytest.raises(InputError, match="cannot prune 'nano'"):
        prune(store, "nano")
    assert prune(store, "all") == (0, 0)


def test_a_broken_record_beside_a_sketch_does_not_make_it_stale(tmp_path: Path) -> None:
    store = Store(tmp_path)
    build(SPACE, ARCHS[:1], Builder(store=store))
    [[sketch]] = store.groups().values()
    sketch.with_name(f"{sketch.stem}.failure.json").write_bytes(b"{")  # read before the sketch
    assert [row["readable"] for row in listing(store)] == [True]
    assert prune(store, "stale") == (0, 0)


@pytest.mark.parametrize(
    "record",
    ["[" * 100_000, "[1]", '{"space": 3}', '{"options": {"seed": [1]}}', '{"space": {"name": []}}'],
)
def test_junk_in_a_cache_is_listed_as_unreadable(record: str, tmp_path: Path) -> None:
    store = Store(tmp_path)
    header = record.encode()
    for ending, data in (
        (".failure.json", header),
        (".sketch", MAGIC + bytes(32) + len(header).to_bytes(8, "little") + header),
    ):
        path = store.path("nano-gpt2", "ab" * 32, ending)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    assert [row["readable"] for row in listing(store)] == [False]
    assert prune(store, "stale")[0] == 2


def test_a_sketch_of_a_space_that_builds_otherwise_now_is_stale(tmp_path: Path) -> None:
    store = Store(tmp_path)
    sketch = build_sketch(SPACE, ARCHS[0], SketchOptions())
    header = {**sketch.header, "space": {**sketch.header["space"], "version": -1}}
    store.write(SPACE.name, "ab" * 32, encode(type(sketch)(header, sketch.numbers)))
    assert prune(store, "stale")[0] == 1
