"""The page of a one-shot training: the networks, the learning curves, the settings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from lpzero.report.figures import plotly_spec as plotly
from lpzero.report.figures import style
from lpzero.report.figures.drawn import FOUND, SEARCHED, Drawn
from lpzero.report.markup import Child, Markup, element
from lpzero.report.provenance import reproduce
from lpzero.report.sections import Content, Section
from lpzero.report.tables import Cell, number, pairs, table
from lpzero.supernet.record import SupernetRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Lines = Sequence[Sequence[float]]


def content(run: SupernetRun) -> Content:
    """What the page of a training says."""
    trained: list[Markup | Drawn] = [*drawings(run), pairs("Settings", _settings(run))]
    return Content(
        f"{run.request['space']}: supernet training",
        run.remarks,
        [
            Section(FOUND, "What did it find?", [_result(run)], "Result"),
            Section(SEARCHED, "How was it trained?", trained, "Training"),
            Section("reproduce", "Reproduce", [reproduce(run)]),
        ],
    )


def drawings(run: SupernetRun) -> list[Drawn]:
    """The loss, and the measure of every network, against the steps."""
    if not run.history:
        return []
    steps, last = [entry["step"] for entry in run.history], run.history[-1]
    networks = list(zip(*(entry["valid"] for entry in run.history), strict=True))
    curves: list[tuple[str, str, Lines, str]] = [
        (
            "loss",
            "training loss",
            [[entry["loss"] for entry in run.history]],
            f"after {last['step']:,} steps it is {last['loss']:.3f}",
        ),
        (
            "networks",
            "held-out measure",
            networks,
            f"between {min(last['valid']):.3f} and {max(last['valid']):.3f} at the end",
        ),
    ]
    return [
        Drawn(
            f"curves-{name}",
            f"The {label} against the step; a line for each network that is measured."
            if name == "networks"
            else f"The {label} against the step.",
            f"Line chart of the {label}; {words}.",
            _spec(steps, lines, label),
            partial(_draw, steps, lines, label),
        )
        for name, label, lines, words in curves
    ]


def _spec(steps: Sequence[int], lines: Lines, label: str) -> plotly.Spec:
    traces = [
        {
            "type": "scatter",
            "mode": "lines",
            "x": list(steps),
            "y": list(line),
            "line": {"color": plotly.colour(0), "width": 1.5},
            "hovertemplate": "%{y:.4f} after %{x:,}<extra></extra>",
        }
        for line in lines
    ]
    axes = {"xaxis": plotly.axis("step"), "yaxis": plotly.axis(label)}
    return plotly.spec(traces, height=320, showlegend=False, **axes)


def _draw(steps: Sequence[int], lines: Lines, label: str) -> Figure:
    with style.look():
        figure = style.new()
        axes = figure.subplots()
        for line in lines:
            axes.plot(steps, line, color=style.COLOURS[0], linewidth=1.0)
        axes.set_xlabel("step")
        axes.set_ylabel(label)
    return figure


def _result(run: SupernetRun) -> Markup:
    if run.result is None:
        return element("p", "There is no result: see the remarks above.")
    rows: list[list[Child | Cell]] = [
        [
            number(row["parameters"]),
            number(row["flops"]),
            number(row["valid"]),
            number(row["test"]),
            "{:.3f} to {:.3f}".format(*row["test_ci"]),
            element("code", json.dumps(row["arch"])),
        ]
        for row in run.result["networks"]
    ]
    heads = ["parameters", "flops", "valid", "test", "95% interval", "architecture"]
    which = "preferred" if run.result["is_preferred"] else "some"
    return table(f"{run.result['target']} of {which} networks", [heads], rows, sortable=True)


def _settings(run: SupernetRun) -> dict[str, Child]:
    told: dict[str, Any] = {"dataset": run.request["dataset"], **run.request["settings"]}
    told["preferred architectures"] = len(run.request["preferred"])
    return {name.replace("_", " "): str(value) for name, value in told.items()}
