"""The page of a one-shot training: the networks, the learning curves, the settings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lpzero.report.chart import Axis, Chart, Line, Panel
from lpzero.report.figures import FOUND, SEARCHED
from lpzero.report.markup import Cell, Child, Markup, element, number, pairs, table
from lpzero.report.provenance import reproduce
from lpzero.report.sections import Content, Section
from lpzero.supernet.trained import SupernetRun


def content(run: SupernetRun) -> Content:
    """What the page of a training says."""
    trained: list[Markup | Chart] = [*drawings(run), pairs("Settings", _settings(run))]
    return Content(
        f"{run.request['space']}: supernet training",
        run.remarks,
        [
            Section(FOUND, "What did it find?", [_result(run)], "Result"),
            Section(SEARCHED, "How was it trained?", trained, "Training"),
            Section("reproduce", "Reproduce", [reproduce(run)]),
        ],
    )


def drawings(run: SupernetRun) -> list[Chart]:
    """The loss, and the measure of every network, against the steps."""
    if not run.history:
        return []
    last = run.history[-1]
    lowest, highest = min(last["valid"]), max(last["valid"])
    networks = list(zip(*(entry["valid"] for entry in run.history), strict=True))
    return [
        _curves(
            run,
            "loss",
            "training loss",
            [[entry["loss"] for entry in run.history]],
            f"after {last['step']:,} steps it is {last['loss']:.3f}",
        ),
        _curves(
            run,
            "networks",
            "held-out measure",
            networks,
            f"between {lowest:.3f} and {highest:.3f} at the end",
        ),
    ]


def _curves(
    run: SupernetRun, name: str, label: str, lines: Sequence[Sequence[float]], end: str
) -> Chart:
    steps = [entry["step"] for entry in run.history]
    each = "; a line for each network that is measured" if len(lines) > 1 else ""
    return Chart(
        name=f"curves-{name}",
        caption=f"The {label} against the step{each}.",
        words=f"Line chart of the {label}; {end}.",
        panels=[
            Panel(
                series=[Line(x=steps, y=line) for line in lines],
                x=Axis(title="step"),
                y=Axis(title=label),
            )
        ],
    )


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
