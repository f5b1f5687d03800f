"""A search in a run's directory; the journal has every fact, see `ledger`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lpzero.errors import LPZeroError, RunError
from lpzero.runs.config import RunConfig, read_config
from lpzero.runs.directory import RunDirectory
from lpzero.runs.layout import CONFIG, RESULT, TRACE
from lpzero.runs.run import read_file
from lpzero.search.ledger import is_fact
from lpzero.search.request import Request
from spaces.errors import SpaceError

KIND = "search"


def search_config(request: Request) -> RunConfig:
    """The config of a search: the whole request."""
    return RunConfig(KIND, request.to_json())


def search_directory(
    folder: Path, request: Request, resume: bool, lock: bool = True
) -> RunDirectory:
    """The directory of a search, as a context manager."""
    return RunDirectory(folder, search_config(request), resume, is_fact, lock)


def publish(directory: RunDirectory, result: Mapping[str, Any], seconds: float) -> None:
    """Write the trace and the result."""
    compact = (json.dumps(row["arch"], separators=(",", ":")) for row in result["trace"])
    rows = [{**row, "arch": arch} for row, arch in zip(result["trace"], compact, strict=True)]
    directory.write_csv(TRACE, rows)
    directory.write_result(result, seconds)


def stored_request(folder: Path) -> Mapping[str, Any] | None:
    """The request of the search in the folder; None if there is no run."""
    found = read_config(folder)
    if found is None:
        return None
    found.check_kind(KIND)
    return found.request


def finished(folder: Path, request: Request) -> dict[str, Any] | None:
    """The result of this search if the folder has it; it is the last file written."""
    found = read_config(folder)
    if found is None or found.hash != search_config(request).hash:
        return None
    return read_file(found, RESULT, [])


def resumed(folder: Path, before: Mapping[str, Any], asked: Mapping[str, Any]) -> Request:
    """The stored request of the search in the folder, updated with the new options."""
    try:
        for name in ("space", "loop"):  # the other options depend on these
            if asked.get(name, before[name]) != before[name]:
                raise RunError(
                    f"the search in {folder} was started with {name} {before[name]}, not"
                    f" {asked[name]}: leave it out to resume, or choose another --out"
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
            f"{folder / CONFIG} is not a search of this version: choose another directory"
        ) from None
