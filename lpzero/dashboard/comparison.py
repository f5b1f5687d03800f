"""Runs beside each other: a column for each, and their best so far in one figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lpzero.dashboard.progress import state
from lpzero.dashboard.summary import Summary
from lpzero.report.chart import Chart
from lpzero.report.figures import convergence
from lpzero.report.formulas import shown
from lpzero.report.markup import NOTHING, Cell, Child, Markup, element, table
from lpzero.report.sections import Content, Section
from lpzero.runs.formula_run import FormulaRun
from lpzero.runs.run import Run

Pair = tuple[Summary, Run | None]


def beside(runs: Sequence[Pair], base: str) -> Content:
    """The content of the page of these runs; `base` is the address of the list."""
    names = ", ".join(line.name for line, _ in runs)
    parts: list[Markup | Chart] = [_facts(runs, base), *_figures(runs)]
    settings = _differences(runs)
    more = [Section("settings", "What differs?", [settings])] if settings is not None else []
    return Content(names, [], [Section("beside", "Runs", parts), *more])


def _facts(runs: Sequence[Pair], base: str) -> Markup:
    header: list[Child | Cell] = [
        "",
        *(element("a", line.name, href=f"{base}run/{line.id}") for line, _ in runs),
    ]
    lines: list[list[Child | Cell]] = [
        ["state", *(state(line.state) for line, _ in runs)],
        ["kind", *(line.kind or NOTHING for line, _ in runs)],
        ["table", *(line.table or NOTHING for line, _ in runs)],
        ["progress", *(line.progress or NOTHING for line, _ in runs)],
        ["best", *(line.best or NOTHING for line, _ in runs)],
        ["best formula", *(_formula(run) for _, run in runs)],
        ["remark", *(line.remark or NOTHING for line, _ in runs)],
    ]
    kept = [line for line in lines if any(cell != NOTHING for cell in line[1:])]
    return table("The runs", [header], kept)


def _formula(run: Run | None) -> Child:
    """The winner of a run, or the best so far on train."""
    if not isinstance(run, FormulaRun):
        return NOTHING
    if run.best is not None:
        return shown(str(run.best["formula"]))
    return shown(str(run.hall[0]["formula"])) if run.hall else NOTHING


def _figures(runs: Sequence[Pair]) -> list[Chart]:
    """The best so far of the runs of each kind that have a history."""
    found: dict[str, dict[str, Any]] = {}
    for line, run in runs:
        history = getattr(run, "history", None)
        if run is not None and history:
            found.setdefault(run.kind, {})[line.name] = [history]
    return [_figure(kind, histories) for kind, histories in found.items()]


def _figure(kind: str, histories: Mapping[str, Any]) -> Chart:
    counted = "formulas evaluated" if kind == "campaign" else "architectures"
    data = convergence.convergence(histories, counted=counted, measured="best so far")
    return convergence.chart(
        data,
        f"beside-{kind.replace(' ', '-')}",
        f"The best so far of each {kind} against {counted}; of a campaign the fitness, in sample.",
        f"Line chart with a line for each of {', '.join(histories)}.",
    )


def _differences(runs: Sequence[Pair]) -> Markup | None:
    """The settings that are not the same in all runs; None if all are."""
    settings = [_settings(run) for _, run in runs]
    keys = dict.fromkeys(key for found in settings for key in found)
    rows: list[list[Child | Cell]] = []
    for key in keys:
        values = [found.get(key, NOTHING) for found in settings]
        if len(set(values)) > 1:
            rows.append([key, *values])
    if not rows:
        return None
    header: list[Child | Cell] = ["", *(line.name for line, _ in runs)]
    return table("What was asked differently", [header], rows)


def _settings(run: Run | None) -> dict[str, str]:
    """Every field of the request as text, nested ones by their last name."""
    found: dict[str, str] = {}
    waiting: list[tuple[str, Any]] = [] if run is None else list(run.request.items())
    for name, value in waiting:
        if isinstance(value, Mapping):
            found |= {str(key): str(entry)[:200] for key, entry in value.items()}
        elif isinstance(value, list) and all(isinstance(entry, Mapping) for entry in value):
            found[name] = ", ".join(str(entry.get("name", "")) for entry in value)[:200]
        else:
            found[name] = str(value)[:200]
    return found
