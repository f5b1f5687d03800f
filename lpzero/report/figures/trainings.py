"""A table build: the targets of single trainings, and the learning curve of every network."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lpzero.report.chart import GREY, Axis, Chart, Line, Panel, Points

_MOST = 200  # networks in a figure; more lines cannot be told apart
_ENDS = ("the others", "highest target", "lowest target")


@dataclass(frozen=True, slots=True)
class Trainings:
    """The targets of each architecture by seed; architectures by their number in the plan."""

    by_arch: Mapping[int, Mapping[int, float]]
    labels: Mapping[int, str] = field(default_factory=dict)  # the architectures in words

    @property
    def n(self) -> int:
        """How many trainings have a target."""
        return sum(map(len, self.by_arch.values()))

    @property
    def repeated(self) -> list[int]:
        """The architectures with targets from several seeds."""
        return [index for index, targets in self.by_arch.items() if len(targets) > 1]

    @property
    def within(self) -> float:
        """The standard deviation between seeds of one architecture, pooled."""
        variances = [np.var(list(self.by_arch[i].values()), ddof=1) for i in self.repeated]
        return float(np.sqrt(np.mean(variances)))

    @property
    def between(self) -> float:
        """The standard deviation of the architectures' means."""
        return float(np.std([np.mean(list(of_arch.values())) for of_arch in self.by_arch.values()]))

    @property
    def order(self) -> list[int]:
        """The architectures, the worst mean first."""
        return sorted(self.by_arch, key=lambda i: float(np.mean(list(self.by_arch[i].values()))))


def trainings(lines: Iterable[Mapping[str, Any]]) -> Trainings:
    """The data of the figure from the lines of a build's journal; failed trainings are left out."""
    by_arch: dict[int, dict[int, float]] = {}
    labels: dict[int, str] = {}
    for line in lines:
        if line["target"] is not None:
            by_arch.setdefault(int(line["index"]), {})[int(line["seed"])] = float(line["target"])
            labels[int(line["index"])] = described(line)
    return Trainings(by_arch, labels)


def described(line: Mapping[str, Any]) -> str:
    """The architecture of a line in words; its number where an earlier version wrote the line."""
    name = f"architecture {int(line['index'])}"
    return name if line.get("arch") is None else f"{name}: {json.dumps(line['arch'])}"


def target_chart(data: Trainings) -> Chart:
    """A point per training, a symbol per seed; architectures in the order of their mean."""
    by_seed: dict[int, list[tuple[int, float, str]]] = {}
    for place, number in enumerate(data.order, 1):
        for seed, target in data.by_arch[number].items():
            by_seed.setdefault(seed, []).append((place, target, data.labels[number]))
    series = [
        Points(
            x=[place for place, _, _ in points],
            y=[target for _, target, _ in points],
            hover=[f"{label}\nseed {seed}\ntarget {target:.6g}" for _, target, label in points],
            name=f"seed {seed}",
            colour=colour,
        )
        for colour, (seed, points) in enumerate(sorted(by_seed.items()))
    ]
    return Chart(
        name="trainings",
        caption="The target of every training, architectures in the order of their mean. Where one"
        " was trained from several seeds, the distance between its dots is the noise that no proxy"
        " can predict.",
        words=f"Chart of {data.n} targets of {len(data.by_arch)} architectures.",
        panels=[
            Panel(
                series=series,
                x=Axis(title="architectures, the best on the right"),
                y=Axis(title="target"),
            )
        ],
    )


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
    by_arch: dict[int, dict[int, Mapping[str, Any]]] = {}
    for line in lines:
        if line["target"] is not None and line.get("curve"):
            by_arch.setdefault(int(line["index"]), {})[int(line["seed"])] = line
    networks = sorted((_network(*item) for item in by_arch.items()), key=lambda net: net.target)
    places = np.unique(np.linspace(0, len(networks) - 1, min(_MOST, len(networks))).round())
    return LearningCurves(tuple(networks[int(place)] for place in places), len(networks))


def curve_chart(data: LearningCurves) -> Chart:
    """A line per network; the networks with the highest and the lowest target in colour."""
    lines = []
    for name, networks in data.groups:
        place = _ENDS.index(name)
        for network in networks:
            x, y = _joined(list(network.curves.values()))
            lines.append(
                Line(
                    x=x,
                    y=y,
                    hover=f"{network.label}\ntarget {network.target:.6g}",
                    name=name,
                    colour=place - 1 if place else GREY,
                    is_thin=place == 0,
                )
            )
    some = ""
    if data.n > len(data.networks):
        some = f" {len(data.networks):,} of {data.n:,} are drawn, from the lowest to the highest"
        some += " target."
    losses = [curve[-1][1] for network in data.networks for curve in network.curves.values()]
    return Chart(
        name="learning-curves",
        caption="The training loss against the step, a line for each network and seed; each point"
        f" is the mean since the point before.{some}",
        words=f"Line chart of {data.n:,} networks; their last losses are between"
        f" {min(losses):.3f} and {max(losses):.3f}.",
        panels=[Panel(series=lines, x=Axis(title="step"), y=Axis(title="training loss"))],
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
