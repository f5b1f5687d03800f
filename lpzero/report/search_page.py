"""The pages of a search, its best architecture and settings, and of a comparison of searches."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lpzero.report.chart import Chart
from lpzero.report.figures import FOUND, SEARCHED, convergence, trained
from lpzero.report.figures.convergence import search_curves
from lpzero.report.formulas import shown
from lpzero.report.markup import (
    NOTHING,
    Cell,
    Child,
    Markup,
    element,
    number,
    pairs,
    table,
    with_interval,
)
from lpzero.report.page import Content, Section, reproduction, versions
from lpzero.search.answers import sentences
from lpzero.search.comparison import ComparisonRun
from lpzero.search.search_run import SearchRun
from primitives.errors import PrimitiveError
from primitives.parser import parse

_SHOWN = ("step", "scored", "evaluations", "score", "target", "best")


def content(run: SearchRun, beside: Sequence[SearchRun] = (), *others: Any) -> Content:
    """What the page of a search says."""
    request = run.request
    return Content(
        f"{request['space']}: {request['loop']} search",
        [*run.remarks, *_of_the_loop(run)],
        [
            Section(FOUND, "What did it find?", [_result(run), *_trainings(run)], "Result"),
            Section(
                SEARCHED,
                "How was it searched?",
                [*drawings(run, beside), _trace(run), _searched(run)],
                "Search",
            ),
            reproduction(run, _provenance(run)),
        ],
    )


def _of_the_loop(run: SearchRun) -> list[str]:
    """What the loop said about the search: that it ended early, or drew afresh, and why."""
    return [] if run.result is None else list(run.result.get("remarks", ()))


def drawings(run: SearchRun, beside: Sequence[SearchRun] = ()) -> list[Chart]:
    """The best so far; searches that differ in their seed alone are one line."""
    runs = [run, *(other for other in beside if other.history)]
    if not run.history:
        return []
    evaluator = run.result["evaluator"] if run.result is not None else {}
    counted = "architectures scored" if run.is_by_proxy else "architectures evaluated"
    what = f"score of {run.request['proxy']}" if run.is_by_proxy else str(evaluator["target"])
    histories = convergence.arms([(_identity(entry), entry.history) for entry in runs])
    for name, best in (run.result or {}).get("orders", {}).items():
        rows = [{"evaluated": n, "fitness": value} for n, value in enumerate(best, 1)]
        histories[f"without a search: {name}"] = [rows]
    data = convergence.convergence(
        histories,
        counted=counted,
        measured=f"best so far ({what})",
    )
    last = run.history[-1]
    return [
        convergence.chart(
            data,
            "convergence",
            f"The best so far against {counted}.{convergence.several(len(runs), 'searches')}",
            f"Line chart; best {last['fitness']:.6g} after {last['evaluated']:,.0f}.",
        )
    ]


def _identity(run: SearchRun) -> dict[str, Any]:
    left_out = ("seed", "weights_seed", "definition", "constants")
    return {k: v for k, v in run.request.items() if k not in left_out} | dict(
        run.request["constants"]
    )


def _result(run: SearchRun) -> Markup:
    if run.result is None:
        return element("p", "There is no result: see the remarks above.")
    best = dict(run.result["best"])
    arch = json.dumps(best.pop("arch"))
    values: dict[str, Child] = {key.replace("_", " "): _value(v) for key, v in best.items()}
    return element(
        "div",
        element("pre", element("code", arch), tabindex=0),
        pairs("The best architecture", values),
        *(element("p", told) for told in sentences(run.result)),
        element("p", _how_known(run.result), class_="note"),
    )


def _trainings(run: SearchRun) -> list[Markup | Chart]:
    """Of a budget of trainings: cost against target, and what was trained and why."""
    result = run.result or {}
    trace = [entry for entry in result.get("trace", ()) if "why" in entry]
    if not trace:
        return []
    cost = str(run.request["constants"].get("front") or "parameters")
    drawn = trained.chart(trace, cost, str(result["evaluator"]["target"]))
    rows: list[list[Child | Cell]] = [
        [
            number(entry["evaluations"]),
            trained.REASONS[entry["why"]],
            number(entry[cost]),
            number(entry["target"]),
            number(entry["best"]),
            entry.get("failure") or json.dumps(entry["arch"]),
        ]
        for entry in trace
    ]
    header = ["training", "why", cost, "target", "best so far", "architecture, or how it failed"]
    listed = table("What was trained, and why", [header], rows, sortable=True)
    return [listed] if drawn is None else [drawn, listed]


def _how_known(result: Mapping[str, Any]) -> str:
    """Where the target comes from, since a prediction is not a measurement."""
    evaluator = result["evaluator"]
    if evaluator["evaluator"] == "proxy":
        return "Nothing was evaluated: only the proxy was used, whose score is not a target."
    if evaluator["evaluator"] == "surrogate":
        return (
            f"The target is predicted by a surrogate fitted to {evaluator['table']}"
            f" ({evaluator['n']} architectures; {evaluator['folds']}-fold cross-validated rmse"
            f" {evaluator['rmse']:.4g}, ρ {evaluator['rho']:.3f}), not measured."
        )
    if evaluator["evaluator"] == "table":
        return f"The target is looked up in {evaluator['table']}: the search was restricted to it."
    if evaluator["evaluator"] == "supernet":
        return (
            f"The target is the {evaluator['dataset']} measure of the architecture with the weights"
            " of a trained supernet, not of a network trained alone."
        )
    return "The target was measured by training."


def _trace(run: SearchRun) -> Markup:
    if run.result is None or not run.result["trace"]:
        return element("p", "There is no trace yet.")
    rows: list[list[Child | Cell]] = []
    before: Any = object()
    for entry in run.result["trace"]:
        if entry["best"] != before or entry is run.result["trace"][-1]:
            rows.append([number(entry.get(key)) for key in _SHOWN])
        before = entry["best"]
    return table(
        "Steps at which the best changes, and the last one", [list(_SHOWN)], rows, sortable=True
    )


def _searched(run: SearchRun) -> Markup:
    request = run.request
    values: dict[str, Child] = {"proxy": _proxy(str(request["proxy"]))}
    values["definition"] = str(request["definition"])
    for key in ("space", "loop", "evaluator", "table", "training_steps"):
        values[key.replace("_", " ")] = _value(request[key])
    if run.result is not None:
        values["architectures scored"] = f"{run.result['scored']:,}"
        values["without a score"] = f"{run.result['without_score']:,}"
        values["architectures evaluated"] = f"{run.result['evaluations']:,}"
    bounds = {
        f"bounds of {cost}": f"{low or NOTHING} to {high or NOTHING}"
        for cost, (low, high) in request["constraints"].items()
    }
    constants = {key: _value(value) for key, value in request["constants"].items()}
    return element(
        "div",
        pairs("The search", {**values, **bounds}),
        pairs("Constants of the loop", constants),
        class_="beside",
    )


def _proxy(text: str) -> Child:
    """A formula as mathematics, any other proxy by its name."""
    if "(" not in text:  # a bare name is a registered proxy, not a column
        return text
    try:
        parse(text)
    except PrimitiveError:
        return text
    return shown(text)


def _provenance(run: SearchRun) -> Markup:
    values: dict[str, Child] = {
        f"version of {name}": str(value) for name, value in run.config.versions.items()
    }
    values["seed of the loop"] = str(run.request["seed"])
    values["seed of the weights"] = str(run.request["weights_seed"])
    values["configuration"] = element("code", run.config.hash)
    if run.result is not None and "digest" in run.result["evaluator"]:
        digest = element("code", str(run.result["evaluator"]["digest"]))
        values[f"digest of {run.result['evaluator']['table']}"] = digest
    return pairs("What the numbers depend on", values)


def _value(value: Any) -> Child:
    return NOTHING if value is None else number(value).shown if _is_number(value) else str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def comparison_content(run: ComparisonRun, *others: Any) -> Content:
    """What the page of a comparison says."""
    arms = run.request["arms"]
    result = [element("p", "There is no result: run the command again with --resume.")]
    figure: list[Chart] = []
    if run.result is not None:
        result, figure = [_rows(run.result)], [_curves(run.result)]
    settings = {key.replace("_", " "): str(arms[0][key]) for key in ("space", "evaluator", "table")}
    return Content(
        f"{arms[0]['space']}: {len(arms)} searches compared",
        run.remarks,
        [
            Section(FOUND, "Which is the best?", [*figure, *result], "Result"),
            Section(
                SEARCHED,
                "How was it compared?",
                [pairs("The comparison", {**settings, "seeds": str(run.request["seeds"])})],
                "Comparison",
            ),
            reproduction(run, pairs("Versions", versions(run))),
        ],
    )


def _rows(result: Any) -> Markup:
    """A row per arm, the best mean first."""
    has_threshold = result["threshold"] is not None
    header = ["arm", "seeds", "evaluations", "mean best, 95% interval"]
    header += ["reached the best 1%", "evaluations needed"] if has_threshold else []
    rows: list[list[Child | Cell]] = []
    for row in sorted(result["rows"], key=lambda row: -row["best"]):
        cells: list[Child | Cell] = [
            str(row["arm"]), number(row["seeds"]), number(row["evaluations"], 1),
            with_interval(row["best"], row["best_ci"]),
        ]  # fmt: skip
        if has_threshold:
            cells += [number(row["reached"]), with_interval(row["needed"], row["needed_ci"])]
        rows.append(cells)
    return table(f"Arms by their best {result['evaluator']['target']}", [header], rows, True)


def _curves(result: Any) -> Chart:
    return search_curves(result["curves"], str(result["evaluator"]["target"]), result["threshold"])
