"""A search in a run's directory: written, resumed, read, and watched while it works.

The journal has every fact, see `ledger`.
"""

from __future__ import annotations

import json
import math
import shlex
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lpzero.errors import LPZeroError, RunError
from lpzero.runs.config import RunConfig, StoredConfig, read_config
from lpzero.runs.directory import RunDirectory
from lpzero.runs.journal import JournalFollower
from lpzero.runs.layout import CONFIG, JOURNAL, RESULT, TRACE, place
from lpzero.runs.run import LiveRun, Now, Run, read_file
from lpzero.search import ledger
from lpzero.search.evaluators import PROXY
from lpzero.search.request import Request
from spaces.errors import SpaceError

KIND = "search"
_NAMES = {
    ledger.SCORE: "architectures scored",
    ledger.TARGET: "architectures evaluated",
    ledger.LATENCY: "latencies measured",
}


def search_directory(
    folder: Path, request: Request, resume: bool, lock: bool = True
) -> RunDirectory:
    """The directory of a search, as a context manager."""
    config = RunConfig(KIND, request.to_json())
    return RunDirectory(folder, config, resume, ledger.is_fact, lock)


def publish(directory: RunDirectory, result: Mapping[str, Any], seconds: float) -> None:
    """Write the trace and the result."""
    compact = (json.dumps(row["arch"], separators=(",", ":")) for row in result["trace"])
    names = dict.fromkeys(name for row in result["trace"] for name in row)
    rows = [
        {**dict.fromkeys(names), **row, "arch": arch}
        for row, arch in zip(result["trace"], compact, strict=True)
    ]
    directory.write_csv(TRACE, rows)
    directory.write_result(result, seconds)


def stored_request(folder: Path) -> Mapping[str, Any] | None:
    """The request of the search in the folder; None if there is no run."""
    config = read_config(folder)
    if config is None:
        return None
    config.check_kind(KIND)
    return config.request


def finished(folder: Path, request: Mapping[str, Any]) -> dict[str, Any] | None:
    """The result of the search with that request if the folder has it; it is written last."""
    config = read_config(folder)
    if config is None or config.hash != RunConfig(KIND, request).hash:
        return None
    return read_file(config, RESULT, [])


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


@dataclass(frozen=True, eq=False)
class SearchRun(Run):
    """A search for an architecture."""

    @property
    def is_by_proxy(self) -> bool:
        """Whether there was no evaluator, so that the proxy alone decided."""
        return str(self.request["evaluator"]) == PROXY

    @property
    def history(self) -> list[dict[str, float]]:
        """The best after each evaluation, or after each score if there was no evaluator."""
        counted = "scored" if self.is_by_proxy else "evaluations"
        trace = [] if self.result is None else self.result["trace"]
        return [
            {"evaluated": float(entry[counted]), "fitness": float(entry["best"])}
            for entry in trace
            if entry["best"] is not None
        ]


def read(config: StoredConfig) -> SearchRun:
    """The search with that config."""
    remarks: list[str] = []
    result = read_file(config, RESULT, remarks)
    again = f"lpzero search --out {shlex.quote(str(config.folder))} --resume"
    if result is None:
        remarks.append(
            f"The search is not finished, so there is no result. Resume it with: {again}"
        )
    elif "stopped_by" in result:
        remarks.append(
            f"The search was stopped by its {result['stopped_by']}: this is the best until then."
            f" Continue it with: {again}"
        )
    return SearchRun(config, result, remarks)


class LiveSearch(LiveRun):
    """The search as it was last read."""

    def __init__(self, config: StoredConfig) -> None:
        super().__init__(config)
        path = config.folder / JOURNAL
        self._journal = JournalFollower(path, ledger.is_fact, place(config.hash, JOURNAL))
        self._is_by_proxy = config.request.get("evaluator") == PROXY
        self._forget()

    def _forget(self) -> None:
        self._n: Counter[str] = Counter()
        self._history: list[dict[str, float]] = []

    def update(self, seconds: float) -> Run | None:
        """The search with what is new, after about that many seconds at most."""
        deadline = time.monotonic() + seconds
        while True:
            piece = self._journal.read()
            if piece.is_first:
                self._forget()
            for record in piece.records:
                self._count(str(record["fact"]), record["value"])
            if not self._journal.is_behind or time.monotonic() > deadline:
                break
        return super().update(seconds)

    def _count(self, fact: str, value: Any) -> None:
        self._n[fact] += 1
        if fact != (ledger.SCORE if self._is_by_proxy else ledger.TARGET):
            return
        values = value if isinstance(value, list) else [value]
        if len(values) != 1 or type(values[0]) is not float or not math.isfinite(values[0]):
            return  # a combined proxy has several values, whose score depends on all architectures
        best = max(values[0], self._history[-1]["fitness"] if self._history else -math.inf)
        self._history.append({"evaluated": float(self._n[fact]), "fitness": best})

    def now(self) -> Now:
        """The number of facts of each kind, and the best value so far until there is a result."""
        facts = {_NAMES[name]: f"{n:,}" for name, n in self._n.items() if name in _NAMES}
        if self._history:
            facts["best so far"] = f"{self._history[-1]['fitness']:.6g}"
        has_result = self._run is not None and self._run.result is not None
        counted = _NAMES[ledger.SCORE if self._is_by_proxy else ledger.TARGET]
        measured = "best score so far" if self._is_by_proxy else "best target so far"
        return Now(facts, () if has_result else list(self._history), counted, measured)
