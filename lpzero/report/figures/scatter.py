"""Scores against targets: a point per architecture, marked by part."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.judgement.correlation import spearman
from lpzero.judgement.table import SPLIT_PARTS
from lpzero.report.figures import plotly_spec as plotly
from lpzero.report.figures import style
from lpzero.report.figures.drawn import HOLDS, Drawn, FigureKind, Material, file_name

if TYPE_CHECKING:
    from lpzero.runs.formula_run import FormulaRun

# Beyond this ratio of the largest score to the smallest, the axis is logarithmic.
_WIDE = 100.0
ARCHITECTURE = "definition"  # the column with the whole architecture


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores (n,) and targets (n,) of the architectures of a table, and the part of each.

    `about` are columns (n,) that describe an architecture, shown where a point is pointed at.
    """

    proxy: str
    table: str
    target: str
    scores: FloatArray
    targets: FloatArray
    parts: tuple[str, ...]
    about: Mapping[str, Sequence[object]] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The parts that have rows, in their order."""
        return [part for part in dict.fromkeys((*SPLIT_PARTS, *self.parts)) if part in self.parts]

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
    about: Mapping[str, Sequence[object]] | None = None,
) -> Scores:
    """The data of the figure; rows without a part are shown as "all"."""
    n = len(values)
    columns = {**({} if parts is None else {"part": parts}), **(about or {})}
    if not n or len(targets) != n or any(len(column) != n for column in columns.values()):
        raise InputError(
            f"{n} scores, {len(targets)} targets: expected equal numbers of each, at least one"
        )
    found = np.array(values, dtype=np.float64), np.array(targets, dtype=np.float64)
    if not all(np.isfinite(array).all() for array in found):
        raise InputError("a score or a target is not finite: remove such rows")
    return Scores(proxy, table, target, *found, tuple(parts or ("all",) * n), dict(about or {}))


def draw(data: Scores) -> Figure:
    """Score on the horizontal axis, target on the vertical one."""
    with style.look():
        figure = style.new()
        axes = figure.subplots()
        for index, part in enumerate(data.names):
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


def spec(data: Scores) -> plotly.Spec:
    """The same for a browser: the test rows are filled, the others open."""
    traces = []
    for index, part in enumerate(data.names):
        rows, rho = data.rows(part), data.rho(part)
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": plotly.text(part if rho is None else f"{part}: ρ = {rho:.3f}"),
                "x": data.scores[rows],
                "y": data.targets[rows],
                "marker": marker(index, part, data.names),
                "customdata": described(data, rows),
                "hovertemplate": "%{customdata}<br>score %{x:.6~g}, target %{y:.6~g}"
                "<extra></extra>",
            }
        )
    kind = "log" if data.is_wide else "linear"
    scale = ", logarithmic" if data.is_wide else ""
    return plotly.spec(
        traces,
        height=400,
        showlegend=True,
        xaxis=plotly.axis(f"score (no unit{scale})", type=kind),
        yaxis=plotly.axis(plotly.text(data.target, 50)),
    )


def marker(index: int, part: str, parts: Sequence[str]) -> dict[str, object]:
    """A part's marker: filled for the test rows, which alone are out of sample."""
    is_filled = part == "test" or "test" not in parts
    symbol = plotly.SYMBOLS[index % len(plotly.SYMBOLS)]
    return {
        "color": plotly.colour(index),
        "symbol": symbol if is_filled else f"{symbol}-open",
        "size": 9 if is_filled else 7,
        "opacity": 0.85,
    }


def described(data: Scores, rows: npt.NDArray[np.intp]) -> list[str]:
    """What is said of each of these rows where it is pointed at: sizes, then the architecture."""
    found = []
    for row in rows:
        facts = {name: column[row] for name, column in data.about.items() if name != ARCHITECTURE}
        first = ", ".join(
            f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}"
            for name, value in facts.items()
        )
        said = [f"{data.parts[row]}: {first}" if first else data.parts[row]]
        shown = plotly.lines(" ".join(said), 56)
        if ARCHITECTURE in data.about:
            shown += "<br>" + plotly.lines(data.about[ARCHITECTURE][row], 56)
        found.append(shown)
    return found


def of_run(run: FormulaRun) -> Iterator[Scores]:
    """The winner's scores on each table of a run."""
    if run.scores is None:
        return
    targets = {table["name"]: table["target"] for table in run.tables}
    for name, column in run.scores["tables"].items():
        target = str(targets.get(name, "target"))
        formula = str(run.scores["formula"])
        yield scores(
            formula,
            name,
            target,
            column["score"],
            column["target"],
            column["part"],
            about(column),
        )


def about(column: Mapping[str, Any]) -> dict[str, Sequence[object]]:
    """The columns that describe an architecture, as far as the file has them."""
    found: dict[str, Sequence[object]] = {"architecture": column["id"], **column.get("sizes", {})}
    if "arch" in column:
        found[ARCHITECTURE] = [json.dumps(arch) for arch in column["arch"]]
    return found


def _figures(material: Material) -> Iterator[Drawn]:
    for data in of_run(material.run):
        yield Drawn(
            f"scores-{file_name(data.table)}",
            f"Score of the winner against the target on {data.table}, one point per architecture."
            " Only the test rows were unseen when the formula was chosen.",
            f"Scatter plot of score against {data.target}; rho: {data.rhos}.",
            spec(data),
            partial(draw, data),
        )


FIGURE = FigureKind(10, HOLDS, _figures)
