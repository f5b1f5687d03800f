"""Reads an exhaustive run's directory (request, last result, what is missing), and follows it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lpzero.exhaust.products import PairResults, read_terms
from lpzero.exhaust.results import Query, Results
from lpzero.exhaust.run import ExhaustSettings
from lpzero.exhaust.shards import ShardFiles
from lpzero.judgement.measures import MEASURES, RHO
from lpzero.runs.config import StoredConfig
from lpzero.runs.formula_run import ONE_SIDED, FormulaRun, PairRho, Row, pairs_in
from lpzero.runs.layout import RESULT, SCORES, SHARDS
from lpzero.runs.run import LiveRun, Now, Run, read_file
from primitives.space_size import SpaceSize, measure


@dataclass(frozen=True, eq=False)
class ExhaustiveRun(FormulaRun):
    """An exhaustive run; `measured` are the measures of its shards, None if some are missing."""

    measured: Results | PairResults | None

    @property
    def settings(self) -> Mapping[str, Any]:
        shown = ("unaries", "terms", "same_statistic", "split_seed")
        return {key: self.request[key] for key in shown}

    @property
    def fitness_rows(self) -> str:
        return "train"

    def space_size(self) -> SpaceSize | None:
        if self.request["terms"] == 2:
            return None
        return measure(self.request["unaries"], bool(self.request["same_statistic"]))

    def pairs(self) -> Iterator[PairRho]:
        if isinstance(self.measured, PairResults):
            for entry in self.measured.best(Query(top=100)):
                yield from pairs_in(entry.formula, entry.measures.rho)
            return
        column = MEASURES.index(RHO)
        for family, values in [] if self.measured is None else self.measured.measured():
            rho = np.abs(values[column])
            if np.isnan(rho).all():
                continue
            left = family.left[0].statistic
            right = family.right[0].statistic if family.right else left
            yield PairRho(family.operation or ONE_SIDED, left, right, float(np.nanmax(rho)))


def read(config: StoredConfig) -> ExhaustiveRun:
    """The exhaustive run with that config."""
    request = config.request
    # The space of formulas grows without bound with these: refuse what no run has.
    ExhaustSettings(request["unaries"], request["same_statistic"], request["terms"])
    remarks: list[str] = []
    result = read_file(config, RESULT, remarks)
    measured = _results(ShardFiles(config.folder, config.hash), request)
    n_missing = len(measured.missing())
    if n_missing:
        remarks.append(
            f"The run is not finished: {n_missing} of {len(measured.shards)} shards are missing or"
            " broken. Run the same command with the same --out to finish it."
        )
    elif result is None:
        remarks.append(
            f"There is no {RESULT}: run the same command with the same --out to write it; nothing"
            " is computed again."
        )
    lines = [] if result is None else result["top"]
    return ExhaustiveRun(
        config,
        result,
        remarks,
        [{key: str(value) for key, value in table.items()} for table in request["tables"]],
        read_file(config, SCORES, remarks) if result is not None else None,
        [_row(line) for line in lines],
        [],
        {"evaluated": 0 if n_missing else measured.counts[0]},
        {} if result is None else dict(result["rejected"]),
        None if n_missing else measured,
    )


def _results(files: ShardFiles, request: Mapping[str, Any]) -> Results | PairResults:
    if request["terms"] == 2:
        return PairResults(files, read_terms(files), request["unaries"] > 1)
    return Results(files, request["unaries"], bool(request["same_statistic"]))


def _row(line: Row) -> Row:
    """A line of the result as a row of a hall of fame."""
    return {
        "formula": line["formula"],
        "complexity": line["complexity"],
        "fitness": line["rho"]["train"],
    }


class LiveExhaustion(LiveRun):
    """The run as it was last read; its measures are read once it has a result."""

    def _read(self) -> Run | None:
        return read(self.config) if (self.config.folder / RESULT).is_file() else None

    def now(self) -> Now:
        """The number of shards that were written."""
        try:
            names = os.listdir(self.config.folder / SHARDS)
        except OSError:
            names = []
        return Now({"shards": f"{sum(name.endswith('.npz') for name in names):,}"})


def watch(config: StoredConfig) -> LiveExhaustion:
    """What follows the exhaustive run with that config."""
    return LiveExhaustion(config)
