"""leaderboard: Rank every proxy on every table, on one page."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lpzero.errors import InputError
from lpzero.options import FOLDER, Real, Repeated, argument, group, option
from lpzero.runs.layout import JOURNAL, RESULT
from lpzero.runs.run import (
    FINISHED,
    STOPPED,
    Kind,
    Line,
    Run,
    list_of,
    n_lines,
    nested,
    read_file,
    whole,
)
from lpzero.verbs import Outcome, Screen, groups
from spaces.untrusted import user_path

if TYPE_CHECKING:
    from lpzero.arrays import FloatArray
    from lpzero.proxies import Context
    from lpzero.proxies.leaderboard import Board, Cell, Entry
    from lpzero.runs.config import StoredConfig
    from lpzero.runs.journal import Journal
    from spaces.tables import Table

KIND = Kind(
    "leaderboard",
    read=f"{__name__}:read",
    page="lpzero.report.leaderboard_page:content",
    line=f"{__name__}:line",
)
logger = logging.getLogger(__name__)
EXAMPLES = (
    "lpzero leaderboard nano-gpt2 nano-flexibert --time-limit 600",
    "lpzero leaderboard --proxy snip --proxy grasp --jobs 4",
    "lpzero leaderboard --add my.json",
)
ADDED = "added"
_OUT = Path("runs", "leaderboard")
_AGAIN = "the same command goes on"


@dataclass(frozen=True, kw_only=True)
class Request:
    """Rank every proxy on all rows of every TABLE, and keep what is computed.

    Without a TABLE: all that are present and have networks. The cheapest proxies come first; the
    same command continues, with other tables, proxies and files too, and the page says what is
    missing.
    """

    tables: tuple[str, ...] = argument("TABLE", ())
    proxies: tuple[str, ...] = option(
        (), "Compute this proxy alone now; repeatable.  [default: all]", Repeated("NAME"), "--proxy"
    )
    added: tuple[str, ...] = option(
        (),
        "Put the formula, ensemble or predictor in this exported file on the board too; repeatable."
        " Nothing in it is run as code.",
        Repeated("FILE"),
        "--add",
    )
    time_limit: float | None = option(
        None,
        f"Stop after this many seconds; {_AGAIN}.  [default: no limit]",
        Real(0, is_open=True),
        is_local=True,
    )
    out: str | None = option(None, f"The run's directory.  [default: {_OUT}]", FOLDER)
    chunk: int | None = groups.chunk()
    work: groups.LongRun = group(groups.LongRun)
    running: groups.Running = group(groups.Running)
    weights_seed: int = groups.weights_seed()

    def context(self, screen: Screen, stops: Callable[[], bool]) -> Context:
        """How networks are run."""
        from lpzero.proxies import Context

        running, seed = self.running, self.weights_seed
        how = "auto", running.device, self.chunk, running.folder, running.workers
        return Context(seed, seed, *how, label=screen.label("networks"), stops=stops)


def out(request: Request) -> str:
    """The run's directory."""
    return str(request.out or _OUT)


def run(request: Request, screen: Screen) -> Outcome:
    """The board as JSON values; it is written with its page."""
    from lpzero.proxies.leaderboard import is_cell
    from lpzero.report import write
    from lpzero.runs.config import RunConfig
    from lpzero.runs.directory import RunDirectory
    from lpzero.runs.run import open_run

    start = time.monotonic()
    limit = request.time_limit
    context = request.context(screen, lambda: limit is not None and _over(start, limit))
    zoo = _zoo(request)
    tables = _tables(request)
    folder = user_path(out(request))
    config = RunConfig(KIND.name, {"seed": request.weights_seed, "loss": context.loss})
    with RunDirectory(folder, config, True, is_cell, request.work.lock) as directory:
        directory.log_remarks()
        work = _Work(directory.journal, tables, zoo, context)
        work.compute(set(request.proxies), screen)
        result = work.result()
        directory.write_result(result, time.monotonic() - start)
    page = write(open_run(folder)).page
    return Outcome(result, {"page": page, "json": folder / RESULT})


def _over(start: float, limit: float) -> bool:
    return time.monotonic() - start >= limit


def _zoo(request: Request) -> list[Entry]:
    """Every registered proxy and what is added; raise InputError for a name that is not there."""
    from lpzero.proxies import get, names
    from lpzero.proxies.leaderboard import Entry
    from lpzero.proxies.lookup import from_file
    from lpzero.proxies.registry import family

    zoo = [Entry(get(name), family(name)) for name in names()]
    for path in request.added:
        if user_path(path).is_dir():
            raise InputError(f"--add takes a file; write one with `lpzero export {path} --to json`")
        proxy = from_file(path)
        if proxy.name in {entry.name for entry in zoo}:
            raise InputError(f"{path}: there is a proxy {proxy.name} already; change its name")
        zoo.append(Entry(proxy, ADDED))
    known = {entry.name for entry in zoo}
    for name in request.proxies:
        if name not in known:
            get(name)  # says which names are alike
    return zoo


def _tables(request: Request) -> list[Table]:
    """The tables that are asked for, or all that are there and have networks."""
    from spaces.tables import describe, load
    from spaces.tables.source import NO_SPACE

    data = request.running.tables_folder
    names = request.tables or [
        entry.name for entry in describe(data) if entry.present and entry.space != NO_SPACE
    ]
    return [load(name, data) for name in dict.fromkeys(names)]


@dataclass(frozen=True, eq=False)
class _Fitted:
    """What was fitted to a table: the best count of all rows, and entries of rows left out."""

    count: FloatArray
    formula: str
    entries: Sequence[Entry]


class _Work:
    """The cells of the board: those in the journal, where the last line of a cell counts."""

    def __init__(
        self, journal: Journal, tables: Sequence[Table], zoo: Sequence[Entry], context: Context
    ) -> None:
        from lpzero.proxies import Measurements
        from lpzero.proxies.leaderboard import Board
        from lpzero.proxies.ranking import Ranking

        self._journal, self._zoo, self._context = journal, zoo, context
        self._cells: dict[str, Cell] = {cell["key"]: cell for cell in journal.records()}
        journal.go_to(len(journal))
        measurements = Measurements(context)  # tables of one space share their networks
        ranking = Ranking(context, is_brief=True)
        boards = [Board(table, ranking, measurements) for table in tables]
        self._boards = sorted(boards, key=lambda board: (board.cost, board.table.name))
        self._fitted = {board.table.name: fitted(board.table) for board in boards}

    def compute(self, only: set[str], screen: Screen) -> None:
        """Compute the cells that are not known, or only those of some proxies, until time is up."""
        from lpzero.proxies.leaderboard import stages

        for board in self._boards:
            self._add(board, self._fitted[board.table.name].entries, screen)
        wanted = [entry for entry in self._zoo if not only or entry.name in only]
        for entries in stages(wanted):
            for board in self._boards:
                if self._context.stops():
                    screen.say(f"the time is up; {_AGAIN}")
                    return
                self._add(board, entries, screen)

    def _add(self, board: Board, entries: Sequence[Entry], screen: Screen) -> None:
        """Add the cells of these proxies on a table."""
        from lpzero.proxies.leaderboard import why_not

        todo = []
        for entry in entries:
            known = self._cells.get(entry.key(board.table, self._context))
            is_open = known is None or known["left"] > 0
            if is_open and why_not(entry.proxy, board.table.space) is None:
                todo.append(entry)
        if not todo:
            return
        if screen.progress:
            screen.say(f"{board.table.name}: {len(todo)} proxies from {todo[0].name}")
        board.measure(todo)
        count = self._fitted[board.table.name].count
        for entry in todo:
            key = entry.key(board.table, self._context)
            cell = {"key": key, **board.cell(entry, count)}
            if cell != self._cells.get(key):
                self._cells[key] = cell
                self._journal.append([cell])
        self._journal.sync()

    def result(self) -> dict[str, Any]:
        """The board as JSON values: tables, proxies, a cell for each of both, mean ranks."""
        from lpzero.proxies.leaderboard import STATES

        cells = [self._cell(board, entry) for board in self._boards for entry in self._all(board)]
        entries = {e.name: e.to_json() for board in self._boards for e in self._all(board)}
        states = Counter(cell["state"] for cell in cells)
        return {
            "schema": 1,
            "tables": [self._about(board.table) for board in self._boards],
            "proxies": list(entries.values()),
            "cells": cells,
            "states": {state: states[state] for state in STATES},
            "mean_ranks": list(_mean_ranks([b.table for b in self._boards], cells, entries)),
        }

    def _all(self, board: Board) -> list[Entry]:
        return [*self._zoo, *self._fitted[board.table.name].entries]

    def _cell(self, board: Board, entry: Entry) -> Cell:
        """The cell as it is known; missing, with its rows, if it has not been computed."""
        from lpzero.proxies.leaderboard import empty_cell

        known = self._cells.get(entry.key(board.table, self._context))
        if known is None:
            return empty_cell(entry, board.table)
        return {name: value for name, value in known.items() if name not in ("key", "seal")}

    def _about(self, table: Table) -> dict[str, Any]:
        fields = ("name", "target", "digest", "licence", "ceiling")
        about = {name: getattr(table, name) for name in fields}
        count = self._fitted[table.name].formula
        return about | {"space": table.space.name, "n": len(table), "best_count": count}


def fitted(table: Table) -> _Fitted:
    """What sizes alone say about a table, in sample and on rows left out of a fit."""
    import numpy as np

    from lpzero.discover.levels import COUNT, ReliableTerms, choose_level, pooled, row_folds
    from lpzero.judgement import counters
    from lpzero.judgement.counters import BEST_COUNT
    from lpzero.proxies.leaderboard import FITTED, Entry
    from lpzero.proxies.ranking import TableColumn
    from lpzero.scores.features import describe
    from lpzero.scores.formula_rivals import best_count, count_terms
    from lpzero.scores.predictor import ProcessOfRows

    rows, targets = np.arange(len(table)), table.targets
    best = best_count(table, rows)
    columns = {BEST_COUNT: (best.scores, "the best product of sizes of all rows: in sample")}
    terms = ReliableTerms.of(count_terms(table), None, rows, frozenset(counters.names()))
    choice = choose_level([terms.level(COUNT)], targets, rows, table.twins(), 0)
    if choice is not None:
        shares = np.mean([pooled(folds, rows) for folds in choice.folded], axis=0)
        columns["best count, held out"] = (shares, "the same, chosen without each fold of the rows")
    features = describe(table.space, table.archs)
    predicted = np.zeros(len(table))
    repeated = list(row_folds(rows, table.twins(), 0))
    for known, left_out in (pair for folds in repeated for pair in folds):
        process = ProcessOfRows([features[row] for row in known], targets[known])
        predicted[left_out] += process.predict([features[row] for row in left_out])
    about = "a Gaussian process on the features of architectures, fitted without each fold"
    # Rows that are alike have one score, whatever the last digits of a prediction are.
    columns["features, held out"] = (np.round(predicted / len(repeated), 9), about)
    entries = []
    for name, (scores, definition) in columns.items():
        on = ((table.name, None),) if name == BEST_COUNT else ()
        column = TableColumn(name, table.archs, scores, definition, chosen_on=on)
        entries.append(Entry(column, FITTED))
    return _Fitted(best.scores, str(best.formula), entries)


def _mean_ranks(
    tables: Sequence[Table], cells: Sequence[Cell], entries: Mapping[str, Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Mean ranks over spaces, of proxies that are complete on all of them and saw none.

    Tables of one space share their architectures, so that a space counts once, with the mean of
    its tables. All spaces, and those whose networks have attention.
    """
    import numpy as np

    from lpzero.judgement.mean_ranks import LEAST_PROXIES, LEAST_TABLES, mean_ranks
    from lpzero.proxies.leaderboard import COMPLETE, FITTED

    rhos: dict[str, dict[str, list[float]]] = {}
    spaces = {table.name: table.space.name for table in tables}
    has_attention = {table.space.name: "S" not in table.space.absent_statistics for table in tables}
    held_back: dict[str, set[str]] = {}
    for cell in cells:
        space, name = spaces[cell["table"]], cell["proxy"]
        if entries[name]["family"] == FITTED:
            continue
        if cell["state"] == COMPLETE and not cell["in_sample"]:
            rhos.setdefault(name, {}).setdefault(space, []).append(cell["rho"])
        else:
            held_back.setdefault(name, set()).add(space)
    every = sorted(has_attention)
    seen: list[list[str]] = []
    for over, chosen in (
        ("all kinds of networks", every),
        ("networks with attention", [space for space in every if has_attention[space]]),
    ):
        ranked = sorted(name for name in rhos if not held_back.get(name, set()) & set(chosen))
        if len(chosen) < LEAST_TABLES or len(ranked) < LEAST_PROXIES or chosen in seen:
            continue
        seen.append(chosen)
        measures = np.array([[np.mean(rhos[name][space]) for space in chosen] for name in ranked])
        found = mean_ranks(measures)
        rows = [
            {"proxy": name, "family": entries[name]["family"], "mean_rank": rank, "mean_rho": rho}
            for name, rank, rho in zip(
                ranked, found.ranks.tolist(), measures.mean(axis=1).tolist(), strict=True
            )
        ]
        left_out = {
            name: sorted(held_back[name] & set(chosen))
            for name in sorted(held_back)
            if held_back[name] & set(chosen)
        }
        yield {
            "over": over,
            "spaces": chosen,
            "critical_difference": found.critical_difference,
            "friedman_p": found.p,
            "rows": sorted(rows, key=lambda row: (row["mean_rank"], row["proxy"])),
            "left_out": left_out,
        }


def read(config: StoredConfig) -> Run:
    """The board with that config."""
    remarks: list[str] = []
    result = read_file(config, RESULT, remarks)
    if result is None:
        remarks.append(f"The leaderboard is not finished: {_AGAIN}.")
    elif n_missing := nested(result, "states", "missing") + nested(result, "states", "partial"):
        remarks.append(f"{n_missing:,} cells are missing or cover a part of the rows: {_AGAIN}.")
    return Run(config, result, remarks)


def line(config: StoredConfig) -> Line:
    """The board in a list."""
    result = read_file(config, RESULT, []) or {}
    states = nested(result, "states") or {}
    tables = ", ".join(str(nested(table, "name")) for table in list_of(result.get("tables")))
    if not states:
        return Line(STOPPED, tables, f"{n_lines(config.folder / JOURNAL):,} cells")
    told = ", ".join(f"{whole(states.get(name)):,} {name}" for name in ("complete", "missing"))
    return Line(FINISHED, tables, told)
