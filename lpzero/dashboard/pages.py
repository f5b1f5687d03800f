"""The HTML of the dashboard: the list of runs, and live pages of one run or several."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from lpzero.dashboard.watched import Summary, View, state
from lpzero.report.chart import Chart
from lpzero.report.figures import convergence
from lpzero.report.formulas import shown
from lpzero.report.markup import NOTHING, Cell, Child, Markup, element, joined, table
from lpzero.report.page import Content, Section, body, data_block, head_lines, remarks
from lpzero.runs.formula_run import FormulaRun
from lpzero.runs.run import Run

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
COLUMNS = ("run", "kind", "table", "state", "progress", "best", "started", "changed", "size")


def live_page(view: View, name: str, base: str, address: str) -> bytes:
    """The page of the run of that name, which asks for newer states of itself at `address`."""
    way = joined(element("a", "All runs", href=base), " / ", name)
    parts = [
        element("nav", way, class_="above", aria_label="Where this page is"),
        element("p", class_="connection", role="status", id="connection", hidden=True),
        *body(view.content, pictures={}),
        data_block("figures", view.content.specs()),
    ]
    return _document(
        view.content.title,
        parts,
        base,
        ("plotly.js", "report.js", "live.js"),
        data_address=address,
        data_version=view.version,
        data_behind="yes" if view.is_behind else "no",
    )


def list_page(lines: Sequence[Summary], notes: Sequence[str], folder: str, base: str) -> bytes:
    """Every run below the folder, newest first; the script keeps it up to date."""
    ordered = sorted(lines, key=lambda line: -line.changed)
    head = element("tr", element("th", "beside", scope="col"), *(
        element("th", name, scope="col", data_column=name) for name in COLUMNS
    ))  # fmt: skip
    rows = [_row(line, base) for line in ordered]
    runs = element(
        "table",
        element("caption", f"{len(lines):,} runs"),
        element("thead", head),
        element("tbody", *rows),
        id="runs",
    )
    search = element(
        "label", "Filter ", element("input", type="search", id="filter", autocomplete="off")
    )
    button = element("button", "Compare", type="button", id="compare", disabled=True)
    parts = [
        element("header", element("h1", f"Runs in {folder}"), remarks(notes)),
        element("p", class_="connection", role="status", id="connection", hidden=True),
        element(
            "main",
            element("div", search, button, class_="controls", id="controls", hidden=True),
            element("div", runs, class_="scroll", tabindex=0, role="region", aria_label="Runs"),
            element("p", "There is no run yet.", id="nothing", hidden=bool(lines)),
        ),
    ]
    return _document(f"Runs in {folder}", parts, base, ("list.js",), data_base=base)


def _row(line: Summary, base: str) -> Markup:
    """A row as the script makes it, too."""
    box = element("input", type="checkbox", value=line.id, aria_label=f"{line.name} beside others")
    cells = [
        element("td", box),
        element("th", element("a", line.name, href=f"{base}run/{line.id}"), scope="row"),
        element("td", line.kind),
        element("td", line.table),
        element("td", state(line.state)),
        element("td", line.remark or line.progress),
        element("td", line.best),
        element("td", age(line.started)),
        element("td", age(line.changed)),
        element("td", size(line.size), class_="number"),
    ]
    return element("tr", *cells, data_run=line.id)


def age(moment: float) -> str:
    """How long ago it was, in the largest unit."""
    seconds = max(0.0, time.time() - moment)
    for name, unit in (("d", _DAY), ("h", _HOUR), ("min", _MINUTE)):
        if seconds >= unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"


def size(n_bytes: int) -> str:
    """A number of bytes in the largest unit."""
    amount = float(n_bytes)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}"
        amount /= 1000
    return f"{amount:,.1f} GB"


def _document(
    title: str, parts: Sequence[Markup], base: str, scripts: Sequence[str], **attributes: str
) -> bytes:
    styles = [
        element("link", rel="stylesheet", href=f"{base}static/{name}")
        for name in ("report.css", "dashboard.css")
    ]
    loaded = [element("script", src=f"{base}static/{name}", defer=True) for name in scripts]
    icon = element("link", rel="icon", href="data:,")
    head = element("head", element("meta", charset="utf-8"), *head_lines(title), icon, *styles)
    made = element("html", head, element("body", *parts, *loaded, **attributes), lang="en")
    # Names of files need not be UTF-8.
    return f"<!DOCTYPE html>\n{made}\n".encode("utf-8", "backslashreplace")


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
    histories_of: dict[str, dict[str, Any]] = {}
    for line, run in runs:
        history = getattr(run, "history", None)
        if run is not None and history and all(map(_has_place, history)):
            histories_of.setdefault(run.kind, {})[line.name] = [history]
    return [_figure(kind, histories) for kind, histories in histories_of.items()]


def _has_place(row: Mapping[str, Any]) -> bool:
    """Whether the row is a point of the figure; the training of a supernet has other rows."""
    return all(isinstance(row.get(key), (int, float)) for key in ("evaluated", "fitness"))


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
    keys = dict.fromkeys(key for of_run in settings for key in of_run)
    rows: list[list[Child | Cell]] = []
    for key in keys:
        values = [of_run.get(key, NOTHING) for of_run in settings]
        if len(set(values)) > 1:
            rows.append([key, *values])
    if not rows:
        return None
    header: list[Child | Cell] = ["", *(line.name for line, _ in runs)]
    return table("What was asked differently", [header], rows)


def _settings(run: Run | None) -> dict[str, str]:
    """Every field of the request as text, nested ones by their last name."""
    texts: dict[str, str] = {}
    waiting: list[tuple[str, Any]] = [] if run is None else list(run.request.items())
    for name, value in waiting:
        if isinstance(value, Mapping):
            texts |= {str(key): str(entry)[:200] for key, entry in value.items()}
        elif isinstance(value, list) and all(isinstance(entry, Mapping) for entry in value):
            texts[name] = ", ".join(str(entry.get("name", "")) for entry in value)[:200]
        else:
            texts[name] = str(value)[:200]
    return texts
