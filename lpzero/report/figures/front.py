"""Complexity against fitness: the front that a search optimises, and the chosen formula."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from matplotlib.figure import Figure

from lpzero.report.figures import plotly_spec as plotly
from lpzero.report.figures import style
from lpzero.report.figures.drawn import OTHERS, Drawn, FigureKind, Material
from lpzero.runs.formula_run import FormulaRun


@dataclass(frozen=True, slots=True)
class Point:
    """A formula, its size in nodes and its fitness."""

    formula: str
    complexity: int
    fitness: float


@dataclass(frozen=True, slots=True)
class Front:
    """The best formula of each size; `chosen` is the winner, `simplest` the offer beside it.

    `simplest` is the smallest formula whose fitness is inside the winner's 95% interval on the
    same rows, None if the winner is the smallest itself; `low` is the interval's lower end.
    """

    points: tuple[Point, ...]
    chosen: Point | None
    low: float | None
    rows: str

    @property
    def steps(self) -> list[Point]:
        """The points that no smaller formula reaches, smallest first."""
        found: list[Point] = []
        for point in self.points:
            if not found or point.fitness > found[-1].fitness:
                found.append(point)
        return found

    @property
    def simplest(self) -> Point | None:
        """The smallest formula inside the winner's interval, if it is not the winner."""
        if self.chosen is None or self.low is None:
            return None
        inside = [p for p in self.steps if p.fitness >= self.low]
        found = inside[0] if inside else None
        return found if found and found.complexity < self.chosen.complexity else None


def front(
    tried: Iterable[Point], chosen: Point | None = None, low: float | None = None, rows: str = ""
) -> Front:
    """The data of the figure from the formulas that were tried."""
    best: dict[int, Point] = {}
    for point in tried:
        known = best.get(point.complexity)
        if known is None or point.fitness > known.fitness:
            best[point.complexity] = point
    return Front(tuple(best[size] for size in sorted(best)), chosen, low, rows)


def of_run(run: FormulaRun) -> Front | None:
    """The front of a run; None if no formula has a fitness."""
    points = [
        Point(str(row["formula"]), int(row["complexity"]), float(row["fitness"]))
        for row in (*run.best_by_size(), *run.hall)
    ]
    if not points:
        return None
    return front(points, *_chosen(run), run.fitness_rows)


def _chosen(run: FormulaRun) -> tuple[Point | None, float | None]:
    """The winner, and the lower end of its interval if fitness is its rho on the train rows."""
    best = run.best
    if best is None:
        return None, None
    text = str(best["formula"])
    known: Mapping[str, Any] = next((row for row in run.hall if row["formula"] == text), {})
    value = known.get("fitness", best.get("fitness", best["rho"]["train"]))
    fitness = float(value[0] if isinstance(value, list) else value)
    is_rho = run.fitness_rows == "train" and abs(fitness - best["rho"]["train"]) < 1e-9
    lows = [run.judged(str(table["name"]))["train"]["rho_ci"][0] for table in run.tables]
    return Point(text, int(best["complexity"]), fitness), min(lows) if is_rho else None


def draw(data: Front) -> Figure:
    """Points and the staircase of the best so far; the chosen formula is marked."""
    with style.look():
        figure = style.new()
        axes = figure.subplots()
        axes.plot(
            [p.complexity for p in data.points],
            [p.fitness for p in data.points],
            linestyle="none",
            marker="o",
            markersize=3.5,
            color=style.COLOURS[5],
            label="best of its size",
        )
        axes.step(
            [p.complexity for p in data.steps],
            [p.fitness for p in data.steps],
            where="post",
            color=style.COLOURS[0],
            label="front",
        )
        for point, name, index in _marked(data):
            axes.plot(
                [point.complexity],
                [point.fitness],
                linestyle="none",
                marker=style.MARKERS[index],
                markersize=9,
                color=style.COLOURS[index],
                label=name,
            )
        axes.set_xlabel("nodes of the formula")
        axes.set_ylabel(f"fitness on {style.short(data.rows, 30)}")
        axes.legend(loc="lower right", fontsize=8)
    return figure


def spec(data: Front) -> plotly.Spec:
    """The same for a browser."""
    steps = data.steps
    traces: list[dict[str, Any]] = [
        _trace("best of its size", data.points, 5, 7),
        {
            "type": "scatter",
            "mode": "lines",
            "name": "front",
            "x": [p.complexity for p in steps],
            "y": [p.fitness for p in steps],
            "line": {"color": plotly.colour(0), "width": 2.5, "shape": "hv"},
            "hoverinfo": "skip",
        },
        *(_trace(name, [point], index, 14) for point, name, index in _marked(data)),
    ]
    # The smallest formulas are far below the rest: the figure begins where something happens.
    top, middle = steps[-1].fitness, sorted(p.fitness for p in data.points)[len(data.points) // 4]
    low = min([middle, *(point.fitness for point, _, _ in _marked(data))])
    gap = max(1e-4, (top - low) * 0.1)
    return plotly.spec(
        traces,
        height=380,
        showlegend=True,
        shapes=[] if data.low is None else [plotly.horizontal(data.low)],
        annotations=[]
        if data.low is None
        else [plotly.note("lower end of the winner's interval", 1.0, data.low, "right")],
        xaxis=plotly.axis("nodes of the formula", rangemode="tozero"),
        yaxis=plotly.axis(
            f"fitness on {plotly.text(data.rows, 30)}",
            range=[min(low, data.low if data.low is not None else low) - gap, top + gap],
        ),
    )


def _marked(data: Front) -> list[tuple[Point, str, int]]:
    """The points with a marker of their own, each with its name and its place in the colours."""
    found = [] if data.chosen is None else [(data.chosen, "chosen", 1)]
    return found if data.simplest is None else [*found, (data.simplest, "simplest inside", 2)]


def _trace(name: str, points: Iterable[Point], index: int, size: int) -> dict[str, Any]:
    found = list(points)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [p.complexity for p in found],
        "y": [p.fitness for p in found],
        "marker": {
            "color": plotly.colour(index),
            "size": size,
            "symbol": plotly.SYMBOLS[index % 3],
        },
        "customdata": [plotly.lines(p.formula, 56) for p in found],
        "hovertemplate": "%{customdata}<br>%{x} nodes, fitness %{y:.4f}<extra></extra>",
    }


def _figures(material: Material) -> Iterator[Drawn]:
    data = of_run(material.run)
    if data is None:
        return
    steps = ", ".join(f"{p.fitness:.3f} with {p.complexity} nodes" for p in data.steps)
    yield Drawn(
        "front",
        f"Complexity against fitness, on {data.rows}: the best formula of each size that was"
        " tried, and the front, which no smaller formula reaches. In sample.",
        f"Chart of fitness against size; the front: {steps}.",
        spec(data),
        partial(draw, data),
    )


FIGURE = FigureKind(35, OTHERS, _figures)
