"""The pages of trainings: of a table build, and how far its trainings repeat, and of a supernet."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lpzero.report.chart import Axis, Chart, Line, Panel
from lpzero.report.figures import FOUND, HOLDS, SEARCHED, trainings
from lpzero.report.markup import NOTHING, Cell, Child, Markup, element, number, pairs, table
from lpzero.report.page import Content, Section, reproduction, versions
from lpzero.runs.journal import read_journal
from lpzero.runs.layout import JOURNAL, TABLE, place
from lpzero.runs.run import Run
from lpzero.supernet.trained import SupernetRun
from lpzero.training.table_build import is_training
from spaces.untrusted import UntrustedError, read_json

_LARGEST_TABLE = 64 << 20  # bytes


def build_content(run: Run, *others: Any) -> Content:
    """What the page of a table build says, finished or not."""
    lines, _ = read_journal(run.folder / JOURNAL, is_training, place(run.config.hash, JOURNAL))
    data = trainings.trainings(lines)
    targets = trainings.target_chart(data) if data.by_arch else None
    plan = run.request["plan"]
    name = str(plan.get("name") or plan.get("address"))
    return Content(
        f"{name}: trained table",
        run.remarks,
        [
            Section(FOUND, "What was trained?", [_counts(lines, data), targets], "Result"),
            Section(HOLDS, "Do trainings repeat?", _noise(run, data), "Noise"),
            Section(SEARCHED, "How did they learn?", _curves(lines), "Learning"),
            Section("failures", "What failed?", [_failures(lines)], "Failures"),
            reproduction(
                run,
                pairs("The plan", {key: _plain(value) for key, value in plan.items()}),
                pairs("Versions", versions(run)),
            ),
        ],
    )


def _counts(lines: Sequence[Mapping[str, Any]], data: trainings.Trainings) -> Markup:
    seconds = [float(line["seconds"]) for line in lines]
    values: dict[str, Child] = {
        "trainings": f"{len(lines):,}",
        "failed": f"{sum(line['target'] is None for line in lines):,}",
        "architectures with a target": f"{len(data.by_arch):,}",
        "trained from several seeds": f"{len(data.repeated):,}",
    }
    if seconds:
        values["seconds of a training, median"] = number(float(np.median(seconds)), 1).shown
        values["hours of training in all"] = number(sum(seconds) / 3600, 2).shown
    return pairs("The build so far", values)


def _curves(lines: Sequence[Mapping[str, Any]]) -> list[Markup | Chart]:
    """The training loss of every network against its steps."""
    data = trainings.learning_curves(lines)
    if not data.networks:
        return [element("p", "No training has a learning curve in its journal.")]
    return [trainings.curve_chart(data)]


def _noise(run: Run, data: trainings.Trainings) -> list[Markup | Chart]:
    """The spread within and between architectures, the ceiling of the finished table, each seed."""
    if not data.repeated:
        return [element("p", "No architecture has been trained from several seeds yet.")]
    values: dict[str, Child] = {
        "spread between seeds of one architecture": number(data.within, 4).shown,
        "spread between architectures": number(data.between, 4).shown,
    }
    for key, value in _stored_noise(run).items():
        values[key.replace("_", " ")] = _plain(value)
    told = pairs("Standard deviations of the target, and rank correlations", values)
    return [told, _by_seed(data)]


def _by_seed(data: trainings.Trainings) -> Markup:
    """The final target of each seed, where an architecture has several; the best mean first."""
    seeds = sorted({seed for by_seed in data.by_arch.values() for seed in by_seed})
    rows: list[list[Child | Cell]] = []
    for index in reversed(data.order):
        by_seed = data.by_arch[index]
        if index in data.repeated:
            spread = float(np.std(list(by_seed.values()), ddof=1))
            targets = [number(by_seed[s]) if s in by_seed else NOTHING for s in seeds]
            rows.append([number(index), *targets, number(spread, 4)])
    heads = ["architecture", *(f"seed {seed}" for seed in seeds), "standard deviation"]
    return table("Final targets by seed", [heads], rows, sortable=True)


def _stored_noise(run: Run) -> Mapping[str, Any]:
    try:
        noise = read_json(run.folder / TABLE, _LARGEST_TABLE, follow_links=False)["noise"]
    except (FileNotFoundError, UntrustedError, KeyError, TypeError):
        return {}
    return noise if isinstance(noise, dict) else {}


def _failures(lines: Sequence[Mapping[str, Any]]) -> Markup:
    failed = [line for line in lines if line["target"] is None]
    if not failed:
        return element("p", "No training failed.")
    rows: list[list[Child | Cell]] = [
        [number(line["index"]), number(line["seed"]), str(line["failure"])] for line in failed
    ]
    return table("Failed trainings", [["architecture", "seed", "reason"]], rows, sortable=True)


def _plain(value: Any) -> str:
    if isinstance(value, float):
        return str(number(value).shown)
    return NOTHING if value is None else value if isinstance(value, str) else json.dumps(value)


def supernet_content(run: SupernetRun, *others: Any) -> Content:
    """What the page of a training says."""
    trained: list[Markup | Chart] = [*drawings(run), pairs("Settings", _settings(run))]
    return Content(
        f"{run.request['space']}: supernet training",
        run.remarks,
        [
            Section(FOUND, "What did it find?", [_result(run)], "Result"),
            Section(SEARCHED, "How was it trained?", trained, "Training"),
            reproduction(run),
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
        _step_curves(
            run,
            "loss",
            "training loss",
            [[entry["loss"] for entry in run.history]],
            f"after {last['step']:,} steps it is {last['loss']:.3f}",
        ),
        _step_curves(
            run,
            "networks",
            "held-out measure",
            networks,
            f"between {lowest:.3f} and {highest:.3f} at the end",
        ),
    ]


def _step_curves(
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
