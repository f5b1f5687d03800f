"""The best so far against what was evaluated (Figures 6, 7 and 13 of LPZero)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.judgement.measures import RHO, RHO_GIVEN_PARAMS, RHO_WITHIN
from lpzero.report.figures import plotly_spec as plotly
from lpzero.report.figures import style
from lpzero.report.figures.drawn import SEARCHED, Drawn, FigureKind, Material
from lpzero.runs.formula_run import FormulaRun

_OBJECTIVES = {RHO: "ρ", RHO_GIVEN_PARAMS: "ρ given parameters", RHO_WITHIN: "ρ within groups"}
_LEGEND = 44  # letters in a line of the legend
_POINTS = 400  # of a curve; more cannot be seen


@dataclass(frozen=True, eq=False)
class Arm:
    """Runs of one configuration that differ in their seed: fitness (runs, G), NaN where a run has
    not yet finished its first generation or has ended."""

    name: str
    fitness: FloatArray

    @property
    def mean(self) -> FloatArray:
        """Over the runs (G,); NaN where not all of them have a value."""
        found: FloatArray = self.fitness.mean(axis=0)
        return found

    @property
    def interval(self) -> tuple[FloatArray, FloatArray] | None:
        """The middle 95% of the runs (G,), (G,); None for a single run."""
        if len(self.fitness) < 2:
            return None
        low, high = np.quantile(self.fitness, [0.025, 0.975], axis=0)
        return low, high


@dataclass(frozen=True, eq=False)
class Convergence:
    """Arms on one grid of evaluations (G,), with known levels to compare them with, by name."""

    evaluated: FloatArray
    arms: tuple[Arm, ...]
    levels: Mapping[str, float]
    counted: str
    measured: str


def convergence(
    histories: Mapping[str, Sequence[Sequence[Mapping[str, Any]]]],
    levels: Mapping[str, float] | None = None,
    evaluated: FloatArray | None = None,
    counted: str = "formulas evaluated",
    measured: str = "best fitness so far (ρ on train)",
) -> Convergence:
    """The data of the figure, from the histories of each arm's runs.

    A history is the rows of a campaign's history.csv, of which `evaluated` and `fitness` are read.
    """
    runs = {name: [_read(rows) for rows in found] for name, found in histories.items()}
    steps = [run[0] for found in runs.values() for run in found]
    if not steps or any(len(step) == 0 for step in steps):
        raise InputError("a convergence figure needs a history with at least one generation")
    if evaluated is None:
        first, last = min(s[0] for s in steps), max(s[-1] for s in steps)
        evaluated = np.unique(np.linspace(first, last, _POINTS).round())
    lines = [
        Arm(name, np.array([_at(run, evaluated) for run in found])) for name, found in runs.items()
    ]
    return Convergence(evaluated, tuple(lines), dict(levels or {}), counted, measured)


def draw(data: Convergence, axes: Any = None) -> Figure:
    """A line per arm, the middle 95% of its runs shaded; in `axes` if they are given."""
    with style.look():
        figure = style.new() if axes is None else axes.figure
        axes = figure.subplots() if axes is None else axes
        for index, arm in enumerate(data.arms):
            n = len(arm.fitness)
            label = arm.name if n == 1 else f"{arm.name} ({n} runs)"
            label = "\n".join(wrap(style.short(label, 3 * _LEGEND), _LEGEND))
            colour = style.COLOURS[index % len(style.COLOURS)]
            dashes = style.DASHES[index % len(style.DASHES)]
            axes.plot(
                data.evaluated,
                arm.mean,
                color=colour,
                linestyle=dashes,
                label=label,
                drawstyle="steps-post",
            )
            if arm.interval is not None:
                axes.fill_between(
                    data.evaluated, *arm.interval, color=colour, alpha=0.2, linewidth=0, step="post"
                )
        for name, value in data.levels.items():
            axes.axhline(value, color=style.GREY, linewidth=0.8, linestyle=(0, (2, 2)))
            axes.annotate(
                f"{name}: {value:.3f}",
                (1.0, value),
                (0, 2),
                color=style.GREY,
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                ha="right",
                va="bottom",
                fontsize=8,
            )
        axes.set_xlabel(data.counted)
        axes.set_ylabel(style.short(data.measured, 60))
        if len(data.arms) > 1 or len(data.arms[0].fitness) > 1:
            many = any(len(arm.fitness) > 1 for arm in data.arms)
            title = "mean and middle 95% of the runs" if many else None
            axes.legend(loc="lower right", fontsize=8, title=title, title_fontsize=8)
    return figure


def spec(data: Convergence) -> plotly.Spec:
    """The same for a browser."""
    traces: list[dict[str, Any]] = []
    for index, arm in enumerate(data.arms):
        n, colour = len(arm.fitness), plotly.colour(index)
        name = plotly.text(arm.name if n == 1 else f"{arm.name} ({n} runs)", 60)
        if arm.interval is not None:
            band: dict[str, Any] = {
                "type": "scatter", "mode": "lines", "x": data.evaluated, "hoverinfo": "skip",
                "line": {"width": 0.5, "color": colour, "shape": "hv"}, "showlegend": False,
            }  # fmt: skip
            low, high = arm.interval
            traces += [{**band, "y": low}, {**band, "y": high, "fill": "tonexty"}]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "x": data.evaluated,
                "y": arm.mean,
                "line": {
                    "color": colour,
                    "width": 2.5,
                    "shape": "hv",
                    "dash": plotly.DASHES[index % len(plotly.DASHES)],
                },
                "hovertemplate": "%{y:.6~g} after %{x:,}<extra></extra>",
            }
        )
    levels = data.levels.items()
    return plotly.spec(
        traces,
        height=360,
        showlegend=len(data.arms) > 1 or len(data.arms[0].fitness) > 1,
        shapes=[plotly.horizontal(value) for _, value in levels],
        annotations=[
            plotly.note(f"{plotly.text(name, 40)}: {value:.3f}", 1.0, value, "right")
            for name, value in levels
        ],
        xaxis=plotly.axis(data.counted),
        yaxis=plotly.axis(plotly.text(data.measured, 60)),
    )


def _read(rows: Sequence[Mapping[str, Any]]) -> tuple[FloatArray, FloatArray]:
    try:
        pairs = [(float(row["evaluated"]), float(row["fitness"])) for row in rows]
    except (KeyError, TypeError, ValueError):
        raise InputError("a history needs numbers under 'evaluated' and 'fitness'") from None
    found = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def _at(run: tuple[FloatArray, FloatArray], evaluated: FloatArray) -> FloatArray:
    """The best so far after each number of evaluations: a generation counts once it is over.

    NaN before the first is over, and beyond the end of the run, where the value is unknown.
    """
    place = np.searchsorted(run[0], evaluated, side="right") - 1
    is_known = (place >= 0) & (evaluated <= run[0][-1])
    return np.where(is_known, run[1][np.maximum(place, 0)], np.nan)


def _figures(material: Material) -> Iterator[Drawn]:
    run = material.run
    if not run.history:
        return
    others = [other for other in material.beside if isinstance(other, FormulaRun)]
    runs = [run, *(other for other in others if other.history)]
    measured_on = run.fitness_rows
    first = str(run.settings["objectives"][0])
    data = convergence(
        arms([(_identity(entry), entry.history) for entry in runs]),
        _levels(run, others, first, measured_on),
        measured=f"best fitness so far ({_OBJECTIVES.get(first, first)} on {measured_on})",
    )
    last = run.history[-1]
    yield Drawn(
        "convergence",
        f"Best fitness so far, on {measured_on}, against formulas evaluated. This is what the"
        f" search maximises: in sample.{several(len(runs), 'campaigns')}",
        f"Line chart; best fitness {float(last['fitness']):.3f} after"
        f" {int(last['evaluated']):,} formulas.",
        spec(data),
        partial(draw, data),
    )


FIGURE = FigureKind(40, SEARCHED, _figures)


def several(n: int, what: str) -> str:
    """The part of a caption on several runs in one figure."""
    return f" {n} {what}; those that differ in their seed alone are one line." if n > 1 else ""


def arms(
    runs: Sequence[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]],
) -> dict[str, list[Sequence[Mapping[str, Any]]]]:
    """Histories grouped by their runs' settings without the seed, each group under a name.

    A name contains a setting only if it separates runs that the settings before it do not.
    """
    named: list[str] = []
    for key in dict.fromkeys(key for found, _ in runs for key in found):
        if len({_words(found, [*named, key]) for found, _ in runs}) > len(
            {_words(found, named) for found, _ in runs}
        ):
            named.append(key)
    found_arms: dict[str, list[Sequence[Mapping[str, Any]]]] = {}
    for found, history in runs:
        found_arms.setdefault(_words(found, named) or "this run", []).append(history)
    return found_arms


def _words(settings: Mapping[str, Any], keys: Sequence[str]) -> str:
    return ", ".join(f"{key} {settings[key]}" for key in keys if key in settings)


def _identity(run: FormulaRun) -> dict[str, Any]:
    left_out = ("seed", "generations")
    settings = {k: v for k, v in run.settings.items() if k not in left_out}
    return {"tables": "+".join(str(table["name"]) for table in run.tables), **settings}


def _levels(
    run: FormulaRun, others: Sequence[FormulaRun], objective: str, measured_on: str
) -> dict[str, float]:
    """Known rhos on the training rows, if that is the fitness: of counting, of every formula."""
    if objective != RHO or measured_on != "train":
        return {}
    levels = {
        f"the best of all {found.counts['evaluated']:,}": float(found.best["rho"]["train"])
        for found in others
        if not found.history and found.best is not None and _same_rows(run, found)
    }
    return levels | _counted(run)


def _same_rows(run: FormulaRun, other: FormulaRun) -> bool:
    """Whether both were fitted to the same rows of the same tables."""
    digests = [[table["digest"] for table in found.tables] for found in (run, other)]
    return digests[0] == digests[1] and run.request["split_seed"] == other.request["split_seed"]


def _counted(run: FormulaRun) -> dict[str, float]:
    """Rho of the best counter."""
    if run.result is None or not run.result["counters"]:
        return {}
    lowest: dict[str, float] = {}
    for line in run.result["counters"]:
        value = abs(line["rho"]["train"])
        lowest[line["proxy"]] = min(value, lowest.get(line["proxy"], value))
    name = max(lowest, key=lambda key: lowest[key])
    return {f"{name} alone": lowest[name]}
