"""The figures' drawings, from data already computed."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from lpzero.arrays import FloatArray
from lpzero.judgement.correlation import kendall_many
from lpzero.report import style

COLUMNS = 3


def panels(names: Sequence[str]) -> tuple[Figure, list[Any]]:
    """A figure with one panel per name."""
    rows = math.ceil(len(names) / COLUMNS)
    figure = style.new(4 * COLUMNS, 3 * rows)
    axes = list(figure.subplots(rows, COLUMNS, squeeze=False).flat)
    for unused in axes[len(names) :]:
        unused.remove()
    for panel, name in zip(axes, names, strict=False):
        panel.set_title(name)
    return figure, axes[: len(names)]


def scatter(scores: Mapping[str, FloatArray], targets: FloatArray, path: Path) -> None:
    """Each proxy (n,) against the targets (n,), with Kendall's tau."""
    with style.look():
        figure, axes = panels(list(scores))
        for panel, (name, values) in zip(axes, scores.items(), strict=True):
            known = np.isfinite(values)
            tau = float(kendall_many(values[None, known], targets[known]).values[0])
            panel.plot(values[known], targets[known], ".", markersize=3, color=style.COLOURS[0])
            panel.set_title(f"{name}, tau {tau:.2f}")
    style.save(figure, path)


def strips(found: Mapping[str, Sequence[Sequence[float]]], path: Path) -> None:
    """Of each proxy the scores (runs, architectures), a strip per architecture."""
    with style.look():
        figure, axes = panels(list(found))
        for panel, values in zip(axes, found.values(), strict=True):
            for run in values:
                panel.plot(range(1, len(run) + 1), run, "_", color=style.COLOURS[0])
            panel.set_xlabel("architecture, by its target")
    style.save(figure, path)


def curves(found: Sequence[Mapping[int, float]], wrong: Sequence[int], path: Path) -> None:
    """Scores by steps of pretraining, dotted, their mean in bold; what is wrong as crosses."""
    steps = [step for step in sorted(found[0]) if step not in wrong]
    with style.look():
        figure = style.new()
        axes = figure.subplots()
        for one in found:
            axes.plot(steps, [one[step] for step in steps], ":", color=style.GREY, linewidth=1)
            axes.plot(wrong, [one[step] for step in wrong], "x", color=style.GREY, markersize=3)
        means = [float(np.mean([one[step] for one in found])) for step in steps]
        axes.plot(steps, means, color=style.COLOURS[0], linewidth=2, label="mean")
        of_wrong = [float(np.mean([one[step] for one in found])) for step in wrong]
        label = "mean in the file, of ten times the steps"
        axes.plot(wrong, of_wrong, "X", color=style.COLOURS[1], label=label)
        axes.set_xlabel("steps of pretraining")
        axes.set_ylabel("GLUE")
        axes.legend()
    style.save(figure, path)


def bars(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], path: Path) -> None:
    """A group of horizontal bars for each row, one bar per column."""
    with style.look():
        figure = style.new(7, 0.5 * len(rows) + 1)
        axes = figure.subplots()
        places = np.arange(len(rows))[::-1]
        height = 0.8 / len(columns)
        for index, column in enumerate(columns):
            values = [float(row[column]) for row in rows]
            axes.barh(
                places - index * height,
                values,
                height,
                label=column.replace("_", " "),
                color=style.COLOURS[index],
            )
        axes.set_yticks(places - 0.4, [str(row["metric"]) for row in rows])
        axes.axvline(0, color="black", linewidth=0.5)
        axes.set_xlabel("Kendall's tau with minus the loss")
        axes.legend(loc="lower right")
    style.save(figure, path)
