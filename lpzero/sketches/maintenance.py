"""Lists and prunes the sketches of a store."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import spaces
from lpzero.errors import EnvelopeError, InputError
from lpzero.files import read_header
from lpzero.sketches.sketch import MAGIC, SCHEMA, space_identity
from lpzero.sketches.store import FAILURE, SKETCH, Store, file_size

# Arguments of `prune` besides the names of spaces.
STALE, ALL = "stale", "all"


def listing(store: Store) -> list[dict[str, Any]]:
    """A row per space and options: how many sketches and failures, and how many bytes.

    The bytes include the files derived from the sketches, such as branch tables.
    """
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for (space, _), paths in store.groups().items():
        header = _header(paths)
        what = {"space": space, "readable": header is not None}
        what |= dict((header or {}).get("options", {}))
        empty = {**what, "sketches": 0, "failures": 0, "bytes": 0}
        row = rows.setdefault(tuple(what.items()), empty)
        row["sketches"] += sum(path.name.endswith(SKETCH) for path in paths)
        row["failures"] += sum(path.name.endswith(FAILURE) for path in paths)
        row["bytes"] += sum(map(file_size, paths))
    return list(rows.values())


def prune(store: Store, what: str) -> tuple[int, int]:
    """Remove the sketches of a space, "all" of them, or the "stale" ones; (files, bytes) removed.

    Stale files are unreadable, have another format, or belong to a space that no longer exists or
    now builds other models. Files derived from a sketch are removed with it.
    """
    if what not in (STALE, ALL, *spaces.names(), *(space for space, _ in store.groups())):
        known = ", ".join([STALE, ALL, *spaces.names()])
        raise InputError(f"cannot prune {what!r}: use one of {known}")
    n_files = store.sweep()
    n_bytes = 0
    for paths in store.groups(None if what in (STALE, ALL) else what).values():
        if what == STALE and not _is_stale(_header(paths)):
            continue
        for path in paths:
            n_bytes += file_size(path)
            path.unlink(missing_ok=True)
            n_files += 1
    return n_files, n_bytes


def _header(paths: Sequence[Path]) -> dict[str, Any] | None:
    """The sketch's header or the failure's record; None if neither can be read."""
    for path in filter(Path.is_file, paths):  # opening a pipe would wait for its writer
        try:
            if path.name.endswith(SKETCH):
                with open(path, "rb") as file:
                    return read_header(file, MAGIC)
            if path.name.endswith(FAILURE):
                return dict(json.loads(path.read_bytes()))
        except (OSError, ValueError, TypeError, RecursionError, EnvelopeError):
            continue
    return None


def _is_stale(header: Mapping[str, Any] | None) -> bool:
    if header is None or header.get("schema") != SCHEMA:
        return True
    space = header.get("space", {})
    if space.get("name") not in spaces.names():
        return True
    current = space_identity(spaces.get(space["name"]))
    return any(space.get(key) != current.get(key) for key in ("kind", "version", "text"))
