"""The best rho found with each pair of statistics under each operation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from lpzero.arrays import FloatArray
from lpzero.report.figures import style
from lpzero.report.figures.drawn import Drawn, FigureKind, Material
from lpzero.runs.formula_run import ONE_SIDED, PairRho
from primitives.registry import BINARIES
from primitives.statistics import STATISTICS


@dataclass(frozen=True, eq=False)
class Best:
    """Best absolute rho (operations, statistics, statistics), symmetric, NaN where none was tried.

    One-sided formulas lie on the diagonal.
    """

    operations: tuple[str, ...]
    statistics: tuple[str, ...]
    rho: FloatArray


class _Table:
    """Collects the largest value of each cell."""

    def __init__(self) -> None:
        self.operations = (*BINARIES, ONE_SIDED)
        self.statistics = tuple(STATISTICS)
        n = len(self.statistics)
        self.rho = np.full((len(self.operations), n, n), np.nan)

    def add(self, pair: PairRho) -> None:
        i, j = self.statistics.index(pair.one), self.statistics.index(pair.other)
        plane = self.rho[self.operations.index(pair.operation)]
        plane[i, j] = plane[j, i] = np.fmax(plane[i, j], abs(pair.rho))

    def done(self) -> Best:
        tried = ~np.isnan(self.rho).all(axis=(1, 2))
        names = tuple(name for name, there in zip(self.operations, tried, strict=True) if there)
        return Best(names, self.statistics, self.rho[tried])


def best(pairs: Iterable[PairRho]) -> Best:
    """The best of each pair and operation."""
    table = _Table()
    for pair in pairs:
        table.add(pair)
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
                    axes.text(
                        column,
                        row,
                        f"{value:.2f}"[1:] if value < 1 else "1",
                        ha="center",
                        va="center",
                        fontsize=7,
                        color="white" if is_dark else "black",
                    )
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


def _figures(material: Material) -> Iterator[Drawn]:
    run, data = material.run, best(material.run.pairs())
    if not data.operations:
        return
    planes = zip(data.operations, data.rho, strict=True)
    shown = [f"{operation} {np.nanmax(plane):.3f}" for operation, plane in planes]
    lowest = ", lowest over the tables" if len(run.tables) > 1 else ""
    yield Drawn(
        "pairs",
        "The best |ρ| that was found with each pair of statistics under each operation, on"
        f" {run.fitness_rows}{lowest}: in sample, and only over the formulas that were tried."
        " One-sided formulas are on the diagonal.",
        f"Heat maps; best per operation: {', '.join(shown)}.",
        draw(data),
    )


FIGURE = FigureKind(50, _figures)
