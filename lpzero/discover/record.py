"""Reads a campaign's directory: its settings, its results, and remarks on what is missing.

`read` reads the whole journal. `watch` follows a campaign that is running: its journal is read as
it grows, and that of a finished campaign, whose other files have digests, only where it is short.
"""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lpzero.discover.candidate import Candidate, is_candidate
from lpzero.discover.hall_of_fame import Tally
from lpzero.errors import InputError
from lpzero.files import LARGEST_JSON
from lpzero.runs.config import StoredConfig
from lpzero.runs.directory import file_digest
from lpzero.runs.formula_run import FormulaRun, PairRho, Row, pairs_in
from lpzero.runs.journal import JournalFollower, rare_collections, read_journal
from lpzero.runs.layout import CONFIG, DIGESTED, HALL, HISTORY, JOURNAL, RESULT, SCORES, place
from lpzero.runs.run import LiveRun, Now, read_file, report_unexpected_content, stamp
from primitives.parser import parse
from primitives.space_size import SpaceSize, measure
from primitives.statistics import STATISTICS
from spaces.untrusted import UntrustedError, read_json, read_regular, read_tail

_TAIL = 1 << 16  # bytes; the last line is in them
_SMALL = 8 << 20  # bytes of a journal that is read as a whole, for the figures of pairs


@dataclass(frozen=True, eq=False)
class CampaignRun(FormulaRun):
    """A campaign; `lines` are the records of its journal."""

    lines: Sequence[Row]

    @property
    def settings(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.request["settings"]
        return found

    @property
    def fitness_rows(self) -> str:
        n_archs = self.settings["archs"]
        where = "the whole table" if self.settings.get("whole_table") else "train"
        return "train" if n_archs is None else f"{n_archs} rows of {where}"

    def space_size(self) -> SpaceSize | None:
        asked = self.settings
        is_paper = (
            asked["terms"] == 1
            and asked["depth"] == 1
            and set(asked["statistics"]) == set(STATISTICS)
        )
        if not is_paper or asked["unaries"] not in (1, 2):
            return None
        rules = frozenset(asked["rules"])
        return measure(asked["unaries"], bool(asked["same_statistic"]), rules)

    def pairs(self) -> Iterator[PairRho]:
        for line in self.lines:
            if "fitness" in line:
                lowest = min(abs(float(measures["rho"])) for measures in line["train"].values())
                yield from pairs_in(parse(line["formula"]), lowest)

    def best_by_size(self) -> Iterator[Row]:
        best: dict[int, Row] = {}
        for line in self.lines:
            if "fitness" not in line:
                continue
            size = int(line["complexity"])
            if size not in best or line["fitness"][0] > best[size]["fitness"][0]:
                best[size] = line
        for size, line in best.items():
            fitness = float(line["fitness"][0])
            yield {"formula": line["formula"], "complexity": size, "fitness": fitness}


def read(config: StoredConfig) -> CampaignRun:
    """The campaign with that config."""
    folder = config.folder
    remarks: list[str] = []
    with rare_collections():
        lines, torn = read_journal(folder / JOURNAL, is_candidate, place(config.hash, JOURNAL))
        tally = Tally()
        tally.count([Candidate.from_json(line) for line in lines])
    if torn:
        remarks.append(
            f"The last {torn} bytes of {JOURNAL}, line {len(lines) + 1}, are torn and were ignored."
        )
    result = read_file(config, RESULT, remarks)
    remarks += _on_result(folder, result, len(lines))
    if result is not None and result.get("tried") == len(lines):
        remarks += [
            f"{name} is missing or was changed; it was rebuilt from {JOURNAL}."
            for name in _changed(folder, result)
        ]
    return _from_tally(config, result, remarks, tally, lines)


def _from_tally(
    config: StoredConfig,
    result: Row | None,
    remarks: list[str],
    tally: Tally,
    lines: Sequence[Row] = (),
) -> CampaignRun:
    """The campaign with the numbers of the tally."""
    hall = tally.hall.rows([table["name"] for table in _tables(config)])
    unreadable = len(tally.hall.entries) - len(hall)
    if unreadable:
        remarks.append(f"{unreadable:,} of the best formulas of {JOURNAL} cannot be read.")
    return _campaign(
        config, result, remarks, hall, tally.history, tally.counts, tally.rejected, lines
    )


def _campaign(
    config: StoredConfig,
    result: Row | None,
    remarks: list[str],
    hall: Sequence[Row],
    history: Sequence[Row],
    counts: dict[str, int],
    rejected: Mapping[str, int],
    lines: Sequence[Row] = (),
) -> CampaignRun:
    scores = read_file(config, SCORES, remarks) if result is not None else None
    return CampaignRun(
        config,
        result,
        remarks,
        _tables(config),
        scores,
        hall,
        list(history),
        counts,
        dict(rejected),
        lines,
    )


def _tables(config: StoredConfig) -> list[dict[str, str]]:
    """Name, space, target and digest of each table of the request."""
    try:
        return [
            {key: str(table[key]) for key in ("name", "space", "target", "digest")}
            for table in config.request["tables"]
        ]
    except (KeyError, TypeError) as error:
        raise InputError(f"{config.folder / CONFIG} does not name its tables") from error


def _on_result(folder: Path, result: Row | None, n_lines: int) -> list[str]:
    """Remarks on a result that is missing or older than the journal."""
    resume = f"lpzero discover --out {folder} --resume"
    if result is None:
        return [
            "The campaign is not finished, so there is no winner and no test row was read."
            f" Resume it with: {resume}"
        ]
    if result.get("tried") != n_lines:
        return [
            f"{RESULT} counts {result.get('tried')} formulas, but {JOURNAL} has {n_lines}: the"
            f" campaign was resumed later and is not finished. Finish it with: {resume}"
        ]
    return []


def _stored_hall(folder: Path) -> list[Row] | None:
    """The hall of fame as the campaign wrote it; None if it is missing or incomplete."""
    try:
        rows = read_json(folder / HALL, LARGEST_JSON, follow_links=False)
    except (FileNotFoundError, UntrustedError):
        return None
    needed = {"formula", "complexity", "fitness"}
    is_whole = isinstance(rows, list) and all(
        isinstance(row, dict) and row.keys() >= needed for row in rows
    )
    return rows if is_whole else None


def _stored_history(folder: Path) -> list[Row] | None:
    """The rows of the history as the campaign wrote it; None if it is missing or incomplete."""
    try:
        text = read_regular(folder / HISTORY, LARGEST_JSON, follow_links=False).decode()
        rows: list[Row] = list(csv.DictReader(io.StringIO(text)))
        for row in rows:
            int(row["tried"]), int(row["evaluated"]), float(row["fitness"])
    except (FileNotFoundError, ValueError, KeyError, TypeError, csv.Error):
        return None
    return rows


def _changed(folder: Path, result: Row) -> list[str]:
    """The files that are missing or not those that the result was written with."""
    digests = result.get("digests", {})
    return [name for name in DIGESTED if file_digest(folder / name) != digests.get(name)]


class LiveCampaign(LiveRun):
    """The campaign as it was last read."""

    _run: CampaignRun | None

    def __init__(self, config: StoredConfig) -> None:
        super().__init__(config)
        path = config.folder / JOURNAL
        self._journal = JournalFollower(path, is_candidate, place(config.hash, JOURNAL))
        self._tally = Tally()

    def update(self, seconds: float) -> CampaignRun:
        """The campaign with what is new, after about that many seconds at most."""
        now = stamp(self.config.folder)
        if self._run is None or now != self._stamp or self._journal.is_behind:
            with report_unexpected_content(self.config.folder):
                self._run = self._read_until(time.monotonic() + seconds)
            self._stamp = now
        return self._run

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

    def _read_until(self, deadline: float) -> CampaignRun:
        remarks: list[str] = []
        result = read_file(self.config, RESULT, remarks)
        finished = None if result is None else self._finished(result, remarks)
        if finished is not None:
            self.share = 1.0
            return finished
        self._follow(deadline)
        published = self._published(result, remarks) if self._journal.is_behind else None
        return published or self._so_far(result, remarks)

    def _finished(self, result: Row, remarks: list[str]) -> CampaignRun | None:
        """The campaign from its result; None unless the other files are those it was made with."""
        folder = self.config.folder
        if result.get("tried") != _n_tried(folder / JOURNAL) or _changed(folder, result):
            return None
        if (folder / JOURNAL).stat().st_size <= _SMALL:
            return read(self.config)
        hall, history = _stored_hall(folder), _stored_history(folder)
        if hall is None or history is None:
            return None
        counts = {name: int(result[name]) for name in ("tried", "evaluated", "repeats")}
        return _campaign(self.config, result, remarks, hall, history, counts, result["rejected"])

    def _follow(self, deadline: float) -> None:
        """Read the journal until it ends or time is up."""
        while True:
            piece = self._journal.read()
            if piece.is_first:
                self._tally = Tally()
            self._tally.count([Candidate.from_json(record) for record in piece.records])
            if not self._journal.is_behind or time.monotonic() > deadline:
                break
        size = self._journal.size
        self.share = self._journal.offset / size if self._journal.is_behind else 1.0

    def _published(self, result: Row | None, remarks: list[str]) -> CampaignRun | None:
        """The campaign as it last published itself, to show while a long journal is read."""
        hall, history = _stored_hall(self.config.folder), _stored_history(self.config.folder)
        if not hall or not history or len(history) < len(self._tally.history):
            return None
        counts = {name: int(history[-1][name]) for name in self._tally.counts}
        rejected = {"any rule": int(history[-1]["rejected"])}
        waiting = "The journal is being read; until then this is what the campaign last published."
        shown = [*remarks, waiting]
        return _campaign(self.config, result, shown, hall, history, counts, rejected)

    def _so_far(self, result: Row | None, remarks: list[str]) -> CampaignRun:
        """The campaign as far as its journal was read."""
        journal, tally = self._journal, self._tally
        if journal.remark:
            remarks.append(f"Not all of the journal is read: {journal.remark}.")
        if not journal.is_behind:
            remarks += _on_result(self.config.folder, result, tally.tried)
        return _from_tally(self.config, result, remarks, tally)


def watch(config: StoredConfig) -> LiveCampaign:
    """What follows the campaign with that config."""
    return LiveCampaign(config)


def _n_tried(journal: Path) -> int | None:
    """How many formulas the journal has, by its last line; None if that line is torn."""
    with suppress(OSError, ValueError, TypeError, LookupError):
        tail = read_tail(journal, _TAIL)
        if tail.endswith(b"\n"):
            return int(json.loads(tail.splitlines()[-1])["id"]) + 1
    return None
