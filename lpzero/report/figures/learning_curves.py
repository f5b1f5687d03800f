"""Learning curves of a table build: the training loss of every network against its steps."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from lpzero.report.figures import plotly_spec as plotly
from lpzero.report.figures import style
from lpzero.report.figures.trainings import described

_MOST = 200  # networks in a figure; more lines cannot be told apart
_ENDS = ("the others", "highest target", "lowest target")


@dataclass(frozen=True, slots=True)
class Network:
    """An architecture of the plan, its curves by seed, and the mean of its targets."""

    index: int
    label: str
    target: float
    curves: Mapping[int, Sequence[tuple[int, float]]]  # (steps done, loss)


@dataclass(frozen=True, slots=True)
class LearningCurves:
    """The networks that are drawn, the lowest target first, and how many have a curve."""

    networks: tuple[Network, ...]
    n: int

    @property
    def groups(self) -> list[tuple[str, list[Network]]]:
        """The networks between the ends, and the two ends, each with its name in the legend."""
        ends = [[self.networks[-1]], [self.networks[0]]] if len(self.networks) > 1 else [[], []]
        middle = list(self.networks[1:-1] if len(self.networks) > 1 else self.networks)
        return [(name, kept) for name, kept in zip(_ENDS, (middle, *ends), strict=True) if kept]


def learning_curves(lines: Iterable[Mapping[str, Any]]) -> LearningCurves:
    """The data of the figure from a build's journal; only trainings with a target and a curve."""
    found: dict[int, dict[int, Mapping[str, Any]]] = {}
    for line in lines:
        if line["target"] is not None and line.get("curve"):
            found.setdefault(int(line["index"]), {})[int(line["seed"])] = line
    networks = sorted((_network(*item) for item in found.items()), key=lambda one: one.target)
    places = np.unique(np.linspace(0, len(networks) - 1, min(_MOST, len(networks))).round())
    return LearningCurves(tuple(networks[int(place)] for place in places), len(networks))


def draw(data: LearningCurves) -> Figure:
    """A line per training; the networks at both ends in colour."""
    with style.look():
        figure = style.new(6.2, 3.6)
        axes = figure.subplots()
        for number, (name, networks) in enumerate(data.groups):
            x, y = _joined([curve for one in networks for curve in one.curves.values()])
            is_end = name != _ENDS[0]
            axes.plot(
                x, y,
                color=style.COLOURS[number] if is_end else style.GREY,
                linewidth=1.6 if is_end else 0.6,
                alpha=1.0 if is_end else 0.5,
                label=name,
            )  # fmt: skip
        axes.set_xlabel("step")
        axes.set_ylabel("training loss")
        axes.legend(loc="upper right", fontsize=8)
    return figure


def spec(data: LearningCurves) -> plotly.Spec:
    """The same for a browser; a network tells its architecture where it is pointed at."""
    traces: list[dict[str, Any]] = []
    for number, (name, networks) in enumerate(data.groups):
        is_end = name != _ENDS[0]
        for place, one in enumerate(networks):
            x, y = _joined(list(one.curves.values()))
            traces.append(
                {
                    "type": "scatter", "mode": "lines", "x": x, "y": y, "name": name,
                    "legendgroup": name, "showlegend": place == 0, "opacity": 1 if is_end else 0.5,
                    "line": {"color": plotly.colour(number) if is_end else "@soft",
                             "width": 2.5 if is_end else 1},
                    "meta": f"{plotly.lines(one.label)}<br>target {one.target:.6g}",
                    "hovertemplate": "%{meta}<br>loss %{y:.4f} after %{x:,}<extra></extra>",
                }
            )  # fmt: skip
    return plotly.spec(
        traces,
        height=400,
        showlegend=True,
        xaxis=plotly.axis("step"),
        yaxis=plotly.axis("training loss"),
    )


def _network(index: int, by_seed: Mapping[int, Mapping[str, Any]]) -> Network:
    target = float(np.mean([line["target"] for line in by_seed.values()]))
    curves = {
        seed: [(int(step), float(loss)) for step, loss in line["curve"]]
        for seed, line in sorted(by_seed.items())
    }
    return Network(index, described(next(iter(by_seed.values()))), target, curves)


def _joined(
    curves: Sequence[Sequence[tuple[int, float]]],
) -> tuple[list[float], list[float]]:
    """The curves as one line with gaps: steps and losses."""
    x: list[float] = []
    y: list[float] = []
    for curve in curves:
        x += [step for step, _ in curve] + [math.nan]
        y += [loss for _, loss in curve] + [math.nan]
    return x[:-1], y[:-1]
