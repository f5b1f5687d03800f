"""Every formula of the paper's space on one table: measured on the training rows, then reported.

table, sketches -> branch table -> shards of measures (kept) -> Results
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lpzero.arrays import IntArray
from lpzero.errors import InputError, LPZeroError
from lpzero.exhaust.results import Results
from lpzero.exhaust.shards import ShardTask
from lpzero.judgement.table import JudgedTable
from lpzero.options import Bytes, Switch, Whole, check, option
from lpzero.parallel import Lost, Workers, stream
from lpzero.runs.config import RunConfig, table_entries
from lpzero.runs.directory import RunDirectory
from lpzero.scores.branch_table import BranchTable, branch_table
from lpzero.scores.chains import surviving
from lpzero.scores.families import family_scorer
from lpzero.sketches.sketch import Sketch, SketchOptions
from lpzero.version import VERSION

if TYPE_CHECKING:
    from spaces.tables import Split, Table


class ExhaustError(LPZeroError, RuntimeError):
    """A run that could not be finished; starting it again goes on with it."""


KIND = "exhaustive run"
GIGABYTE = 1 << 30
_LEAST = 16 << 20  # what a worker needs in any case


@dataclass(frozen=True, slots=True)
class Exhaustion:
    """What is asked: which formulas, and within how much memory."""

    unaries: int = option(1, "Operations per chain.", Whole(1, 2))
    same_statistic: bool = option(False, "Pair each statistic with itself, too.", Switch())
    memory: int = option(4 * GIGABYTE, "What the search may take, all processes together.", Bytes())
    workers: Workers | None = None
    progress: bool = False

    def __post_init__(self) -> None:
        check(self)


def exhaust(
    table: Table,
    sketches: Sequence[Sketch],
    split: Split,
    folder: Path,
    asked: Exhaustion,
    options: SketchOptions | None = None,
) -> tuple[Results, BranchTable]:
    """Measure every formula on the training rows, going on where an earlier call stopped.

    The branch table, of all rows, comes back too: what is chosen is scored from it.
    """
    chains = surviving(asked.unaries, asked.same_statistic)
    with RunDirectory(folder, exhaustive_config(table, split, asked, options), resume=True):
        results = Results(folder, asked.unaries, asked.same_statistic)
        label = "branches" if asked.progress else None
        branches = branch_table(sketches, chains, None, asked.workers, label)
        missing = results.missing()
        if missing:
            _measure(table, split.train, branches, results, missing, asked)
    return results, branches


def exhaustive_config(
    table: Table, split: Split, asked: Exhaustion, options: SketchOptions | None = None
) -> RunConfig:
    """The config of an exhaustive run: what decides its measures."""
    request = {
        "version": VERSION,
        "tables": table_entries([table]),
        "split_seed": split.seed,
        "unaries": asked.unaries,
        "same_statistic": asked.same_statistic,
        "chains": surviving(asked.unaries, asked.same_statistic).digest,
        "sketch": asdict(options or SketchOptions()),
    }
    return RunConfig(KIND, request)


def _measure(
    table: Table,
    train: IntArray,
    branches: BranchTable,
    results: Results,
    missing: list[Any],
    asked: Exhaustion,
) -> None:
    workers = asked.workers or Workers()
    laid_out = family_scorer(branches, train)
    # Twice, because the table was put together from parts, and workers map a copy of theirs.
    fixed = 2 * (branches.nbytes + laid_out.nbytes)
    room = (asked.memory - fixed) // (2 * workers.jobs)
    if room < _LEAST:
        least = (fixed + 2 * workers.jobs * _LEAST) / GIGABYTE
        raise InputError(f"this run needs at least {least:.2f} GB: give --memory more")
    task = ShardTask(
        laid_out, JudgedTable(table).measures(train), results.families, results.folder, room
    )
    label = "formulas" if asked.progress else None
    with closing(stream(task, missing, workers, label)) as outcomes:
        for index, outcome in outcomes:
            if isinstance(outcome, Lost):
                raise ExhaustError(f"shard {missing[index][0]} was lost: {outcome.reason}")
