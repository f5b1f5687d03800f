"""Scores against targets: a point per architecture, marked by part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.judgement.correlation import spearman
from lpzero.judgement.table import SPLIT_PARTS
from lpzero.report.figures import style
from lpzero.report.figures.drawn import Drawn, FigureKind, Material, file_name

if TYPE_CHECKING:
    from lpzero.runs.formula_run import FormulaRun

# Beyond this ratio of the largest score to the smallest, the axis is logarithmic.
_WIDE = 100.0


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores (n,) and targets (n,) of the architectures of a table, and the part of each."""

    proxy: str
    table: str
    target: str
    scores: FloatArray
    targets: FloatArray
    parts: tuple[str, ...]

    def rho(self, part: str) -> float | None:
        """Spearman's rho on one part; None if it has fewer than two rows."""
        rows = self.rows(part)
        if len(rows) < 2:
            return None
        return spearman(self.scores[rows], self.targets[rows])

    def rows(self, part: str) -> npt.NDArray[np.intp]:
        """The rows of a part."""
        return np.flatnonzero(np.array(self.parts) == part)

    @property
    def rhos(self) -> str:
        """Rho on each part that has one, in words."""
        found = {part: self.rho(part) for part in SPLIT_PARTS}
        return ", ".join(f"{part} {rho:.3f}" for part, rho in found.items() if rho is not None)

    @property
    def is_wide(self) -> bool:
        """Whether the scores, all positive, spread over orders of magnitude."""
        low, high = float(np.min(self.scores)), float(np.max(self.scores))
        return low > 0 and high / low > _WIDE


def scores(
    proxy: str,
    table: str,
    target: str,
    values: Sequence[float],
    targets: Sequence[float],
    parts: Sequence[str] | None = None,
) -> Scores:
    """The data of the figure; rows without a part are shown as "all"."""
    n = len(values)
    if not n or len(targets) != n or (parts is not None and len(parts) != n):
        raise InputError(
            f"{n} scores, {len(targets)} targets: expected equal numbers of each, at least one"
        )
    found = np.array(values, dtype=np.float64), np.array(targets, dtype=np.float64)
    if not all(np.isfinite(array).all() for array in found):
        raise InputError("a score or a target is not finite: remove such rows")
    return Scores(proxy, table, target, *found, tuple(parts or ("all",) * n))


def draw(data: Scores) -> Figure:
    """Score on the horizontal axis, target on the vertical one."""
    with style.look():
        figure = style.new()
        axes = figure.subplots()
        names = [part for part in dict.fromkeys((*SPLIT_PARTS, *data.parts)) if part in data.parts]
        for index, part in enumerate(names):
            rows, rho = data.rows(part), data.rho(part)
            shown = "" if rho is None else f", ρ = {rho:.3f}"
            axes.plot(
                data.scores[rows],
                data.targets[rows],
                linestyle="none",
                marker=style.MARKERS[index],
                markersize=4,
                color=style.COLOURS[index],
                alpha=0.8,
                label=f"{part}{shown} (n = {len(rows)})",
            )
        if data.is_wide:
            axes.set_xscale("log")
        scale = ", logarithmic" if data.is_wide else ""
        axes.set(
            xlabel=f"score of {style.short(data.proxy, 50)} (no unit{scale})",
            ylabel=style.short(data.target, 50),
            title=style.short(data.table, 60),
        )
        axes.legend(loc="best", fontsize=8)
    return figure


def of_run(run: FormulaRun) -> Iterator[Scores]:
    """The winner's scores on each table of a run."""
    if run.scores is None:
        return
    targets = {table["name"]: table["target"] for table in run.tables}
    for name, column in run.scores["tables"].items():
        target = str(targets.get(name, "target"))
        formula = str(run.scores["formula"])
        yield scores(formula, name, target, column["score"], column["target"], column["part"])


def _figures(material: Material) -> Iterator[Drawn]:
    for data in of_run(material.run):
        yield Drawn(
            f"scores-{file_name(data.table)}",
            f"Score of the winner against the target on {data.table}, one point per architecture."
            " Only the test rows were unseen when the formula was chosen.",
            f"Scatter plot of score against {data.target}; rho: {data.rhos}.",
            draw(data),
        )


FIGURE = FigureKind(10, _figures)
