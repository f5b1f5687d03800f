"""A paper's figures in three columns: printed, by the released recipe, and ours, on equal rows.

a paper's table, where it is measured  ->  the command that prints it, with Pearson's correlation

Every network's values are kept in the cache, so that an interrupted run continues.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from experiments.measured import prints_measured
from experiments.reproduction import markdown, thin
from lpzero.cli.options import data_option, jobs_option
from lpzero.judgement.correlation import kendall_many, spearman
from lpzero.parallel import Workers
from lpzero.proxies import Context, Measurements, get
from lpzero.proxies import names as known_names
from lpzero.proxies.published import printed_in
from lpzero.proxies.ranking import Row, prefetch
from lpzero.statistics import RELEASED
from spaces.minibatch import Minibatch
from spaces.tables import load

if TYPE_CHECKING:
    from lpzero.arrays import FloatArray
    from spaces.tables import Table

_MEAN = "-normalised"
# Their released recipe is the formula on statistics as the authors' code takes them.
_FORMULAS = ("lpzero-flexibert",)
COLUMNS = (
    "proxy",
    "n",
    "printed",
    "released recipe",
    "ours",
    "Pearson of released",
    "Pearson of ours",
)


@dataclass(frozen=True, slots=True)
class PrintedTable:
    """A table of a paper: its name, the tables it is measured on, in which space, and proxies.

    Without proxies all that are printed; `batch` (sequences, tokens) is that of the authors' code,
    None that of the space.
    """

    source: str
    tables: tuple[str, ...]
    space: str | None = None
    proxies: tuple[str, ...] = ()
    batch: tuple[int, int] | None = None
    columns: tuple[str, ...] = COLUMNS


def released_command(printed: PrintedTable) -> click.Command:
    """The command that prints the three columns."""

    @click.command()
    @click.option("--proxy", "names", multiple=True, default=printed.proxies, show_default=True)
    @click.option("--archs", type=int, help="Use this many rows, spread over the targets.")
    @click.option("--every", "step", type=click.IntRange(min=1), default=1, help="Every Nth row.")
    @click.option("--batch", type=int, default=(printed.batch or (None,))[0], show_default=True)
    @click.option("--length", type=int, default=(printed.batch or (None,))[-1], show_default=True)
    @click.option("--same-batch", "is_same", is_flag=True, help="Run ours on this batch, too.")
    @jobs_option
    @data_option
    @prints_measured
    def main(**given: Any) -> None:
        """Print the printed figures, those of the released recipes, and ours on the same rows."""
        batch = Minibatch(given["batch"], given["length"]) if given["batch"] else None
        rows: list[Row] = []
        for name in printed.tables:
            table = thin(load(name, given["data"], printed.space), given["archs"])
            table = table.only(range(0, len(table), given["step"]))
            context = Context(workers=Workers(given["jobs"]), label=name)
            names = given["names"] or list(printed_in(table.name, printed.source))
            found = released_rows(
                table, printed.source, names, context, batch, is_same=given["is_same"]
            )
            rows += [{**row, "table": name} for row in found]
        several = ("table",) if len(printed.tables) > 1 else ()
        click.echo(markdown(rows, (*several, *printed.columns)))

    return main


def released_rows(
    table: Table,
    source: str,
    names: Sequence[str],
    context: Context,
    batch: Minibatch | None = None,
    *,
    is_same: bool = False,
) -> list[Row]:
    """A row for each proxy, best printed first; `batch` is that of the released recipes.

    Ours run on the space's own batch, or on the same one where that is asked for.
    """
    printed = printed_in(table.name, source)
    recipes = Measurements(replace(context, batch=batch))
    usual = recipes if is_same else Measurements(context)
    as_released = Measurements(replace(context, definitions=RELEASED))
    wanted = {name: released_name(name) for name in names if released_name(name) in known_names()}
    prefetch(table, [get(recipe) for recipe in wanted.values()], recipes)
    prefetch(table, [get(name) for name in names], usual)
    rows = []
    for name in names:
        figure = printed.get(name)
        row: Row = {"proxy": name, "n": len(table)}
        if figure is not None:
            row |= {"printed": figure.rho, "printed tau": figure.tau}
        if name in wanted or name in _FORMULAS:
            recipe, where = (wanted[name], recipes) if name in wanted else (name, as_released)
            scores = get(recipe).score(table.space, table.archs, where)
            row |= _figures(
                scores, table.targets, "released recipe", "Pearson of released", "its tau"
            )
        scores = get(name).score(table.space, table.archs, usual)
        rows.append(row | _figures(scores, table.targets, "ours", "Pearson of ours", "our tau"))
    return sorted(rows, key=lambda row: -(row.get("printed") or row.get("printed tau") or 0))


def released_name(name: str) -> str:
    """The name of the released recipe of a proxy."""
    base = name.removesuffix(_MEAN)
    return f"{base}-released{_MEAN if base != name else ''}"


def _figures(
    scores: FloatArray, targets: FloatArray, rho: str, pearson: str, tau: str
) -> dict[str, Any]:
    """Spearman's rho, Pearson's correlation and Kendall's tau under these names."""
    known = np.isfinite(scores)
    x, y = scores[known], targets[known]
    found = {rho: float(spearman(x, y)), tau: float(kendall_many(x[np.newaxis], y).values[0])}
    return found | {pearson: float(np.corrcoef(x, y)[0, 1])}
