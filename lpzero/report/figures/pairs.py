"""The best rho with each pair of statistics under each operation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.report.chart import Axis, Cells, Chart, Panel
from lpzero.report.figures import SEARCHED, FigureKind, Material
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


def best(pairs: Iterable[PairRho]) -> Best:
    """The best of each pair and operation."""
    operations, statistics = (*BINARIES, ONE_SIDED), tuple(STATISTICS)
    rho = np.full((len(operations), len(statistics), len(statistics)), np.nan)
    for pair in pairs:
        i, j = statistics.index(pair.one), statistics.index(pair.other)
        plane = rho[operations.index(pair.operation)]
        plane[i, j] = plane[j, i] = np.fmax(plane[i, j], abs(pair.rho))
    tried = ~np.isnan(rho).all(axis=(1, 2))
    names = tuple(name for name, is_tried in zip(operations, tried, strict=True) if is_tried)
    return Best(names, statistics, rho[tried])


def chart(data: Best, measured_on: str) -> Chart:
    """A panel per operation, each with the lower triangle of statistic against statistic."""
    limits = scale(data)
    planes = list(zip(data.operations, data.rho, strict=True))
    shown = ", ".join(f"{operation} {np.nanmax(plane):.3f}" for operation, plane in planes)
    return Chart(
        name="pairs",
        caption="The best |ρ| with each pair of statistics under each operation, on"
        f" {measured_on}: in sample, and only over the formulas that were tried. One-sided formulas"
        " are on the diagonal.",
        words=f"Heat maps; best per operation: {shown}.",
        panels=[_panel(data.statistics, *entry, limits) for entry in planes],
        columns=2,
    )


def _panel(
    statistics: Sequence[str], operation: str, plane: FloatArray, limits: tuple[float, float]
) -> Panel:
    triangle = np.where(np.tri(len(plane), dtype=bool), plane, np.nan)
    hover = [
        [
            "" if np.isnan(rho) else f"{operation} of {row} and {column}: ρ {rho:.4f}"
            for column, rho in zip(statistics, line, strict=True)
        ]
        for row, line in zip(statistics, triangle, strict=True)
    ]
    axis = Axis(names=statistics)
    cells = Cells(values=triangle, hover=hover, limits=limits, measure="best |ρ|")
    return Panel(series=[cells], x=axis, y=axis, title=operation)


def scale(data: Best) -> tuple[float, float]:
    """The ends of the colours: the values that occur, so that differences can be seen.

    The lowest tenth of the values shares the first colour, or one bad pair would hide the rest.
    """
    values = data.rho[~np.isnan(data.rho)]
    low, high = float(np.quantile(values, 0.1)), float(values.max())
    return (low, high) if high - low > 1e-6 else (high - 0.01, high)


def _charts(material: Material) -> Iterator[Chart]:
    run, data = material.run, best(material.run.pairs())
    if data.operations:
        lowest = ", lowest over the tables" if len(run.tables) > 1 else ""
        yield chart(data, f"{run.fitness_rows}{lowest}")


FIGURE = FigureKind(50, SEARCHED, _charts)
