"""Complexity against fitness: the front that a search optimises, and the chosen formula."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lpzero.report.chart import Axis, Chart, Level, Line, Panel, Points
from lpzero.report.figures import OTHERS, FigureKind, Material
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
        steps: list[Point] = []
        for point in self.points:
            if not steps or point.fitness > steps[-1].fitness:
                steps.append(point)
        return steps

    @property
    def simplest(self) -> Point | None:
        """The smallest formula inside the winner's interval, if it is not the winner."""
        if self.chosen is None or self.low is None:
            return None
        inside = [p for p in self.steps if p.fitness >= self.low]
        smallest = inside[0] if inside else None
        is_smaller = smallest is not None and smallest.complexity < self.chosen.complexity
        return smallest if is_smaller else None


def front(
    tried: Iterable[Point], chosen: Point | None = None, low: float | None = None, rows: str = ""
) -> Front:
    """The data of the figure from the formulas that were tried."""
    best: dict[int, Point] = {}
    for point in tried:
        rival = best.get(point.complexity)
        if rival is None or point.fitness > rival.fitness:
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
    kept: Mapping[str, Any] = next((row for row in run.hall if row["formula"] == text), {})
    value = kept.get("fitness", best.get("fitness", best["rho"]["train"]))
    fitness = float(value[0] if isinstance(value, list) else value)
    is_rho = run.fitness_rows == "train" and abs(fitness - best["rho"]["train"]) < 1e-9
    lows = [run.judged(str(table["name"]))["train"]["rho_ci"][0] for table in run.tables]
    return Point(text, int(best["complexity"]), fitness), min(lows) if is_rho else None


def chart(data: Front) -> Chart:
    """Points and the staircase of the best so far; the chosen formula is marked."""
    steps = data.steps
    # The smallest formulas are far below the rest: the figure begins where something happens.
    top, quarter = steps[-1].fitness, sorted(p.fitness for p in data.points)[len(data.points) // 4]
    low = min([quarter, *(point.fitness for point, _, _ in _marked(data))])
    gap = max(1e-4, (top - low) * 0.1)
    bottom = low if data.low is None else min(low, data.low)
    widest = max(point.complexity for point in data.points)
    shown = ", ".join(f"{p.fitness:.3f} with {p.complexity} nodes" for p in steps)
    return Chart(
        name="front",
        caption=f"Complexity against fitness, on {data.rows}: the best formula of each size that"
        " was tried, and the front, which no smaller formula reaches. In sample.",
        words=f"Chart of fitness against size; the front: {shown}.",
        panels=[
            Panel(
                series=[
                    _points("best of its size", data.points, 5),
                    Line(
                        x=[p.complexity for p in steps],
                        y=[p.fitness for p in steps],
                        name="front",
                        is_stepped=True,
                        hover=None,
                    ),
                    *(_points(name, [point], place) for point, name, place in _marked(data)),
                ],
                x=Axis(title="nodes of the formula", limits=(0, 1.05 * widest)),
                y=Axis(title=f"fitness on {data.rows}", limits=(bottom - gap, top + gap)),
                levels=[]
                if data.low is None
                else [Level(data.low, "lower end of the winner's interval")],
            )
        ],
    )


def _marked(data: Front) -> list[tuple[Point, str, int]]:
    """The points with a marker of their own, each with its name and its place in the colours."""
    chosen = [] if data.chosen is None else [(data.chosen, "chosen", 1)]
    return chosen if data.simplest is None else [*chosen, (data.simplest, "simplest inside", 2)]


def _points(name: str, points: Sequence[Point], colour: int) -> Points:
    return Points(
        x=[p.complexity for p in points],
        y=[p.fitness for p in points],
        hover=[f"{p.formula}\n{p.complexity} nodes, fitness {p.fitness:.4f}" for p in points],
        name=name,
        colour=colour,
        is_large=len(points) == 1 and name != "best of its size",
    )


def _charts(material: Material) -> Iterator[Chart]:
    data = of_run(material.run)
    if data is not None:
        yield chart(data)


FIGURE = FigureKind(35, OTHERS, _charts)
