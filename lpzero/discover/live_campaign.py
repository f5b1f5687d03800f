"""A campaign that is watched while it works: its journal is read as it grows.

The journal of a finished campaign is not read: its result, hall of fame and history have digests.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from lpzero.discover.journal_tally import JournalTally, is_tried
from lpzero.discover.record import (
    CampaignRun,
    on_result,
    read,
    stored_hall,
    stored_history,
    tables_of,
)
from lpzero.runs.config import StoredConfig
from lpzero.runs.directory import file_digest
from lpzero.runs.formula_run import Row
from lpzero.runs.journal_follower import JournalFollower
from lpzero.runs.layout import DIGESTED, JOURNAL, RESULT, SCORES, place
from lpzero.runs.live_run import Now, Stamp, stamp
from lpzero.runs.run import read_file, report_unexpected_content

_TAIL = 1 << 16  # bytes; the last line is in them
_SMALL = 8 << 20  # bytes of a journal that is read as a whole, for the figures of pairs


class LiveCampaign:
    """The campaign as it was last read."""

    def __init__(self, config: StoredConfig) -> None:
        self.config, self.share = config, 1.0
        self.tables = tables_of(config)
        self._journal = self._follower()
        self._tally = JournalTally()
        self._stamp: Stamp | None = None
        self._run: CampaignRun | None = None

    def _follower(self) -> JournalFollower:
        path = self.config.folder / JOURNAL
        return JournalFollower(path, is_tried, place(self.config.hash, JOURNAL))

    def update(self, seconds: float) -> CampaignRun:
        """The campaign with what is new, after about that many seconds at most."""
        now = stamp(self.config.folder)
        if self._run is None or now != self._stamp or self._journal.is_behind:
            with report_unexpected_content(self.config.folder):
                self._run = self._read(time.monotonic() + seconds)
            self._stamp = now
        return self._run

    def _read(self, deadline: float) -> CampaignRun:
        remarks: list[str] = []
        result = read_file(self.config, RESULT, remarks)
        if result is not None:
            finished = self._finished(result, remarks)
            if finished is not None:
                self.share = 1.0
                return finished
        self._follow(deadline)
        return self._from_journal(result, remarks)

    def now(self) -> Now:
        """The last generation, and what was counted."""
        run = self._run
        if run is None:
            return Now()
        counts, history = run.counts, run.history
        last = int(history[-1]["generation"]) if history else None
        planned = run.settings["generations"]
        facts = {
            "generation": "-" if last is None else f"{last:,} of {max(planned, last):,}",
            "formulas evaluated": f"{counts['evaluated']:,}",
            "rejected": f"{sum(run.rejected.values()):,}",
            "repeats": f"{counts['repeats']:,}",
        }
        if history:
            facts["best fitness"] = f"{float(history[-1]['fitness']):.4f}"
        return Now(facts)

    def _finished(self, result: Mapping[str, Any], remarks: list[str]) -> CampaignRun | None:
        """The campaign from its result; None unless the other files are those it was made with."""
        folder, digests = self.config.folder, result.get("digests", {})
        if result.get("tried") != _n_tried(self.config) or not all(
            file_digest(folder / name) == digests.get(name) for name in DIGESTED
        ):
            return None
        if (folder / JOURNAL).stat().st_size <= _SMALL:
            return read(self.config)
        hall, history = stored_hall(folder), stored_history(folder)
        if hall is None or history is None:
            return None
        counts = {name: int(result[name]) for name in ("tried", "evaluated", "repeats")}
        return self._made(result, remarks, hall, history, counts, dict(result["rejected"]))

    def _follow(self, deadline: float) -> None:
        """Read the journal until it ends or time is up."""
        while True:
            piece = self._journal.read()
            if piece.is_first:
                self._tally = JournalTally()
            self._tally.count(piece.records)
            if not self._journal.is_behind or time.monotonic() > deadline:
                break
        size = self._journal.size
        self.share = self._journal.offset / size if self._journal.is_behind else 1.0

    def _from_journal(self, result: Row | None, remarks: list[str]) -> CampaignRun:
        journal, tally = self._journal, self._tally
        if journal.remark:
            remarks.append(f"Not all of the journal is read: {journal.remark}.")
        if tally.unreadable:
            remarks.append(f"{tally.unreadable:,} formulas of {JOURNAL} cannot be read.")
        if not journal.is_behind:
            remarks += on_result(self.config.folder, result, tally.tried)
        names = [table["name"] for table in self.tables]
        counts = {
            "tried": tally.tried,
            "evaluated": tally.evaluated,
            "repeats": tally.repeats,
        }
        hall = tally.hall.rows(names)
        return self._made(result, remarks, hall, list(tally.history), counts, dict(tally.rejected))

    def _made(
        self,
        result: Row | None,
        remarks: list[str],
        hall: list[Any],
        history: list[Any],
        counts: dict[str, int],
        rejected: dict[str, int],
    ) -> CampaignRun:
        scores = read_file(self.config, SCORES, remarks) if result is not None else None
        return CampaignRun(
            self.config,
            result,
            remarks,
            self.tables,
            scores,
            hall,
            history,
            counts,
            rejected,
            lines=(),
        )


def watch(config: StoredConfig) -> LiveCampaign:
    """What follows the campaign with that config."""
    return LiveCampaign(config)


def _n_tried(config: StoredConfig) -> int | None:
    """How many formulas the journal has, by its last line; None if that line is torn."""
    with suppress(OSError, ValueError, TypeError, LookupError):
        handle = os.open(config.folder / JOURNAL, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        try:
            start = max(0, os.fstat(handle).st_size - _TAIL)
            tail = os.pread(handle, _TAIL, start)
        finally:
            os.close(handle)
        if tail.endswith(b"\n"):
            return int(json.loads(tail.splitlines()[-1])["id"]) + 1
    return None
