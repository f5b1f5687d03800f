"""The winner among its rivals on test rows: a dot with its interval each.

The colour of a rival says what the paired difference says, not whether two intervals overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from matplotlib.figure import Figure

from lpzero.judgement import counters
from lpzero.judgement.differences import Outcome
from lpzero.report.figures import plotly_spec as plotly
from lpzero.report.figures import style
from lpzero.report.figures.drawn import FOUND, Drawn, FigureKind, Material, file_name
from lpzero.runs.formula_run import FormulaRun

_ROW = 0.22  # inches
WINNER = "the winner"
# What the difference of the winner and a rival says, with the place of its colour and marker.
_SAID: Mapping[str | None, tuple[str, int]] = {
    Outcome.AHEAD.value: ("the winner is ahead", 2),
    Outcome.NOT_SETTLED.value: ("not settled", 4),
    Outcome.NOT_AHEAD.value: ("the winner is not ahead", 1),
    None: ("not compared row by row", 6),
}


@dataclass(frozen=True, slots=True)
class Rival:
    """A proxy's rho on test rows; `difference` is the winner's less its own, if it is known."""

    proxy: str
    kind: str
    rho: float
    rho_ci: tuple[float, float]
    difference: Mapping[str, Any] | None = None
    formula: str | None = None

    @property
    def outcome(self) -> str | None:
        """What the paired difference says; None if it is not known."""
        return None if self.difference is None else str(self.difference["outcome"])


@dataclass(frozen=True, slots=True)
class Rivals:
    """The winner and its rivals, best first."""

    table: str
    n: int
    winner: Rival
    others: tuple[Rival, ...]

    @property
    def rows(self) -> list[Rival]:
        """All of them, best first."""
        return sorted((self.winner, *self.others), key=lambda one: (-one.rho, one.proxy))


def of_run(
    run: FormulaRun, table: str, ranked: Sequence[Mapping[str, Any]] | None = None
) -> Rivals | None:
    """The rivals of a run's winner on a table; None without a winner.

    A run whose scores.json has no rivals shows its counters. `ranked` are lines of a ranking.
    """
    if run.best is None:
        return None
    test = run.judged(table)["test"]
    winner = Rival(WINNER, "winner", float(test["rho"]), _pair(test["rho_ci"]))
    column = {} if run.scores is None else run.scores["tables"].get(table, {})
    found = [_rival(line) for line in column.get("rivals", ())] or list(_counted(run, table))
    known = {rival.proxy for rival in found}
    for line in ranked or ():
        if line["proxy"] not in known and line["proxy"] != run.best["formula"] and "test" in line:
            found.append(_rival({"kind": "zoo", **line, **line["test"]}))
    found.sort(key=lambda one: (-one.rho, one.proxy))
    return Rivals(table, int(test["n"]), winner, tuple(found))


def draw(data: Rivals) -> Figure:
    """A row per proxy, the best on top."""
    with style.look():
        rows = data.rows
        figure = style.new(6.2, 1.2 + _ROW * len(rows))
        axes = figure.subplots()
        labelled: set[int] = set()
        for place, one in enumerate(rows):
            said, index = ("the winner", 0) if one is data.winner else _SAID[one.outcome]
            colour = style.COLOURS[index]
            axes.plot(one.rho_ci, [place, place], color=colour, linewidth=1.2)
            axes.plot(
                [one.rho],
                [place],
                linestyle="none",
                marker=style.MARKERS[index],
                color=colour,
                markersize=6 if one is data.winner else 4.5,
                label=said if index not in labelled else None,
            )
            labelled.add(index)
        axes.axvline(data.winner.rho, color=style.GREY, linewidth=0.8, linestyle="--", zorder=0)
        axes.set_yticks(range(len(rows)), [style.short(one.proxy, 40) for one in rows], fontsize=8)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlabel(f"Spearman's ρ on the {data.n} test rows, 95% interval")
        figure.legend(loc="outside upper left", ncols=2, fontsize=8)
    return figure


def spec(data: Rivals) -> plotly.Spec:
    """The same for a browser; pointing at a rival tells the paired difference."""
    rows = data.rows
    groups: dict[tuple[str, int], list[Rival]] = {("the winner", 0): [data.winner]}
    for one in data.others:
        groups.setdefault(_SAID[one.outcome], []).append(one)
    names = [plotly.text(one.proxy, 26) for one in rows]
    return plotly.spec(
        [_dots(name, index, found) for (name, index), found in groups.items()],
        height=120 + 21 * len(rows),
        showlegend=True,
        shapes=[plotly.vertical(data.winner.rho)],
        xaxis=plotly.axis(f"ρ on the {data.n} test rows, 95% interval"),
        yaxis=plotly.rows_axis(names),
    )


def _dots(name: str, index: int, found: Sequence[Rival]) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [one.rho for one in found],
        "y": [plotly.text(one.proxy, 26) for one in found],
        "error_x": plotly.intervals([(one.rho_ci[0], one.rho, one.rho_ci[1]) for one in found]),
        "marker": {
            "color": plotly.colour(index),
            "symbol": plotly.SYMBOLS[index],
            "size": 13 if index == 0 else 9,
        },
        "customdata": [_said(one) for one in found],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _said(one: Rival) -> str:
    low, high = one.rho_ci
    lines = [plotly.text(f"{one.proxy} ({one.kind})"), f"ρ {one.rho:.3f} [{low:.3f}, {high:.3f}]"]
    if one.formula:
        lines.insert(1, plotly.lines(one.formula, 56))
    if one.difference is not None:
        low, high = one.difference["rho_ci"]
        lines.append(
            f"winner − this: {one.difference['rho']:.3f} [{low:.3f}, {high:.3f}],"
            f" {plotly.text(one.outcome)}"
        )
    return "<br>".join(lines)


def _rival(line: Mapping[str, Any]) -> Rival:
    return Rival(
        str(line["proxy"]),
        str(line.get("kind", "")),
        float(line["rho"]),
        _pair(line["rho_ci"]),
        line.get("difference"),
        line.get("formula"),
    )


def _counted(run: FormulaRun, table: str) -> Iterator[Rival]:
    """The best count and the counters of the result, which has differences for some of them."""
    lines = {} if run.result is None else run.result.get("differences", ())
    known = {line["against"]: line for line in lines if line["table"] == table}
    rivals = [(str(line["proxy"]), "counter", line.get("judged")) for line in run.counters(table)]
    if run.count is not None:
        judged = run.count["judged"].get(table)
        rivals.insert(0, (counters.BEST_COUNT, counters.BEST_COUNT, judged))
    for name, kind, judged in rivals:
        if judged:
            test = judged["test"]
            yield Rival(name, kind, float(test["rho"]), _pair(test["rho_ci"]), known.get(name))


def _pair(interval: Sequence[float]) -> tuple[float, float]:
    low, high = interval
    return float(low), float(high)


def _figures(material: Material) -> Iterator[Drawn]:
    for entry in material.run.tables:
        data = of_run(material.run, str(entry["name"]), material.ranking)
        if data is None:
            continue
        words = "; ".join(f"{one.proxy} {one.rho:.3f}" for one in data.rows[:12])
        yield Drawn(
            f"rivals-{file_name(data.table)}",
            f"The winner among its rivals on the test rows of {data.table}. Colours tell the paired"
            " difference: both are ranked in the same resamples, so overlapping intervals do not"
            " mean that nothing is known.",
            f"Chart of rho: {words}.",
            spec(data),
            partial(draw, data),
        )


FIGURE = FigureKind(5, FOUND, _figures)
