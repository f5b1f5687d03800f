"""Options that several verbs share, and printing.

Results go to stdout, as aligned text or as JSON; everything else goes to stderr.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lpzero.statistics.definitions import DEFINITIONS, OURS

if TYPE_CHECKING:
    from lpzero.parallel import Workers
    from spaces.minibatch import Minibatch
    from spaces.tables import Table

Command = TypeVar("Command", bound=Callable[..., Any])

format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="The output format.",
)
data_option = click.option(
    "--data",
    type=click.Path(file_okay=False),
    envvar="LPZERO_DATA",
    show_envvar=True,
    help="The data root: the folder of the released tables.",
)
space_option = click.option(
    "--space",
    metavar="NAME|MODULE:NAME",
    help="The space to build and count in; my_module:SPACE is one of your own, and runs its module."
    "  [default: the table's own]",
)
seed_option = click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="The seed of untrained networks and batches.",
)
jobs_option = click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="The number of parallel processes; it does not change the result.",
)
device_option = click.option(
    "--device",
    type=click.Choice(["auto", "cpu", "cuda"]),
    default="auto",
    show_default=True,
    help="The device that networks run on; auto is CUDA if available.",
)

_CLUSTER_OPTIONS = (
    click.option(
        "--backend",
        type=click.Choice(["loky", "dask", "ray"]),
        default="loky",
        show_default=True,
        help="Where processes run: loky is this machine, dask and ray are clusters.",
    ),
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="The address of the cluster: tcp://HOST:PORT (Dask), HOST:PORT or ray://HOST:PORT"
        " (Ray); see docs/cluster.md.",
    ),
)
no_lock_option = click.option(
    "--no-lock",
    is_flag=True,
    help="Do not lock the run's directory, for file systems without locks; make sure that no other"
    " process uses it.",
)
cache_option = click.option(
    "--cache",
    type=click.Path(file_okay=False),
    envvar="LPZERO_CACHE",
    show_envvar=True,
    help="The folder of the sketches.  [default: ~/.cache/lpzero]",
)
_CORPUS_OPTIONS = (
    click.option(
        "--corpus",
        type=click.Path(),
        help="A text file to draw sequences from, read as bytes or through --tokenizer."
        "  [default: random tokens]",
    ),
    click.option(
        "--tokenizer",
        type=click.Path(),
        help="A tokenizer.json of Hugging Face that reads --corpus.  [default: bytes]",
    ),
)
_BATCH_OPTIONS = (
    click.option(
        "--batch",
        type=click.IntRange(min=2),
        help="The number of sequences or images in the batch.  [default: the space's]",
    ),
    click.option(
        "--length",
        type=click.IntRange(min=2),
        help="The number of tokens of a sequence.  [default: the space's]",
    ),
)


definitions_option = click.option(
    "--definitions",
    type=click.Choice(DEFINITIONS),
    default=OURS,
    show_default=True,
    help="What H, W and G of formulas are; released takes them as the authors' code does: the query"
    " or the input of a linear transform, and the Linears of the mixing operation.",
)


def batch_options(command: Command) -> Command:
    """Add the options that choose the batch that networks run on."""
    for option in reversed((*_BATCH_OPTIONS, *_CORPUS_OPTIONS)):
        command = option(command)
    return command


def corpus_options(command: Command) -> Command:
    """Add the options that choose the text of the batch."""
    for option in reversed(_CORPUS_OPTIONS):
        command = option(command)
    return command


def chosen_batch(given: Mapping[str, Any]) -> Minibatch | None:
    """The batch that the options choose; None if none of them is given."""
    from spaces.minibatch import Minibatch

    return Minibatch.chosen(given["batch"], given["length"], given["corpus"], given["tokenizer"])


_FILE_OPTIONS = (
    click.option("--target", metavar="COLUMN", help="A file as table: the column to rank by."),
    click.option(
        "--smaller-is-better", is_flag=True, help="A file as table: a small target is good."
    ),
    click.option(
        "--id",
        "ids",
        metavar="COLUMN",
        help="A file as table: the column of ids.  [default: one called id or name, else lines]",
    ),
    click.option("--task", help="A zero-cost file of NASLib: the task.  [default: the only one]"),
)


def file_options(command: Command) -> Command:
    """Add the options that say how a user's file is read, and in which space."""
    for option in reversed((*_FILE_OPTIONS, space_option)):
        command = option(command)
    return command


def reading(given: Mapping[str, Any]) -> Any:
    """How a user's file is read, or None if no option says anything about it."""
    from spaces.tables.readers import Reading

    fields = {name: given[name] for name in ("target", "smaller_is_better", "ids", "task")}
    return Reading(**fields) if any(fields.values()) else None


def load_table(given: Mapping[str, Any], space: str | None = None) -> Table:
    """The table that the options name, with networks: by name, or a file with --space."""
    from lpzero.discover.table_sources import TableSources
    from lpzero.errors import InputError
    from spaces.tables import load

    sources = TableSources(lambda name, space: load(name, given["data"], space), reading(given))
    table = sources.load(given["table"], space or given["space"])
    if table.space is None:
        raise InputError(
            f"{given['table']} names no space, so there are no networks: "
            " give --space my_module:SPACE"
        )
    return table


def running_options(command: Command, jobs_option: Any = jobs_option) -> Command:
    """Add the options that every verb that runs networks has."""
    where = partial(worker_options, jobs_option=jobs_option)
    for option in (data_option, device_option, where, format_option, cache_option):
        command = option(command)
    return command


def worker_options(command: Command, jobs_option: Any = jobs_option) -> Command:
    """Add the options that say where work runs."""
    for option in reversed((jobs_option, *_CLUSTER_OPTIONS)):
        command = option(command)
    return command


def workers(given: Mapping[str, Any]) -> Workers:
    """Where the options of `worker_options` let work run."""
    from lpzero.parallel import Workers

    return Workers(given["jobs"], given["backend"], given["scheduler"])


# Rich truncates to the width it assumes for a pipe, so a pipe gets a large width.
_PIPE_WIDTH = 10_000


def print_json(value: Any) -> None:
    """Write the value to stdout as JSON; raises ValueError if a number is not finite."""
    click.echo(json.dumps(value, indent=2, allow_nan=False, ensure_ascii=False))


def print_rows(
    rows: Sequence[Mapping[str, Any]],
    form: str,
    title: str | None = None,
    significant: Collection[str] = (),
) -> None:
    """Write the rows to stdout: a JSON list of objects, or a table with a column per key.

    Numbers of the `significant` columns, which may be of any size, have eight significant digits.
    """
    if form == "json":
        print_json([dict(row) for row in rows])
        return
    from rich.console import Console
    from rich.table import Table

    shown = None if title is None else printable(title)
    table = Table(title=shown, title_justify="left", box=None, pad_edge=False)
    columns = list(dict.fromkeys(key for row in rows for key in row))
    for column in columns:
        numeric = all(_is_numeric(row.get(column)) for row in rows)
        table.add_column(column.replace("_", " "), justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(cell(row.get(column), column in significant) for column in columns))
    width = None if sys.stdout.isatty() else _PIPE_WIDTH
    Console(width=width, highlight=False, markup=False, emoji=False).print(table)


def judged_columns(judged: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a judgement in a terminal; JSON has the rest."""
    shown = ("n", "rho", "rho_untied", "rho_ci", "tau", "tau_ci", "rho_given_params", "rho_within")
    return {key: judged[key] for key in (*shown, "top_precision")}


def cell(value: Any, is_significant: bool = False) -> str:
    """A value as the tables show it: numbers to three decimals, intervals in brackets."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.8g}" if is_significant else f"{value:.3f}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(cell(part) for part in value) + "]"
    return printable(str(value))


def printable(text: str) -> str:
    """The text with escape sequences and other control characters spelt out, but for line ends."""
    return "".join(
        c if c.isprintable() or c == "\n" else c.encode("unicode_escape").decode() for c in text
    )


def _is_numeric(value: Any) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def note(lines: str | Iterable[str]) -> None:
    """Write lines to stderr: progress and remarks, never results."""
    for line in [lines] if isinstance(lines, str) else lines:
        click.echo(printable(line), err=True)


class NoteHandler(logging.Handler):
    """Prints what the packages log as notes."""

    def emit(self, record: logging.LogRecord) -> None:
        note(f"note: {record.getMessage()}")
