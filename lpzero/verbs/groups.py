"""Options that several verbs share, each declared once, and what they choose.

A request holds such a group as a field (`lpzero.options.group`); its options are the request's.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lpzero.errors import InputError
from lpzero.options import (
    CLUSTER,
    FOLDER,
    FORMER,
    JUDGEMENT,
    NETWORKS,
    SEED,
    TABLE_FILE,
    Bytes,
    Device,
    OneOf,
    Place,
    Real,
    Switch,
    Text,
    Whole,
    option,
)
from lpzero.statistics import DEFINITIONS, LOSSES, OURS
from spaces.memory import VARIABLE
from spaces.tables.source import DEPTH_WIDTH

if TYPE_CHECKING:
    from lpzero.parallel import Workers
    from lpzero.sketches.sketch import SketchOptions
    from spaces.minibatch import Minibatch

UPSTREAM_SPACE = "flexibert-upstream"
DEFINITIONS_HELP = (
    "What H, W and G of formulas are; released takes them as the authors' code does: the query or"
    " the input of a linear transform, and the Linears of the mixing operation."
)


def device() -> str:
    """The field of the device."""
    return option(
        "auto",
        "The device that networks run on; auto is a GPU if available, but not mps.",
        Device(),
        is_local=True,
        panel=CLUSTER,
    )


def memory() -> int | None:
    """The field of the memory that networks may take."""
    return option(
        None,
        "The memory that a network and its batch may take; exhaust: all processes together."
        "  [default: half of the free memory; exhaust: 4GB]",
        Bytes(),
        is_local=True,
        variable=VARIABLE,
        panel=CLUSTER,
    )


@dataclass(frozen=True)
class TableFile:
    """How a user's file is read as a table, and the space of its rows."""

    target: str | None = option(None, "A file as table: the column to rank by.", Text("COLUMN"))
    smaller_is_better: bool = option(
        False, "A file as table: a small target is good.", Switch(), panel=TABLE_FILE
    )
    ids: str | None = option(
        None,
        "A file as table: the column of ids.  [default: one called id or name, else lines]",
        Text("COLUMN"),
        "--id",
        panel=TABLE_FILE,
    )
    task: str | None = option(
        None,
        "A zero-cost file of NASLib: the task.  [default: the only one]",
        Text(),
        panel=TABLE_FILE,
    )
    impute: bool = option(
        False,
        "A file as table: where fewer than a tenth of a column's numbers are missing, fill them"
        " with its median and add a column NAME_missing.",
        Switch(),
        panel=TABLE_FILE,
    )
    categories: bool = option(
        False,
        "A file of rows: a column of texts becomes a column of 0 and 1 for each text.",
        Switch(),
        panel=TABLE_FILE,
    )
    space: str | None = option(
        None,
        "The space to build and count in; my_module:SPACE is one of your own, and runs its module."
        "  [default: the table's own]",
        Text("NAME|MODULE:NAME"),
        is_code=True,
    )

    @property
    def reading(self) -> Any:
        """How the file is read, or None if no option says anything about it."""
        from spaces.tables.readers import ReadOptions

        reading = ReadOptions(
            self.target,
            self.smaller_is_better,
            self.ids,
            self.task,
            self.impute,
            self.categories,
        )
        return None if reading == ReadOptions() else reading

    @property
    def chosen_space(self) -> str | None:
        """The space that was asked for; None if it is the table's own."""
        return self.space

    def load(self, table: Any, data: str | None) -> Any:
        """The table of that name or in that file, with networks or without; values as they are."""
        from lpzero.discover.table_sources import TableSources
        from spaces.tables import load_any

        if not isinstance(table, (str, Path)):
            return table
        sources = TableSources(lambda name, space: load_any(name, data, space), self.reading)
        return sources.load(str(table), self.chosen_space)

    def load_networks(self, table: Any, data: str | None) -> Any:
        """The table; raise InputError if it has no networks."""
        loaded = self.load(table, data)
        if loaded.space is None:
            raise InputError(
                f"{table} names no space, so there are no networks: give --space my_module:SPACE"
            )
        return loaded


@dataclass(frozen=True)
class NetworkTable(TableFile):
    """How a file is read as a table, and the space that its networks are built in."""

    upstream_dims: bool = option(
        False,
        "Build every FlexiBERT model with hidden 256 and FFN 1024, as published.",
        Switch(),
        panel=FORMER,
    )

    @property
    def chosen_space(self) -> str | None:
        """The space that was asked for; None if it is the table's own."""
        return UPSTREAM_SPACE if self.upstream_dims else self.space


@dataclass(frozen=True)
class Corpus:
    """The text of the batch that networks run on."""

    corpus: str | None = option(
        None,
        "A text file to draw sequences from, read as bytes or through --tokenizer."
        "  [default: random tokens]",
        Place(),
        panel=NETWORKS,
    )
    tokenizer: str | None = option(
        None,
        "A tokenizer.json of Hugging Face that reads --corpus.  [default: bytes]",
        Place(),
        panel=NETWORKS,
    )


@dataclass(frozen=True)
class Batch(Corpus):
    """The batch that networks run on."""

    batch: Any = option(
        None,
        "The number of sequences or images in the batch.  [default: the space's]",
        Whole(2),
        panel=NETWORKS,
    )
    length: int | None = option(
        None,
        "The number of tokens of a sequence.  [default: the space's]",
        Whole(2),
        panel=NETWORKS,
    )

    @property
    def minibatch(self) -> Minibatch | None:
        """The batch that the options choose; None if none of them is given."""
        from spaces.minibatch import Minibatch

        corpus, tokenizer = (None if p is None else str(p) for p in (self.corpus, self.tokenizer))
        return Minibatch.chosen(self.batch, self.length, corpus, tokenizer)


@dataclass(frozen=True)
class Statistics(Batch):
    """The batch, and what the statistics of formulas are."""

    definitions: str | None = option(
        None,
        f"{DEFINITIONS_HELP}  [default: {OURS}]",
        OneOf("definitions", DEFINITIONS),
        panel=NETWORKS,
    )

    def sketch(self, seed: int) -> SketchOptions:
        """What sketches of networks with that seed are made of."""
        from lpzero.sketches.sketch import SketchOptions

        return SketchOptions(
            seed=seed,
            batch_seed=seed,
            batch=self.minibatch,
            definitions=self.definitions or OURS,
        )


@dataclass(frozen=True)
class Where:
    """Where work runs."""

    jobs: int | None = option(
        1,
        "The number of parallel processes; it does not change the result.",
        Whole(1),
        is_local=True,
    )
    backend: str = option(
        "loky",
        "Where processes run: loky is this machine, dask and ray are clusters.",
        OneOf("backend", ("loky", "dask", "ray")),
        is_local=True,
        panel=CLUSTER,
    )
    scheduler: str | None = option(
        None,
        "The address of the cluster: tcp://HOST:PORT (Dask), HOST:PORT or ray://HOST:PORT (Ray);"
        " see cluster.md of the documentation.",
        Text("ADDRESS"),
        is_local=True,
        panel=CLUSTER,
    )

    @property
    def workers(self) -> Workers:
        """The processes."""
        from lpzero.parallel import Workers

        return Workers(self.jobs or 1, self.backend, self.scheduler)


@dataclass(frozen=True)
class Data:
    """Where the released tables are."""

    tables_folder: str | None = option(
        None,
        "The folder of the released tables.",
        FOLDER,
        "--data",
        is_local=True,
        variable="LPZERO_DATA",
    )


@dataclass(frozen=True)
class Running(Where, Data):
    """Where work runs, where tables and sketches are, and on what networks run."""

    device: str = device()
    memory: int | None = memory()
    cache: str | None = option(
        None,
        "The folder of the sketches.  [default: ~/.cache/lpzero]",
        FOLDER,
        is_local=True,
        variable="LPZERO_CACHE",
        panel=CLUSTER,
    )

    @property
    def folder(self) -> Path:
        """The folder of the sketches."""
        from lpzero.sketches.store import cache_folder

        return cache_folder(self.cache)


@dataclass(frozen=True)
class Directory:
    """The lock of a run's directory."""

    no_lock: bool = option(
        False,
        "Do not lock the run's directory, for file systems without locks; make sure that no other"
        " process uses it.",
        Switch(),
        is_local=True,
        panel=CLUSTER,
    )

    @property
    def lock(self) -> bool:
        """Whether the directory is locked."""
        return not self.no_lock


@dataclass(frozen=True)
class LongRun(Directory):
    """The lock of a run's directory, and whether progress is shown."""

    quiet: bool = option(False, "Show no progress.", Switch(), is_local=True)


def resume() -> bool:
    """The field that continues a run."""
    return option(False, "Continue the run in --out, if there is one.", Switch())


def time_limit() -> float | None:
    """The field of the seconds after which a run stops."""
    return option(
        None,
        "Stop after this many seconds; --resume continues.  [default: no limit]",
        Real(0, is_open=True),
        is_local=True,
        panel=CLUSTER,
    )


def weights_seed() -> int:
    """The field of the seed of networks."""
    return option(
        0, "The seed of untrained networks and batches.", SEED, panel=NETWORKS, former=("seed",)
    )


def split_seed() -> int:
    """The field of the seed of the split."""
    return option(0, "The seed of the train/valid/test split.", SEED, panel=JUDGEMENT)


def within() -> str:
    """The field of what rows have in common that are ranked within groups."""
    return option(
        DEPTH_WIDTH,
        "Rank within equal depth, width, depth-width, or an extra column of the table.",
        Text("GROUPING"),
    )


def loss() -> str:
    """The field of the loss."""
    return option(
        "auto",
        "The loss to differentiate; auto is next-token for language models, else cotangent.",
        OneOf("loss", LOSSES),
        panel=NETWORKS,
    )


def chunk() -> int | None:
    """The field of the size of a pass."""
    return option(
        None,
        "The number of sequences per pass; fewer need less memory.  [default: all]",
        Whole(1),
        panel=NETWORKS,
    )
