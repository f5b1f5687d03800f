"""A paper's figures in three columns: printed, by the released recipe, and ours, on equal rows.

table, source, names of proxies  ->  rows with Spearman's rho of both and Pearson's correlation
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.reproduction import markdown
from lpzero.judgement.correlation import kendall_many, spearman
from lpzero.proxies import Context, Measurements, get
from lpzero.proxies import names as known_names
from lpzero.proxies.published import printed_in
from lpzero.proxies.ranking import Row, prefetch

if TYPE_CHECKING:
    from lpzero.arrays import FloatArray
    from spaces.minibatch import Minibatch
    from spaces.tables import Table

_MEAN = "-normalised"
COLUMNS = (
    "proxy",
    "n",
    "printed",
    "released recipe",
    "ours",
    "Pearson of released",
    "Pearson of ours",
)


def every(table: Table, step: int) -> Table:
    """Every so many rows of the table, in its order."""
    return table if step == 1 else table.only(range(0, len(table), step))


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
    wanted = {name: released_name(name) for name in names if released_name(name) in known_names()}
    prefetch(table, [get(recipe) for recipe in wanted.values()], recipes)
    prefetch(table, [get(name) for name in names], usual)
    rows = []
    for name in names:
        figure = printed.get(name)
        row: Row = {"proxy": name, "n": len(table)}
        if figure is not None:
            row |= {"printed": figure.rho, "printed tau": figure.tau}
        if name in wanted:
            scores = get(wanted[name]).score(table.space, table.archs, recipes)
            row |= figures_of(
                scores, table.targets, "released recipe", "Pearson of released", "its tau"
            )
        scores = get(name).score(table.space, table.archs, usual)
        rows.append(row | figures_of(scores, table.targets, "ours", "Pearson of ours", "our tau"))
    return sorted(rows, key=lambda row: -(row.get("printed") or row.get("printed tau") or 0))


def released_name(name: str) -> str:
    """The name of the released recipe of a proxy."""
    base = name.removesuffix(_MEAN)
    return f"{base}-released{_MEAN if base != name else ''}"


def released_table(rows: Sequence[Row], columns: Sequence[str] = COLUMNS) -> str:
    """The rows as Markdown."""
    return markdown(rows, columns)


def figures_of(
    scores: FloatArray, targets: FloatArray, rho: str, pearson: str, tau: str
) -> dict[str, Any]:
    """Spearman's rho, Pearson's correlation and Kendall's tau under these names."""
    known = np.isfinite(scores)
    x, y = scores[known], targets[known]
    found = {rho: float(spearman(x, y)), tau: float(kendall_many(x[np.newaxis], y).values[0])}
    return found | {pearson: float(np.corrcoef(x, y)[0, 1])}
