"""Reads the directory of a comparison: its arms, its rows and its curves.

A comparison that has no result yet, or was begun again with more arms or seeds, is read from the
searches in its folder that are finished.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lpzero.runs.config import RunConfig, StoredConfig, read_config
from lpzero.runs.layout import CONFIG, RESULT
from lpzero.runs.run import Run, read_file
from lpzero.search.comparison import run_folder, summary
from lpzero.search.storage import KIND as SEARCH

_LARGEST = 64 << 20  # bytes of a file of a search
_MOST = 100_000  # searches


class ComparisonRun(Run):
    """Loops and proxies compared over seeds; the searches themselves are in its folder `runs`."""


def read(config: StoredConfig) -> ComparisonRun:
    """The comparison with that config; a remark if not every search is finished."""
    remarks: list[str] = []
    result = read_file(config, RESULT, remarks)
    if result is not None and _is_whole(result, config.request):
        return ComparisonRun(config, result, remarks)
    found: dict[str, list[dict[str, Any]]] = {}
    total = 0
    for name, folder, request in searches(config):
        total += 1
        done = _finished(folder, request)
        if done is not None:
            found.setdefault(name, []).append(done)
    n_done = sum(len(results) for results in found.values())
    remarks.append(
        f"The comparison is not finished: {n_done:,} of {total:,} searches are. Run its command"
        " again with --resume."
    )
    return ComparisonRun(config, summary(found, None) if found else None, remarks)


def searches(config: StoredConfig) -> Iterator[tuple[str, Path, Mapping[str, Any]]]:
    """The arm, the folder and the request of every search that the comparison consists of."""
    arms, seeds = config.request["arms"], config.request["seeds"]
    if len(arms) * seeds > _MOST:
        raise ValueError(f"{len(arms):,} arms and {seeds:,} seeds are too many")
    for arm in arms:
        name = f"{arm['loop']}, {arm['proxy']}"
        for seed in range(seeds):
            yield name, run_folder(config.folder, name, seed), {**arm, "seed": seed}


def _is_whole(result: Mapping[str, Any], request: Mapping[str, Any]) -> bool:
    """Whether the result is about all arms and seeds that were asked for last."""
    asked = {f"{arm['loop']}, {arm['proxy']}": request["seeds"] for arm in request["arms"]}
    return {row["arm"]: row["seeds"] for row in result["rows"]} == asked


def _finished(folder: Path, request: Mapping[str, Any]) -> dict[str, Any] | None:
    """The result of that search; None if it is not there, or is not a file of a usual size."""
    if not all(_is_usual(folder / name) for name in (CONFIG, RESULT)):
        return None
    config = read_config(folder)
    if config is None or config.hash != RunConfig(SEARCH, request).hash:
        return None
    return read_file(config, RESULT, [])


def _is_usual(path: Path) -> bool:
    """Whether it is a regular file, not behind a link, of a size that results have."""
    try:
        about = os.stat(path, follow_symlinks=False)
        is_linked = path.parent.is_symlink() or path.parent.parent.is_symlink()
    except OSError:
        return False
    return stat.S_ISREG(about.st_mode) and not is_linked and about.st_size <= _LARGEST
