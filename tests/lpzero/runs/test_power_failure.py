"""After a power failure a run is as it was before or after a step, never something else.

A campaign runs while every write, flush and rename of its files is recorded. Then the power fails
after any of them: what was not flushed to the disk by then may be there, in part or not at all,
whatever the order in which it was written.
"""

from __future__ import annotations

import builtins
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from lpzero import files
from lpzero.errors import RunError
from lpzero.runs import layout
from lpzero.runs.run import open_run
from tests.lpzero.small_campaign import discovery

FINAL = (layout.CONFIG, layout.JOURNAL, layout.RESULT, layout.HALL, layout.HISTORY, layout.SCORES)


class Event(NamedTuple):
    """Either `data` that a file has from now on, or the file that `name` leads to now.

    `is_flushed` if everything before is on the disk: of the file, or of the names of the folder.
    """

    file: int | None
    data: bytes | None = None
    name: str | None = None
    is_flushed: bool = False


@dataclass
class Recorder:
    """The events of the files in a folder."""

    folder: Path
    events: list[Event] = field(default_factory=list)
    _files: dict[int, int] = field(default_factory=dict)  # an inode is used again for a later file

    def created(self, path: Path) -> None:
        self._files[os.stat(path).st_ino] = len(self.events)
        self.named(path)

    def named(self, path: Path) -> None:
        file = self._files[os.stat(path).st_ino] if path.exists() else None
        self.events.append(Event(file, name=path.name))

    def written(self, path: Path, is_flushed: bool = False) -> None:
        file = self._files[os.stat(path).st_ino]
        self.events.append(Event(file, path.read_bytes(), is_flushed=is_flushed))

    def is_inside(self, path: Any) -> bool:
        return Path(os.fsdecode(path)).parent == self.folder

    def path_of(self, handle: int) -> Path:
        return Path(f"/proc/self/fd/{handle}").resolve()


@pytest.fixture
def recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorder]:
    """Records what `lpzero.files` does to the files in a folder."""
    recorder = Recorder((tmp_path / "run").resolve())
    opened, written, truncated = os.open, os.write, os.ftruncate
    flushed, replaced, removed = os.fsync, os.replace, os.unlink

    def record_open(path: Any, *more: Any, **options: Any) -> int:
        is_new = recorder.is_inside(path) and not os.path.exists(path)
        handle = opened(path, *more, **options)
        if is_new:
            recorder.created(Path(path))
        return handle

    def record_builtin_open(path: Any, *more: Any, **options: Any) -> Any:
        file = builtins.open(path, *more, **options)  # noqa: SIM115  the caller closes it
        if recorder.is_inside(path):
            recorder.created(Path(path))
        return file

    def record_write(handle: int, data: bytes) -> int:
        n_bytes = written(handle, data)
        if recorder.is_inside(recorder.path_of(handle)):
            recorder.written(recorder.path_of(handle))
        return n_bytes

    def record_truncate(handle: int, size: int) -> None:
        truncated(handle, size)
        if recorder.is_inside(recorder.path_of(handle)):
            recorder.written(recorder.path_of(handle))

    def record_flush(handle: int) -> None:
        flushed(handle)
        path = recorder.path_of(handle)
        if path == recorder.folder:
            recorder.events.append(Event(None, is_flushed=True))
        elif recorder.is_inside(path):
            recorder.written(path, is_flushed=True)

    def record_replace(source: Any, target: Any) -> None:
        if recorder.is_inside(source):
            recorder.written(Path(source))
        replaced(source, target)
        if recorder.is_inside(target):
            recorder.named(Path(target))
            recorder.named(Path(source))

    def record_unlink(path: Any, **options: Any) -> None:
        removed(path, **options)
        if recorder.is_inside(path):
            recorder.named(Path(path))

    with monkeypatch.context() as patch:
        patch.setattr(files, "open", record_builtin_open, raising=False)
        for name, function in (
            ("open", record_open),
            ("write", record_write),
            ("ftruncate", record_truncate),
            ("fsync", record_flush),
            ("replace", record_replace),
            ("unlink", record_unlink),
        ):
            patch.setattr(os, name, function)
        yield recorder


def after_failure(events: list[Event], rng: random.Random) -> dict[str, bytes]:
    """The files that may be on the disk when the power fails after these events."""
    contents: dict[int, list[bytes]] = {}  # what may be on the disk
    names: dict[str, list[int | None]] = {}
    for event in events:
        if event.name is not None:
            names.setdefault(event.name, [None]).append(event.file)
        elif event.data is None:
            names = {name: leads_to[-1:] for name, leads_to in names.items()}
        else:
            assert event.file is not None
            before = contents.get(event.file, [b""])
            contents[event.file] = [event.data] if event.is_flushed else [*before, event.data]
    chosen = {name: rng.choice(leads_to) for name, leads_to in names.items()}
    return {
        name: _in_part(contents.get(file, [b""]), rng)
        for name, file in chosen.items()
        if file is not None
    }


def _in_part(contents: list[bytes], rng: random.Random) -> bytes:
    """One of the contents; what was written since the first of them may have holes, or no end."""
    chosen = rng.choice(contents)
    kept = len(contents[0]) if chosen.startswith(contents[0]) else 0
    if chosen == contents[0] or rng.random() < 0.3:
        return chosen
    if rng.random() < 0.5:
        return chosen[: rng.randint(kept, len(chosen))]
    start = rng.randint(kept, len(chosen))
    stop = rng.randint(start, len(chosen))
    return chosen[:start] + bytes(stop - start) + chosen[stop:]


def write(folder: Path, contents: dict[str, bytes]) -> Path:
    folder.mkdir()
    for name, data in contents.items():
        (folder / name).write_bytes(data)
    return folder


def opened_run(folder: Path) -> Any:
    """The run in the folder; None if it has not begun."""
    if not (folder / layout.CONFIG).exists():
        with pytest.raises(RunError, match="has no run"):
            open_run(folder)
        return None
    return open_run(folder)


@pytest.mark.slow
def test_a_run_is_as_before_or_after_a_step(recorder: Recorder, tmp_path: Path) -> None:
    discovery(recorder.folder, generations=3).run()
    final = {name: (recorder.folder / name).read_bytes() for name in FINAL}
    events = list(recorder.events)
    assert sum(event.is_flushed for event in events) > 5
    whole = open_run(recorder.folder)
    rng = random.Random(1)
    states = []
    for n_events in range(len(events) + 1):
        for _ in range(3):
            folder = tmp_path / f"failed-{len(states)}"
            states.append(write(folder, after_failure(events[:n_events], rng)))
    opened = [run for folder in states if (run := opened_run(folder)) is not None]
    assert len(opened) > len(states) / 2
    for found in opened:
        assert found.lines == whole.lines[: len(found.lines)]
        assert found.result in (None, whole.result)
        assert not any("broken" in remark for remark in found.remarks), found.remarks
    for folder in rng.sample(states, 6):
        discovery(folder, generations=3, resume=True).run()
        assert {name: (folder / name).read_bytes() for name in FINAL} == final
