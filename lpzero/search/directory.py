"""A search's directory; who may use it and how files appear is as for campaigns.

config.json    what was asked; written once
journal.jsonl  every fact found out, see `ledger`
result.json    the best architecture and the trace
trace.csv      the trace for a spreadsheet
timing.json    seconds; the only file that differs between equal searches
lock           held while a process runs the search
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any

from lpzero.discover.checkpoint import versions
from lpzero.errors import LPZeroError
from lpzero.runs import directory as files
from lpzero.runs.errors import RunError
from lpzero.runs.journal import Lines
from lpzero.search.ledger import is_fact
from lpzero.search.request import SCHEMA, Request
from spaces.errors import SpaceError

TRACE = "trace.csv"


class Folder:
    """Keeps a search in a directory: enter it to lock it and open its journal."""

    def __init__(self, path: Path, request: Request, resume: bool) -> None:
        self.path, self.request, self.resume = path, request, resume
        self.lines: Lines | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Folder:
        with ExitStack() as stack:
            stack.enter_context(files.locked(self.path))
            found = read_config(self.path)
            if found is None:
                files.claim(self.path, "search", self._config())
            elif not self.resume:
                raise RunError(
                    f"{self.path} holds a search: go on with --resume, or choose another --out"
                )
            else:
                check_same(self.path, found, self.request)
            journal = Lines(self.path / files.JOURNAL, is_fact)
            self.lines = stack.enter_context(journal)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def _config(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "hash": self.request.hash,
            "versions": versions(),
            "request": self.request.to_json(),
        }

    def publish(self, result: Mapping[str, Any], seconds: float) -> None:
        """Write the result, the journal before it."""
        assert self.lines is not None, "enter the directory first"
        self.lines.sync()
        rows = [{**row, "arch": _compact(row["arch"])} for row in result["trace"]]
        files.write_csv(self.path / TRACE, rows)
        files.write_json(self.path / files.TIMING, {"seconds": round(seconds, 3)})
        files.write_json(self.path / files.RESULT, result)


def read_config(folder: Path) -> dict[str, Any] | None:
    """The content of config.json, None if there is no search in the folder."""
    path = folder / files.CONFIG
    if not path.exists():
        return None
    found = files.read_json(path)
    if found is None or not found.keys() >= {"schema", "hash", "request"}:
        raise RunError(f"{path} is no search's or broken: choose another directory")
    if not isinstance(found["schema"], int) or found["schema"] > SCHEMA:
        raise RunError(
            f"{path} has schema {found['schema']!r}, this version reads up to {SCHEMA}: update"
        )
    return found


def finished(folder: Path, request: Request) -> dict[str, Any] | None:
    """The result of this very search if the folder holds it; it is written last of all."""
    found = read_config(folder)
    is_same = found is not None and found["hash"] == request.hash
    return files.read_json(folder / files.RESULT) if is_same else None


def gone_on_with(folder: Path, before: Mapping[str, Any], asked: Mapping[str, Any]) -> Request:
    """The request in the folder, changed by what is asked now."""
    try:
        for name in ("space", "loop"):  # what else was asked then belongs to these
            if asked.get(name, before[name]) != before[name]:
                raise RunError(
                    f"the search in {folder} was begun with {name} {before[name]}, not"
                    f" {asked[name]}: leave it out to go on, or choose another --out"
                )
        merged = {**before, **asked}
        for part in ("constants", "constraints"):
            merged[part] = {**before[part], **asked[part]}
        if merged["proxy"] != before["proxy"]:
            merged.pop("definition")
        return Request.from_json(merged)
    except (LPZeroError, SpaceError):
        raise
    except (KeyError, TypeError, AttributeError, ValueError):
        raise RunError(
            f"{folder / files.CONFIG} holds no search of this version: choose another directory"
        ) from None


def check_same(folder: Path, found: Mapping[str, Any], request: Request) -> None:
    """An error that names what differs between the search in the folder and this one."""
    if found["hash"] == request.hash:
        return
    old, new = found["request"], json.loads(json.dumps(request.to_json()))
    odd = [f"{k} {old.get(k)!r}, not {new[k]!r}" for k in new if old.get(k) != new[k]]
    raise RunError(
        f"the search in {folder} was begun with {'; '.join(odd) or 'another configuration'}:"
        " leave these options out to go on with it, or choose another --out"
    )


def _compact(arch: Any) -> str:
    """An architecture in one cell."""
    return json.dumps(arch, separators=(",", ":"))
