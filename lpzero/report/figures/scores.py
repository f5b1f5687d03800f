"""Scores against targets, and ranks against ranks (Figures 5 and 8 of LPZero), by part."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.judgement.correlation import kendall_many, spearman
from lpzero.judgement.ranks import rank, rank_targets
from lpzero.judgement.table import SPLIT_PARTS
from lpzero.report.chart import GREY, Axis, Chart, Line, Panel, Points, shortened
from lpzero.report.figures import HOLDS, FigureKind, Material, file_name

if TYPE_CHECKING:
    from lpzero.runs.formula_run import FormulaRun

# Beyond this ratio of the largest score to the smallest, the axis is logarithmic.
_WIDE = 100.0
ARCHITECTURE = "definition"  # the column with the whole architecture


@dataclass(frozen=True, eq=False)
class Scores:
    """Scores (n,) and targets (n,) of the architectures of a table, and the part of each.

    `about` are columns (n,) that describe an architecture, shown on hovering over it.
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
        rhos = {part: self.rho(part) for part in SPLIT_PARTS}
        return ", ".join(f"{part} {rho:.3f}" for part, rho in rhos.items() if rho is not None)

    def described(self, row: int) -> str:
        """What is shown on hovering over an architecture: its part and sizes, then the whole."""
        facts = ", ".join(
            f"{name} {value:,}" if isinstance(value := column[row], int) else f"{name} {value}"
            for name, column in self.about.items()
            if name != ARCHITECTURE
        )
        first = f"{self.parts[row]}: {facts}" if facts else self.parts[row]
        whole = self.about.get(ARCHITECTURE)
        return first if whole is None else f"{first}\n{whole[row]}"

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
    arrays = np.array(values, dtype=np.float64), np.array(targets, dtype=np.float64)
    if not all(np.isfinite(array).all() for array in arrays):
        raise InputError("a score or a target is not finite: remove such rows")
    return Scores(proxy, table, target, *arrays, tuple(parts or ("all",) * n), dict(about or {}))


def scatter(data: Scores, name: str, caption: str) -> Chart:
    """Score on the horizontal axis, target on the vertical one; filled points are out of sample."""
    series = []
    for place, part in enumerate(data.names):
        rows, rho = data.rows(part), data.rho(part)
        texts = [
            f"{data.described(row)}\nscore {data.scores[row]:.6g}, target {data.targets[row]:.6g}"
            for row in rows
        ]
        series.append(
            Points(
                x=data.scores[rows],
                y=data.targets[rows],
                hover=texts,
                name=part if rho is None else f"{part}: ρ = {rho:.3f} (n = {len(rows)})",
                colour=place,
                is_open=part != "test" and "test" in data.names,
            )
        )
    scale = ", logarithmic" if data.is_wide else ""
    axis = Axis(
        title=f"score of {shortened(data.proxy, 28)} (no unit{scale})",
        is_logarithmic=data.is_wide,
    )
    return Chart(
        name=name,
        caption=caption,
        words=f"Scatter plot of score against {data.target}; rho: {data.rhos}.",
        panels=[Panel(series=series, x=axis, y=Axis(title=shortened(data.target, 50)))],
        title=data.table,
    )


def rank_panels(data: Scores, name: str, caption: str) -> Chart:
    """A panel per part, each ranked on its own; a perfect proxy stays on the diagonal."""
    names: list[str | None] = [part for part in data.names if len(data.rows(part)) > 1]
    return Chart(
        name=name,
        caption=caption,
        words=f"Scatter plot of rank by score against rank by target; rho: {data.rhos}.",
        panels=[_rank_panel(data, part, place) for place, part in enumerate(names or [None])],
        columns=3,
        title=f"{data.table}: {data.proxy}",
    )


def _rank_panel(data: Scores, part: str | None, place: int) -> Panel:
    by_score, by_target = ranks(data, part)
    rows = np.arange(len(data.scores)) if part is None else data.rows(part)
    n = len(rows)
    tau = float(kendall_many(-by_score[np.newaxis], -by_target).values[0])
    texts = [
        f"{data.described(row)}\nrank {score:g} by score, {target:g} by target"
        for row, score, target in zip(rows, by_score, by_target, strict=True)
    ]
    limits = (0.0, n + 1.0)
    return Panel(
        series=[
            Line(x=[1, n], y=[1, n], colour=GREY, hover=None),
            Points(x=by_target, y=by_score, hover=texts, colour=place),
        ],
        x=Axis(title="rank by target", limits=limits, is_reversed=True),
        y=Axis(title="rank by score", limits=limits, is_reversed=True),
        title=f"{part or 'all'} (n = {n})\nρ = {_rho(by_score, by_target):.3f}, τ = {tau:.3f}",
        is_square=True,
    )


def ranks(data: Scores, part: str | None = None) -> tuple[FloatArray, FloatArray]:
    """Ranks by score and by target (n,) among all rows or those of a part; the best has rank 1."""
    rows = np.arange(len(data.scores)) if part is None else data.rows(part)
    n = len(rows)
    by_score, by_target = rank(data.scores[rows]), rank_targets(data.targets[rows])
    return n + 1 - by_score, n + 1 - by_target


def _rho(first: FloatArray, second: FloatArray) -> float:
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


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
    columns: dict[str, Sequence[object]] = {"architecture": column["id"], **column.get("sizes", {})}
    if "arch" in column:
        columns[ARCHITECTURE] = [json.dumps(arch) for arch in column["arch"]]
    return columns


def _charts(material: Material) -> Iterator[Chart]:
    tables = list(of_run(material.run))
    for data in tables:
        yield scatter(
            data,
            f"scores-{file_name(data.table)}",
            f"Score of the winner against the target on {data.table}, one point per architecture."
            " Only the test rows were unseen when the formula was chosen.",
        )
    for data in tables:
        yield rank_panels(
            data,
            f"ranks-{file_name(data.table)}",
            f"The winner's ranking of {data.table} against the true one, each part ranked on its"
            " own; 1 is the best, and a perfect proxy stays on the line.",
        )


FIGURE = FigureKind(10, HOLDS, _charts)
