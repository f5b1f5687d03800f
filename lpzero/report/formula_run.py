"""A run's directory as one value: what was asked, what was found, and what is missing.

Nothing in the directory is changed, and nothing but JSON and CSV is read. A campaign that is not
finished, or that has lost a file, gives what there is, with a remark on the rest.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lpzero.discover import checkpoint, journal
from lpzero.discover.candidate import Candidate
from lpzero.discover.hall_of_fame import HallOfFame, admit
from lpzero.discover.tally import Tally
from lpzero.errors import InputError
from lpzero.exhaust import results as runs
from lpzero.report.figures import heatmap
from lpzero.runs import directory as files
from lpzero.runs import scoresheet
from primitives.parser import parse_paper_formula

Row = dict[str, Any]
CAMPAIGN, EXHAUSTIVE = "campaign", "exhaustive run"


@dataclass(frozen=True, eq=False)
class FormulaRun:
    """`tables`: name, space, target, digest of each. `result` and `sheet` are None if there is
    none that can be read; `hall` and `history` are rows; `counts` are tried, evaluated, repeats;
    `rejected` is rule to count; `best` is for the heat map."""

    kind: str
    folder: Path
    config: Mapping[str, Any]
    tables: Sequence[Mapping[str, Any]]
    result: Mapping[str, Any] | None
    sheet: Mapping[str, Any] | None
    hall: Sequence[Row]
    history: Sequence[Row]
    counts: Mapping[str, int]
    rejected: Mapping[str, int]
    best: heatmap.Best
    remarks: list[str] = field(default_factory=list)


def result_of(run: FormulaRun, name: str) -> Mapping[str, Any]:
    """What the result says of a table."""
    if run.result is None:
        return {}
    if run.kind != CAMPAIGN:
        return run.result
    return next((found for found in run.result["tables"] if found["name"] == name), {})


@contextmanager
def understood(folder: Path) -> Iterator[None]:
    """Files that are whole and do not hold what was expected are one error, of the input."""
    try:
        yield
    except InputError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise InputError(
            f"the files in {folder} do not hold what a report needs"
            f" ({type(error).__name__}: {error}): they are of another version, or were changed"
        ) from error


def campaign(folder: Path) -> FormulaRun:
    """What a campaign's directory holds."""
    config = checkpoint.read_config(folder)
    assert config is not None, "it is there"
    try:
        tables = [{key: str(table[key]) for key in ("name", "space", "target", "digest")}
                  for table in config["tables"]]  # fmt: skip
    except (KeyError, TypeError) as error:
        raise InputError(f"{folder / files.CONFIG} does not say which tables it is of") from error
    remarks: list[str] = []
    lines = _journal(folder, remarks)
    result = _object(folder / files.RESULT, remarks)
    if result is None:
        remarks.append(
            "The campaign is not finished, so there is no winner and no test row was read."
            f" Go on with: lpzero discover --out {folder} --resume"
        )
    elif result.get("tried") != len(lines):
        remarks.append(
            f"{files.RESULT} speaks of {result.get('tried')} formulas and {files.JOURNAL} holds"
            f" {len(lines)}: the campaign has gone on since. Finish it with:"
            f" lpzero discover --out {folder} --resume"
        )
    hall, history = _hall(folder), _history(folder)
    if hall is None or history is None:
        made = _from_journal(lines, [table["name"] for table in tables])
        hall, history = hall or made[0], history or made[1]
    scored = [line for line in lines if "fitness" in line]
    return FormulaRun(
        CAMPAIGN,
        folder,
        config,
        tables,
        result,
        _object(folder / scoresheet.FILE, remarks) if result is not None else None,
        hall,
        history,
        {
            "tried": len(lines),
            "evaluated": sum("key" in line for line in lines),
            "repeats": sum("repeats" in line for line in lines),
        },
        dict(Counter(str(line["rejected"]) for line in lines if "rejected" in line)),
        heatmap.of_formulas(
            (parse_paper_formula(line["formula"]), _lowest(line)) for line in scored
        ),
        remarks,
    )


def exhaustive(folder: Path) -> FormulaRun:
    """What an exhaustive run's directory holds."""
    remarks: list[str] = []
    config = _object(folder / runs.RUN, remarks)
    if config is None or not config.keys() >= {"table", "space", "digest", "unaries"}:
        raise InputError(f"{folder / runs.RUN} is broken: start the run again")
    result = _object(folder / runs.RESULT, remarks)
    found = runs.Results(folder, config["unaries"], bool(config.get("same_statistic")))
    n_missing = len(found.missing())
    if n_missing:
        remarks.append(
            f"The run is not finished: {n_missing} of {len(found.shards)} shards are missing."
            " Start it again with the same --out; it goes on where it stopped."
        )
    elif result is None:
        remarks.append(
            f"There is no {runs.RESULT}: start the run again with the same --out, and it is"
            " written without computing anything again."
        )
    table = {"name": config["table"], "space": config["space"], "digest": config["digest"],
             "target": str((result or {}).get("target", "target"))}  # fmt: skip
    return FormulaRun(
        EXHAUSTIVE,
        folder,
        config,
        [table],
        result,
        _object(folder / scoresheet.FILE, remarks) if result is not None else None,
        [_exhaustive_row(line) for line in (result or {}).get("top", [])],
        [],
        {"evaluated": 0 if n_missing else found.counts[0]},
        dict((result or {}).get("rejected", {})),
        heatmap.Best((), (), heatmap.EMPTY) if n_missing else heatmap.of_results(found),
        remarks,
    )


def _exhaustive_row(line: Mapping[str, Any]) -> Row:
    return {
        "formula": line["formula"],
        "complexity": line["complexity"],
        "fitness": line["rho"]["train"],
    }


def _journal(folder: Path, remarks: list[str]) -> list[Row]:
    records, torn = journal.read(folder / files.JOURNAL)
    if torn:
        remarks.append(
            f"The last {torn} bytes of {files.JOURNAL} cannot be read; what they hold is left out."
        )
    return records


def _lowest(line: Mapping[str, Any]) -> float:
    """The lowest absolute rho over the tables of a journal's line."""
    return min(abs(float(found["rho"])) for found in line["train"].values())


def _object(path: Path, remarks: list[str]) -> dict[str, Any] | None:
    found = files.read_json(path)
    if found is None and path.exists():
        remarks.append(f"{path.name} is broken and left out.")
    return found


def _hall(folder: Path) -> list[Row] | None:
    try:
        rows = json.loads((folder / files.HALL).read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    needed = {"formula", "complexity", "fitness"}
    is_whole = isinstance(rows, list) and all(
        isinstance(row, dict) and row.keys() >= needed for row in rows
    )
    return rows if is_whole else None


def _history(folder: Path) -> list[Row] | None:
    try:
        text = (folder / files.HISTORY).read_text(encoding="utf-8")
        rows: list[Row] = list(csv.DictReader(io.StringIO(text)))
        for row in rows:
            float(row["evaluated"]), float(row["fitness"])
    except (FileNotFoundError, ValueError, KeyError, TypeError, csv.Error):
        return None
    return rows


def _from_journal(lines: Sequence[Row], tables: Sequence[str]) -> tuple[list[Row], list[Row]]:
    """Hall of fame and history, made again from what was tried."""
    candidates = [Candidate.from_json(line) for line in lines]
    tally = Tally()
    tally.count(candidates)
    return admit(HallOfFame(), candidates).rows(tables), tally.history
