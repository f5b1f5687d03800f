"""Which figures a run has, each with a caption that says what it shows and what it does not."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from lpzero.judgement.measures import RHO, RHO_GIVEN_PARAMS, RHO_WITHIN
from lpzero.judgement.table import SPLIT_PARTS
from lpzero.report.figures import bars, convergence, heatmap, ranks, scatter, style, transfer
from lpzero.runs.formula_run import FormulaRun

_OBJECTIVES = {RHO: "ρ", RHO_GIVEN_PARAMS: "ρ given parameters", RHO_WITHIN: "ρ within groups"}


@dataclass(frozen=True, eq=False)
class Drawn:
    """A figure with the name of its files, what stands beneath it, and what it says in words."""

    name: str
    caption: str
    words: str
    figure: Figure

    @cached_property
    def svg(self) -> bytes:
        """The figure as SVG: it is on the page and beside it."""
        return style.encode(self.figure, "svg")


def figures(
    run: FormulaRun,
    beside: Sequence[FormulaRun] = (),
    ranking: Sequence[Mapping[str, Any]] | None = None,
    moved: transfer.Transfer | None = None,
) -> Iterator[Drawn]:
    """Every figure that the run has the data for."""
    yield from _scores(run)
    yield from _bars(run, ranking)
    if run.history:
        yield _convergence(run, beside)
    pairs = heatmap.best(run.pairs())
    if pairs.operations:
        yield _heatmap(run, pairs)
    if moved is not None:
        yield _transfer(moved, "The winner of each run on the test rows of every table.")
    elif run.result is not None and len(run.tables) > 1:
        yield _transfer(
            transfer.of_campaign(run.result["top"]),
            "Of the reported formulas the best on each table's training rows, tested on every"
            " table.",
        )


def _scores(run: FormulaRun) -> Iterator[Drawn]:
    if run.scores is None:
        return
    targets = {table["name"]: table["target"] for table in run.tables}
    for name, column in run.scores["tables"].items():
        target = str(targets.get(name, "target"))
        data = scatter.scores(str(run.scores["formula"]), name, target, column["score"],
                              column["target"], column["part"])  # fmt: skip
        rhos = ", ".join(f"{part} {data.rho(part):.3f}" for part in SPLIT_PARTS
                         if data.rho(part) is not None)  # fmt: skip
        yield Drawn(
            f"scores-{file_name(name)}",
            f"Score of the winner against the target on {name}, one point per architecture."
            " Only the test rows were unseen when the formula was chosen.",
            f"Scatter plot of score against {target}; rho: {rhos}.",
            scatter.draw(data),
        )
        yield Drawn(
            f"ranks-{file_name(name)}",
            f"The winner's ranking of {name} against the true one, each part ranked on its own;"
            " a perfect proxy stays on the line.",
            f"Scatter plot of rank by score against rank by target; rho: {rhos}.",
            ranks.draw(data),
        )


def _bars(run: FormulaRun, ranking: Sequence[Mapping[str, Any]] | None) -> Iterator[Drawn]:
    if ranking is not None:
        yield _bar("proxies", bars.bars(ranking, "all proxies, whole table"),
                   "Every proxy of the given ranking on the whole table.")  # fmt: skip
    if run.best is None:
        return
    for table in run.tables:
        name = table["name"]
        rows = [{"proxy": "the winner", **run.judged(name)["test"]}]
        rows += [{"proxy": line["proxy"], **line["judged"]["test"]}
                 for line in run.counters(name) if "judged" in line]  # fmt: skip
        yield _bar(f"counters-{file_name(name)}", bars.bars(rows, f"{name}, test rows"),
                   f"The winner beside the sizes alone on the test rows of {name}."
                   " A formula that is not clear of them only counts.")  # fmt: skip


def _bar(name: str, data: bars.Bars, caption: str) -> Drawn:
    words = "; ".join(f"{bar.proxy} {bar.rho:.3f}" for bar in data.bars[:12])
    return Drawn(name, caption, f"Bar chart of rho: {words}.", bars.draw(data))


def file_name(text: str) -> str:
    """A table's name as part of a file's name: names come from files and may hold a path."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", text)[:60]


def _convergence(run: FormulaRun, beside: Sequence[FormulaRun]) -> Drawn:
    runs = [run, *(other for other in beside if other.history)]
    first = str(run.settings["objectives"][0])
    data = convergence.convergence(
        arms([(_identity(entry), entry.history) for entry in runs]),
        _levels(run, first),
        measured=f"best fitness so far ({_OBJECTIVES.get(first, first)} on {run.fitness_rows})",
    )
    last = run.history[-1]
    return Drawn(
        "convergence",
        f"Best fitness so far, on {run.fitness_rows}, against formulas evaluated. This is what the"
        f" search maximises: in sample.{several(len(runs), 'campaigns')}",
        f"Line chart; best fitness {float(last['fitness']):.3f} after"
        f" {int(last['evaluated']):,} formulas.",
        convergence.draw(data),
    )


def several(n: int, what: str) -> str:
    """What a caption says of several runs in one figure."""
    return f" {n} {what}; those that differ in their seed alone are one line." if n > 1 else ""


def arms(
    runs: Sequence[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]],
) -> dict[str, list[Sequence[Mapping[str, Any]]]]:
    """Histories by what tells their runs apart: each comes with what it was, seed left out.

    A setting is named only where those named before it leave different runs together.
    """
    told: list[str] = []
    for key in dict.fromkeys(key for found, _ in runs for key in found):
        if len({_words(found, [*told, key]) for found, _ in runs}) > len(
            {_words(found, told) for found, _ in runs}
        ):
            told.append(key)
    arms: dict[str, list[Sequence[Mapping[str, Any]]]] = {}
    for found, history in runs:
        arms.setdefault(_words(found, told) or "this run", []).append(history)
    return arms


def _words(settings: Mapping[str, Any], keys: Sequence[str]) -> str:
    return ", ".join(f"{key} {settings[key]}" for key in keys if key in settings)


def _identity(run: FormulaRun) -> dict[str, Any]:
    left_out = ("seed", "generations")
    settings = {k: v for k, v in run.settings.items() if k not in left_out}
    return {"tables": "+".join(str(table["name"]) for table in run.tables), **settings}


def _levels(run: FormulaRun, objective: str) -> dict[str, float]:
    """What the best counter reaches on the training rows, where that is what is maximised."""
    if run.result is None or objective != RHO or run.fitness_rows != "train":
        return {}
    lowest: dict[str, float] = {}
    for line in run.result["counters"]:
        value = abs(line["rho"]["train"])
        lowest[line["proxy"]] = min(value, lowest.get(line["proxy"], value))
    name = max(lowest, key=lambda key: lowest[key])
    return {f"{name} alone": lowest[name]}


def _heatmap(run: FormulaRun, found: heatmap.Best) -> Drawn:
    planes = zip(found.operations, found.rho, strict=True)
    best = [f"{operation} {np.nanmax(plane):.3f}" for operation, plane in planes]
    lowest = ", lowest over the tables" if len(run.tables) > 1 else ""
    return Drawn(
        "pairs",
        "The best |ρ| that was found with each pair of statistics under each operation, on"
        f" {run.fitness_rows}{lowest}: in sample, and of what the search happened to try."
        " One-sided formulas are on the diagonal.",
        f"Heat maps; best per operation: {', '.join(best)}.",
        heatmap.draw(found),
    )


def _transfer(data: transfer.Transfer, caption: str) -> Drawn:
    pairs = zip(data.tables, data.formulas, strict=True)
    lines = "; ".join(f"{table}: {formula}" for table, formula in pairs)
    values = "; ".join(
        f"best of {one} on {other} {data.rho[i, j]:.3f}"
        for i, one in enumerate(data.tables)
        for j, other in enumerate(data.tables)
    )
    return Drawn("transfer", f"{caption} {lines}.", f"Matrix of rho: {values}.",
                 transfer.draw(data))  # fmt: skip
