"""The page of a comparison of searches: which loop and proxy finds good architectures soonest."""

from __future__ import annotations

from typing import Any

from lpzero.report.chart import Chart
from lpzero.report.figures import FOUND, SEARCHED
from lpzero.report.figures.convergence import search_curves
from lpzero.report.markup import Cell, Child, Markup, element, number, pairs, table, with_interval
from lpzero.report.provenance import reproduce, versions
from lpzero.report.sections import Content, Section
from lpzero.search.comparison import ComparisonRun


def content(run: ComparisonRun) -> Content:
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
            Section(
                "reproduce",
                "Reproduce",
                [reproduce(run), pairs("Versions", versions(run))],
            ),
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
