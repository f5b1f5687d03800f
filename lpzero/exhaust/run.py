"""Measures every formula of the paper's space on the training rows of one table.

table, sketches -> branch table -> shards of measures (stored) -> Results
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.arrays import IntArray
from lpzero.errors import InputError, LPZeroError
from lpzero.exhaust.products import PairResults, PairTask, needed_bytes
from lpzero.exhaust.results import Results
from lpzero.exhaust.shards import ShardFiles, ShardTask, family_scorer
from lpzero.files import subfolder
from lpzero.judgement.ranks import rank_targets
from lpzero.judgement.table import TableJudge
from lpzero.options import LANGUAGE, Switch, Whole, check, option
from lpzero.parallel import Lost, Workers, stream
from lpzero.runs.config import RunConfig, table_entries
from lpzero.runs.directory import RunDirectory
from lpzero.runs.layout import SHARDS
from lpzero.scores.branch_table import BranchTable, branch_table
from lpzero.scores.chains import surviving
from lpzero.scores.products import PairScreen
from lpzero.scores.terms import term_table
from lpzero.scores.values import Values
from lpzero.sketches.sketch import Sketch, SketchOptions
from lpzero.version import VERSION

if TYPE_CHECKING:
    from spaces.tables import Split, Table


class ExhaustError(LPZeroError, RuntimeError):
    """A run that could not be finished; starting it again resumes it."""


KIND = "exhaustive run"
GIGABYTE = 1 << 30
_MIN_WORKER_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class ExhaustSettings:
    """The settings of an exhaustive run: which formulas, and how much memory."""

    unaries: int = option(1, "The number of unary operations per chain.", Whole(1, 2))
    same_statistic: bool = option(
        False, "Also pair each statistic with itself.", Switch(), panel=LANGUAGE
    )
    terms: int = option(
        1, "2 judges every product of two terms instead of the paper's space.", Whole(1, 2)
    )
    memory: int = 4 * GIGABYTE  # that all processes together may take
    workers: Workers | None = None
    progress: bool = False
    lock: bool = True

    def __post_init__(self) -> None:
        check(self)

    @property
    def is_screened(self) -> bool:
        """Whether only the products that a closed form finds best are ranked exactly."""
        return self.terms == 2 and self.unaries > 1


def exhaust(
    table: Table,
    sketches: Sequence[Sketch],
    split: Split,
    folder: Path,
    asked: ExhaustSettings,
    options: SketchOptions | None = None,
) -> tuple[Results | PairResults, BranchTable]:
    """Measure every formula on the training rows, resuming where an earlier call stopped.

    Also returns the branch table of all rows, from which the chosen formulas are scored.
    """
    chains = surviving(asked.unaries, asked.same_statistic)
    config = exhaustive_config(table, split, asked, options)
    files = ShardFiles(folder, config.hash)
    with RunDirectory(folder, config, resume=True, lock=asked.lock) as directory:
        directory.log_remarks()
        subfolder(folder, SHARDS)
        label = "branches" if asked.progress else None
        branches = branch_table(sketches, chains, None, asked.workers, label)
        if asked.terms == 2:
            return _measure_pairs(table, split.train, branches, files, asked), branches
        results = Results(files, asked.unaries, asked.same_statistic)
        missing = results.missing()
        if missing:
            _measure(table, split.train, branches, results, missing, asked)
    return results, branches


def _measure_pairs(
    table: Table, train: IntArray, branches: BranchTable, files: ShardFiles, asked: ExhaustSettings
) -> PairResults:
    """Measure every product of two terms on the training rows; those of longer chains screened."""
    terms = term_table(Values(branches))
    results = PairResults(files, terms, asked.is_screened)
    missing = results.missing()
    results.write_terms()
    if missing:
        jobs = (asked.workers or Workers()).jobs
        _check_memory(asked, needed_bytes(len(terms), len(train), jobs, asked.is_screened))
        logs = np.ascontiguousarray(terms.logs[:, train])
        task = PairTask(
            logs,
            TableJudge(table).measures(train),
            files,
            rank_targets(table.targets[train]),
            PairScreen.of(logs) if asked.is_screened else None,
        )
        # The largest first: the last ones take milliseconds, so that all workers end together.
        missing.sort(key=lambda shard: -shard[1].n_products(len(terms)))
        _run(task, missing, asked)
    return results


def exhaustive_config(
    table: Table, split: Split, asked: ExhaustSettings, options: SketchOptions | None = None
) -> RunConfig:
    """The config of an exhaustive run: everything that determines its measures."""
    request = {
        "version": VERSION,
        "tables": table_entries([table]),
        "split_seed": split.seed,
        "unaries": asked.unaries,
        "terms": asked.terms,
        "same_statistic": asked.same_statistic,
        "chains": surviving(asked.unaries, asked.same_statistic).digest,
        "sketch": (options or SketchOptions()).to_json(),
    }
    return RunConfig(KIND, request, of_engine=("version", "chains"))


def _measure(
    table: Table,
    train: IntArray,
    branches: BranchTable,
    results: Results,
    missing: list[Any],
    asked: ExhaustSettings,
) -> None:
    workers, judged = asked.workers or Workers(), TableJudge(table)
    rows = judged.by_group(train)
    scorer = family_scorer(branches, rows)
    # Twice: the table was assembled from parts, and workers map a copy of the scorer.
    fixed = 2 * (branches.nbytes + scorer.nbytes)
    per_worker = (asked.memory - fixed) // (2 * workers.jobs)
    _check_memory(asked, fixed + 2 * workers.jobs * _MIN_WORKER_BYTES)
    task = ShardTask(scorer, judged.measures(rows), results.families, results.files, per_worker)
    _run(task, missing, asked)


def _check_memory(asked: ExhaustSettings, needed: int) -> None:
    """Raise InputError unless the run may take that many bytes."""
    if needed > asked.memory:
        gigabytes = needed / GIGABYTE
        raise InputError(f"this run needs at least {gigabytes:.2f} GB: give --memory more")


def _run(task: ShardTask | PairTask, missing: Sequence[Any], asked: ExhaustSettings) -> None:
    """Give every missing shard to a worker."""
    label = "formulas" if asked.progress else None
    with closing(stream(task, missing, asked.workers, label)) as outcomes:
        for index, outcome in outcomes:
            if isinstance(outcome, Lost):
                raise ExhaustError(f"shard {missing[index][0]} was lost: {outcome.reason}")
            if not task.files.path(missing[index][0]).is_file():
                raise ExhaustError(
                    f"a worker wrote shard {missing[index][0]} but {task.files.folder} does not"
                    " have it: workers on other machines need the same shared folder"
                )
