"""Reads a campaign's directory: its settings, its results, and remarks on what is missing."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lpzero.discover.candidate import Candidate
from lpzero.discover.hall_of_fame import HallOfFame, admit
from lpzero.discover.settings import PRESETS, Settings
from lpzero.discover.storage import is_candidate
from lpzero.discover.tally import Tally
from lpzero.errors import InputError
from lpzero.options import to_arguments, to_json
from lpzero.runs.config import StoredConfig
from lpzero.runs.directory import file_digest
from lpzero.runs.formula_run import FormulaRun, PairRho, Row, pairs_in
from lpzero.runs.journal import read_journal
from lpzero.runs.layout import CONFIG, DIGESTED, HALL, HISTORY, JOURNAL, RESULT, SCORES, place
from lpzero.runs.run import read_file
from primitives.parser import parse
from primitives.space_size import SpaceSize, measure
from primitives.statistics import STATISTICS


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

    def command(self) -> list[str]:
        preset = "paper" if self.settings["method"] == "paper" else "default"
        files = self.request.get("files", {})
        words = ["lpzero", "discover"]
        for table in self.tables:
            words += _file_words(files.get(table["name"])) or [table["name"]]
        words += [w for path in self.request.get("plugins", []) for w in ("--plugin", str(path))]
        words += ["--preset", preset]
        complete = {**to_json(Settings()), **self.settings}
        words += to_arguments(Settings, complete, to_json(PRESETS[preset]))
        return words + self.shared_options("--sketch-seed")

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
                lowest = min(abs(float(found["rho"])) for found in line["train"].values())
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


def _file_words(source: Mapping[str, Any] | None) -> list[str]:
    """The arguments that name a file of columns and how it is read; none for other tables."""
    if source is None:
        return []
    reading = source["reading"]
    words = [str(source["path"])]
    words += ["--space", str(source["space"])] if "space" in source else []
    for flag, name in (("--target", "target"), ("--id", "ids"), ("--task", "task")):
        words += [flag, str(reading[name])] if reading[name] is not None else []
    return [*words, "--smaller-is-better"] if reading["smaller_is_better"] else words


def read(config: StoredConfig) -> CampaignRun:
    """The campaign with that config."""
    folder, tables = config.folder, tables_of(config)
    remarks: list[str] = []
    lines, torn = read_journal(folder / JOURNAL, is_candidate, place(config.hash, JOURNAL))
    if torn:
        remarks.append(
            f"The last {torn} bytes of {JOURNAL}, from line {len(lines) + 1}, are torn or were"
            " changed, and were ignored."
        )
    result = read_file(config, RESULT, remarks)
    remarks += on_result(folder, result, len(lines))
    is_whole = result is not None and result.get("tried") == len(lines)
    digests = result.get("digests", {}) if result is not None and is_whole else {}
    changed = [name for name in DIGESTED if file_digest(folder / name) != digests.get(name)]
    if is_whole:
        remarks += [
            f"{name} is missing or was changed; it was made again from {JOURNAL}."
            for name in changed
        ]
    hall, history = (None, None) if changed else (stored_hall(folder), stored_history(folder))
    if hall is None or history is None:
        hall, history = _from_journal(lines, [table["name"] for table in tables])
    return CampaignRun(
        config,
        result,
        remarks,
        tables,
        read_file(config, SCORES, remarks) if result is not None else None,
        hall,
        history,
        {
            "tried": len(lines),
            "evaluated": sum("key" in line for line in lines),
            "repeats": sum("repeats" in line for line in lines),
        },
        dict(Counter(str(line["rejected"]) for line in lines if "rejected" in line)),
        lines,
    )


def tables_of(config: StoredConfig) -> list[dict[str, str]]:
    """Name, space, target and digest of each table of the request."""
    try:
        return [
            {key: str(table[key]) for key in ("name", "space", "target", "digest")}
            for table in config.request["tables"]
        ]
    except (KeyError, TypeError) as error:
        raise InputError(f"{config.folder / CONFIG} does not name its tables") from error


def on_result(folder: Path, result: Row | None, n_lines: int) -> list[str]:
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


def stored_hall(folder: Path) -> list[Row] | None:
    """The hall of fame as the campaign wrote it; None if it is missing or incomplete."""
    try:
        rows = json.loads((folder / HALL).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    needed = {"formula", "complexity", "fitness"}
    is_whole = isinstance(rows, list) and all(
        isinstance(row, dict) and row.keys() >= needed for row in rows
    )
    return rows if is_whole else None


def stored_history(folder: Path) -> list[Row] | None:
    """The rows of the history as the campaign wrote it; None if it is missing or incomplete."""
    try:
        text = (folder / HISTORY).read_text(encoding="utf-8")
        rows: list[Row] = list(csv.DictReader(io.StringIO(text)))
        for row in rows:
            float(row["evaluated"]), float(row["fitness"])
    except (FileNotFoundError, ValueError, KeyError, TypeError, csv.Error):
        return None
    return rows


def _from_journal(lines: Sequence[Row], tables: Sequence[str]) -> tuple[list[Row], list[Row]]:
    """Hall of fame and history, rebuilt from what was tried."""
    candidates = [Candidate.from_json(line) for line in lines]
    tally = Tally()
    tally.count(candidates)
    return list(admit(HallOfFame(), candidates).rows(tables)), list(tally.history)
