"""Targets of single trainings: how far apart seeds of one architecture are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from lpzero.report.figures import plotly_spec as plotly
from lpzero.report.figures import style


@dataclass(frozen=True, slots=True)
class Trainings:
    """The targets of each architecture by seed; architectures by their number in the plan."""

    by_arch: Mapping[int, Mapping[int, float]]
    labels: Mapping[int, str] = field(default_factory=dict)  # the architectures in words

    @property
    def n(self) -> int:
        """How many trainings have a target."""
        return sum(len(found) for found in self.by_arch.values())

    @property
    def repeated(self) -> list[int]:
        """The architectures with targets from several seeds."""
        return [index for index, found in self.by_arch.items() if len(found) > 1]

    @property
    def within(self) -> float:
        """The standard deviation between seeds of one architecture, pooled."""
        found = [np.var(list(self.by_arch[i].values()), ddof=1) for i in self.repeated]
        return float(np.sqrt(np.mean(found)))

    @property
    def between(self) -> float:
        """The standard deviation of the architectures' means."""
        return float(np.std([np.mean(list(found.values())) for found in self.by_arch.values()]))

    @property
    def order(self) -> list[int]:
        """The architectures, the worst mean first."""
        return sorted(self.by_arch, key=lambda i: float(np.mean(list(self.by_arch[i].values()))))


def trainings(lines: Iterable[Mapping[str, Any]]) -> Trainings:
    """The data of the figure from the lines of a build's journal; failed trainings are left out."""
    found: dict[int, dict[int, float]] = {}
    labels: dict[int, str] = {}
    for line in lines:
        if line["target"] is not None:
            found.setdefault(int(line["index"]), {})[int(line["seed"])] = float(line["target"])
            labels[int(line["index"])] = described(line)
    return Trainings(found, labels)


def described(line: Mapping[str, Any]) -> str:
    """The architecture of a line in words; its number where an earlier version wrote the line."""
    name = f"architecture {int(line['index'])}"
    return name if line.get("arch") is None else f"{name}: {json.dumps(line['arch'])}"


def draw(data: Trainings) -> Figure:
    """A dot per training, a marker per seed."""
    with style.look():
        figure = style.new(6.2, 3.6)
        axes = figure.subplots()
        for index, (seed, points) in enumerate(_by_seed(data).items()):
            axes.plot(
                [place for place, _, _ in points],
                [target for _, target, _ in points],
                linestyle="none",
                marker=style.MARKERS[index % len(style.MARKERS)],
                markersize=3.5,
                color=style.COLOURS[index % len(style.COLOURS)],
                label=f"seed {seed}",
            )
        axes.set_xlabel("architectures, the best on the right")
        axes.set_ylabel("target")
        axes.legend(loc="lower right", fontsize=8)
    return figure


def spec(data: Trainings) -> plotly.Spec:
    """The same for a browser."""
    traces = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": f"seed {seed}",
            "x": [place for place, _, _ in points],
            "y": [target for _, target, _ in points],
            "marker": {
                "color": plotly.colour(index),
                "symbol": plotly.SYMBOLS[index % len(plotly.SYMBOLS)],
                "size": 7,
            },
            "customdata": [
                f"{plotly.lines(data.labels[number])}<br>seed {seed}" for _, _, number in points
            ],
            "hovertemplate": "%{customdata}<br>target %{y:.6~g}<extra></extra>",
        }
        for index, (seed, points) in enumerate(_by_seed(data).items())
    ]
    return plotly.spec(
        traces,
        height=400,
        showlegend=True,
        xaxis=plotly.axis("architectures, the best on the right"),
        yaxis=plotly.axis("target"),
    )


def _by_seed(data: Trainings) -> dict[int, list[tuple[int, float, int]]]:
    """Of each seed the place in the order, the target and the number of its architectures."""
    found: dict[int, list[tuple[int, float, int]]] = {}
    for place, number in enumerate(data.order, 1):
        for seed, target in data.by_arch[number].items():
            found.setdefault(seed, []).append((place, target, number))
    return dict(sorted(found.items()))
