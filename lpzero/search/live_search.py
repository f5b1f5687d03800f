"""A search that is watched while it works: the best so far, from the facts in its journal."""

from __future__ import annotations

import math
import time
from collections import Counter
from typing import Any

from lpzero.runs.config import StoredConfig
from lpzero.runs.journal import JournalFollower
from lpzero.runs.layout import JOURNAL, place
from lpzero.runs.run import Now, OpenedAgain, Run
from lpzero.search import ledger
from lpzero.search.record import read

_NAMES = {
    ledger.SCORE: "architectures scored",
    ledger.TARGET: "architectures evaluated",
    ledger.LATENCY: "latencies measured",
}


class LiveSearch(OpenedAgain):
    """The search as it was last read."""

    def __init__(self, config: StoredConfig) -> None:
        super().__init__(config)
        path = config.folder / JOURNAL
        self._journal = JournalFollower(path, ledger.is_fact, place(config.hash, JOURNAL))
        self._is_by_proxy = config.request.get("evaluator") == "proxy"
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

    def _read(self) -> Run | None:
        return read(self.config)

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


def watch(config: StoredConfig) -> LiveSearch:
    """What follows the search with that config."""
    return LiveSearch(config)
