"""Rows of an experiment that are kept as soon as they are there, and random rows of a table.

a folder, a key of each piece of work  ->  the rows of all of them; what is done is not repeated
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.cli.output import note
from lpzero.errors import InputError
from lpzero.runs.journal import Journal

if TYPE_CHECKING:
    from spaces.tables import Table

Row = dict[str, Any]
KEY = "key"


def resume(path: Path, keys: Sequence[str], work: Callable[[str], Iterable[Row]]) -> list[Row]:
    """The rows of every key in the order of the keys; only those that PATH lacks are computed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with Journal(path, lambda record, number: KEY in record, path.name) as journal:
        rows = journal.records()
        journal.go_to(len(journal))
        done = {row[KEY] for row in rows}
        for key in keys:
            if key in done:
                continue
            found = [{KEY: key, **row} for row in work(key)]
            journal.append(found)  # in one write, so that a key has all of its rows or none
            journal.sync()
            rows += found
            note(f"{path.name}: {key}")
    return [row for key in keys for row in rows if row[KEY] == key]


def random_rows(table: Table, n: int | None, seed: int = 0) -> Table:
    """The table, or n of its rows drawn with a fixed seed, in their order."""
    if n is None or n >= len(table):
        return table
    if n < 3:
        raise InputError(f"{n} rows were requested; a correlation needs at least 3")
    drawn = np.random.Generator(np.random.Philox(seed)).permutation(len(table))[:n]
    return table.only(sorted(drawn.tolist()))
