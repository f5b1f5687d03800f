"""Sketches that are verified when they are read: what is broken is found then, and rebuilt."""

from __future__ import annotations

import copy
import os
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spaces
from lpzero.files import write_bytes
from lpzero.parallel import Workers
from lpzero.scores.branch_table import branch_table
from lpzero.scores.chains import surviving
from lpzero.sketches.builder import Builder, build, sketches
from lpzero.sketches.sketch import SketchError, decode
from lpzero.sketches.store import Store

SPACE = spaces.get("nano-flexibert")
ARCHS = tuple(SPACE.sample(random.Random(seed)) for seed in range(3))
DAMAGES = ["cut", "longer", "flip", "empty", "header", "swapped", "pipe"]


@dataclass(frozen=True)
class SmallTable:
    space: Any = SPACE
    archs: tuple[Any, ...] = ARCHS


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A store with the sketches of the table."""
    build(SPACE, ARCHS, Builder(store=Store(tmp_path)))
    return Store(tmp_path)


def damaged(store: Store, how: str) -> tuple[Path, bytes]:
    """Damage the first sketch; give its path and what it held."""
    _, names = build(SPACE, ARCHS, Builder(store=store))
    path, other = (store.path(SPACE.name, name) for name in names[:2])
    whole = path.read_bytes()
    last = whole[:-1] + bytes([whole[-1] ^ 1])
    header = whole[:60] + b"\xff" + whole[61:]
    contents = {
        "cut": whole[:-4],
        "longer": whole + bytes(4),
        "flip": last,
        "empty": b"",
        "header": header,
        "swapped": other.read_bytes(),
    }
    if how == "pipe":
        path.unlink()
        os.mkfifo(path)
    else:
        path.write_bytes(contents[how])
    return path, whole


@pytest.mark.slow
@pytest.mark.parametrize("how", DAMAGES)
def test_a_broken_sketch_is_rebuilt_at_the_latest_when_it_is_read(
    how: str, store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    eager = [one.numbers for one in sketches(SmallTable(), Builder(store=store))]
    path, whole = damaged(store, how)
    found = sketches(SmallTable(), Builder(store=store, is_lazy=True))
    assert (path.is_file() and path.read_bytes() == whole) == (how != "flip")
    for one, numbers in zip(found, eager, strict=True):
        np.testing.assert_array_equal(one.numbers, numbers)
    assert path.read_bytes() == whole
    assert caplog.text.count("rebuilding it") == (how != "pipe")  # a pipe counts as missing


def test_sound_sketches_are_not_read_until_they_are_needed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []
    load = Store.load

    def counted(self: Store, space: str, address: str) -> Any:
        read.append(address)
        return load(self, space, address)

    monkeypatch.setattr(Store, "load", counted)
    found = sketches(SmallTable(), Builder(store=store, is_lazy=True))
    assert read == []
    assert (found.report.present, found.report.built, found.report.corrupt) == (3, 0, 0)
    assert sum(found.report.capabilities.values()) == 3
    assert found[1].header["arch"] == SPACE.to_json(ARCHS[1])
    assert read == [found.addresses[1]]


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_branch_table_rebuilds_the_broken_sketch_it_is_made_from(jobs: int, store: Store) -> None:
    expected = branch_table(sketches(SmallTable(), Builder(store=store)), surviving(1))
    for path in store.folder.rglob("*.branches"):
        path.unlink()
    path, whole = damaged(store, "flip")
    found = sketches(SmallTable(), Builder(store=store, is_lazy=True))
    table = branch_table(found, surviving(1), workers=Workers(jobs))
    assert path.read_bytes() == whole
    np.testing.assert_array_equal(table.means["W"], expected.means["W"])


def test_a_worker_cannot_rebuild_and_says_which_file_is_broken(store: Store) -> None:
    path, _ = damaged(store, "flip")
    found = sketches(SmallTable(), Builder(store=store, is_lazy=True))
    sent = copy.copy(found)  # as pickling does
    with pytest.raises(SketchError, match=path.name):
        sent[0]
    with pytest.raises(SketchError, match=path.name):
        branch_table(sent, surviving(1))


def test_a_sketch_is_hashed_once_and_again_after_its_file_was_replaced(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashed: list[bool] = []

    def noted(data: bytes, is_verified: bool) -> Any:
        hashed.append(not is_verified)
        return decode(data, is_verified)

    monkeypatch.setattr("lpzero.sketches.store.decode", noted)
    found = sketches(SmallTable(), Builder(store=store, is_lazy=True))
    numbers = [found[0].numbers, found[0].numbers]
    path = store.path(SPACE.name, found.addresses[0])
    write_bytes(path, path.read_bytes())
    numbers += [found[0].numbers, found[0].numbers]
    assert hashed == [False, False, True, False]  # the first time when it was built
    for one in numbers[1:]:
        np.testing.assert_array_equal(one, numbers[0])


def test_sketches_in_turn_are_those_read_alone_and_broken_ones_are_rebuilt(store: Store) -> None:
    expected = [one.numbers for one in sketches(SmallTable(), Builder(store=store))]
    assert len({len(numbers) for numbers in expected}) > 1  # the buffer grows and is reused
    path, whole = damaged(store, "flip")
    found = sketches(SmallTable(), Builder(store=store, is_lazy=True))
    order = [1, 0, 2, 1]
    n = 0
    for index, one in zip(order, found.in_turn(order), strict=True):
        np.testing.assert_array_equal(one.numbers, expected[index])
        assert one.header["arch"] == SPACE.to_json(ARCHS[index])
        n += 1
    assert n == len(order)
    assert path.read_bytes() == whole
    found.failed = {2: "out of memory"}
    with pytest.raises(SketchError, match="architecture 2 has no sketch: out of memory"):
        list(found.in_turn([2]))
