"""What a store holds and how much of it can go."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import spaces
from lpzero.sketch import SCHEMA, SketchError, read_header, space_identity
from lpzero.store.folder import SKETCH, Store, file_size

# Words for `prune` beside the names of spaces.
STALE, ALL = "stale", "all"


def listing(store: Store) -> list[dict[str, Any]]:
    """A row per space and options: how many sketches and failures, and how many bytes."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for path in store.files():
        header = _header(path)
        options = dict((header or {}).get("options", {}))
        what = {"space": path.parts[-3], "readable": header is not None, **options}
        row = rows.setdefault(
            tuple(what.items()), {**what, "sketches": 0, "failures": 0, "bytes": 0}
        )
        row["sketches" if path.name.endswith(SKETCH) else "failures"] += 1
        row["bytes"] += file_size(path)
    return list(rows.values())


def prune(store: Store, what: str) -> tuple[int, int]:
    """Remove the sketches of a space, "all" of them, or the "stale" ones; (files, bytes) removed.

    Stale are unreadable files, those of another format, and those of a space that is gone or
    now builds other models.
    """
    n_files = store.sweep()
    n_bytes = 0
    for path in list(store.files(None if what in (STALE, ALL) else what)):
        if what == STALE and not _is_stale(_header(path)):
            continue
        n_bytes += file_size(path)
        path.unlink(missing_ok=True)
        n_files += 1
    return n_files, n_bytes


def _header(path: Path) -> dict[str, Any] | None:
    """The sketch's header or the failure's record; None when it cannot be read."""
    try:
        if not path.name.endswith(SKETCH):
            return dict(json.loads(path.read_bytes()))
        with open(path, "rb") as file:
            return read_header(file)
    except (OSError, ValueError, TypeError, SketchError):
        return None


def _is_stale(header: Mapping[str, Any] | None) -> bool:
    if header is None or header.get("schema") != SCHEMA:
        return True
    space = header.get("space", {})
    if space.get("name") not in spaces.names():
        return True
    current = space_identity(spaces.get(space["name"]))
    return any(space.get(key) != current.get(key) for key in ("kind", "version", "text"))
