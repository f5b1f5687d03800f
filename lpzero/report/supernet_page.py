"""The page of a one-shot training: the networks, the learning curves, the settings."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any

from lpzero.options import to_arguments, to_json
from lpzero.report.figures import style
from lpzero.report.figures.drawn import Drawn
from lpzero.report.markup import Child, Markup, element
from lpzero.report.page import commands, document, figures
from lpzero.report.tables import Cell, number, pairs, table
from lpzero.supernet.one_shot import request_of
from lpzero.supernet.record import SupernetRun
from lpzero.supernet.settings import SupernetSettings


def page(run: SupernetRun, drawn: Sequence[Drawn]) -> str:
    """The document of a training."""
    return document(
        f"{run.request['space']}: supernet training",
        run.remarks,
        [
            ("result", "Result", _result(run)),
            ("figures", "Figures", figures(drawn)),
            ("settings", "Settings", pairs("Settings", _settings(run))),
            ("reproduce", "Reproduce", commands([_command(run)])),
        ],
    )


def drawings(run: SupernetRun) -> list[Drawn]:
    """The loss and the measures of the networks against the steps."""
    if not run.history:
        return []
    steps = [entry["step"] for entry in run.history]
    with style.look():
        figure = style.new(height=5.0)
        above, below = figure.subplots(2, sharex=True)
        above.plot(steps, [entry["loss"] for entry in run.history], color=style.COLOURS[0])
        above.set_ylabel("training loss")
        for network in zip(*(entry["valid"] for entry in run.history), strict=True):
            below.plot(steps, network, linewidth=0.8, color=style.COLOURS[1])
        below.set_ylabel("held-out measure")
        below.set_xlabel("step")
    last = run.history[-1]
    return [
        Drawn(
            "learning-curves",
            "Training loss, and the measure of each network on the data held out for choices.",
            f"Two line charts; after {last['step']:,} steps the loss is {last['loss']:.3f}.",
            figure,
        )
    ]


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


def _command(run: SupernetRun) -> str:
    request = request_of(run.request)
    words = ["lpzero", "train", "--supernet", request.space, "--dataset", request.dataset]
    words += to_arguments(SupernetSettings, run.request["settings"], to_json(SupernetSettings()))
    return shlex.join([*words, "--out", str(run.folder)])
