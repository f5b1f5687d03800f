"""The best rho found with each pair of statistics under each operation.

In a formula of one binary the pair is that of its branches. In deeper formulas every pair of
statistics that occur together counts, under the outermost operation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from matplotlib.figure import Figure

from lpzero.exhaust import Results
from lpzero.judgement.measures import MEASURES
from lpzero.judgement.ranks import FloatArray
from lpzero.report.figures import style
from primitives.expressions import Apply, Combine, Expression, Leaf, drop_dead, walk
from primitives.formula import Formula
from primitives.registry import BINARIES
from primitives.statistics import STATISTICS

ONE_SIDED = "one-sided"
EMPTY: FloatArray = np.empty((0, 0, 0))


@dataclass(frozen=True, eq=False)
class Best:
    """Best absolute rho (operations, statistics, statistics), symmetric, NaN where none was tried.

    One-sided formulas lie on the diagonal.
    """

    operations: tuple[str, ...]
    statistics: tuple[str, ...]
    rho: FloatArray


class _Table:
    """Takes the largest value of each place."""

    def __init__(self) -> None:
        self.operations = (*BINARIES, ONE_SIDED)
        self.statistics = tuple(STATISTICS)
        n = len(self.statistics)
        self.rho = np.full((len(self.operations), n, n), np.nan)

    def add(self, operation: str, one: str, other: str, value: float) -> None:
        i, j = self.statistics.index(one), self.statistics.index(other)
        plane = self.rho[self.operations.index(operation)]
        plane[i, j] = plane[j, i] = np.fmax(plane[i, j], abs(value))

    def done(self) -> Best:
        tried = ~np.isnan(self.rho).all(axis=(1, 2))
        names = tuple(name for name, there in zip(self.operations, tried, strict=True) if there)
        return Best(names, self.statistics, self.rho[tried])


def of_formulas(scored: Iterable[tuple[Formula, float]]) -> Best:
    """From formulas with their rho, as a campaign's journal holds them."""
    table = _Table()
    for formula, rho in scored:
        expression = drop_dead(formula.expression)
        if expression is None:
            continue
        operation, pairs = _pairs(expression)
        for one, other in pairs:
            table.add(operation, one, other, rho)
    return table.done()


def of_results(results: Results) -> Best:
    """From the measures of an exhaustive run."""
    table = _Table()
    column = MEASURES.index("rho")
    for family, values in results.measured():
        found = np.abs(values[column])
        if np.isnan(found).all():
            continue
        one = family.left[0].statistic
        other = family.right[0].statistic if family.right else one
        table.add(family.operation or ONE_SIDED, one, other, float(np.nanmax(found)))
    return table.done()


def draw(data: Best) -> Figure:
    """A panel per operation, each with the lower triangle of statistic against statistic."""
    with style.look():
        n = max(1, len(data.operations))
        figure = style.new(2.3 * n + 1.0, 2.9)
        panels = figure.subplots(1, n, squeeze=False, sharey=True)[0]
        low = np.floor(10 * np.nanmin(data.rho)) / 10 if data.operations else 0.0
        image = None
        for axes, operation, plane in zip(panels, data.operations, data.rho, strict=False):
            shown = np.where(np.tri(len(plane), dtype=bool), plane, np.nan)
            image = axes.imshow(shown, cmap=style.MAP, vmin=low, vmax=1.0)
            for (row, column), value in np.ndenumerate(shown):
                if not np.isnan(value):
                    is_dark = (value - low) / max(1e-9, 1 - low) < 0.55
                    axes.text(column, row, f"{value:.2f}"[1:] if value < 1 else "1", ha="center",
                              va="center", fontsize=7,
                              color="white" if is_dark else "black")  # fmt: skip
            axes.set_title(operation)
            ticks = range(len(data.statistics))
            axes.set_xticks(ticks, data.statistics)
            axes.set_yticks(ticks, data.statistics)
            axes.tick_params(length=0)
            axes.spines[:].set_visible(False)
        panels[0].set_ylabel("statistic")
        figure.supxlabel("statistic", fontsize=9)
        if image is not None:
            figure.colorbar(image, ax=list(panels), label="best |ρ| on train", shrink=0.9)
    return figure


def _pairs(expression: Expression) -> tuple[str, list[tuple[str, str]]]:
    """The outermost operation and the pairs of statistics it stands for."""
    top = expression
    while isinstance(top, Apply):
        top = top.operand
    leaves = [node.statistic for node in walk(expression) if isinstance(node, Leaf)]
    if not isinstance(top, Combine):
        return ONE_SIDED, [(leaves[0], leaves[0])]
    if len(set(leaves)) == 1:
        return top.operation, [(leaves[0], leaves[0])]
    return top.operation, list(combinations(dict.fromkeys(leaves), 2))
