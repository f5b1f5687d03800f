"""The best so far against what was evaluated (Figures 6, 7 and 13 of LPZero)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.judgement.measures import RHO, RHO_GIVEN_PARAMS, RHO_WITHIN
from lpzero.report.chart import Axis, Chart, Level, Line, Panel
from lpzero.report.figures import SEARCHED, FigureKind, Material
from lpzero.runs.formula_run import FormulaRun

_OBJECTIVES = {RHO: "ρ", RHO_GIVEN_PARAMS: "ρ given parameters", RHO_WITHIN: "ρ within groups"}
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
        mean: FloatArray = self.fitness.mean(axis=0)
        return mean

    @property
    def interval(self) -> tuple[FloatArray, FloatArray] | None:
        """The middle 95% of the runs (G,), (G,); None for a single run."""
        if len(self.fitness) < 2:
            return None
        low, high = np.quantile(self.fitness, [0.025, 0.975], axis=0)
        return low, high


@dataclass(frozen=True, eq=False)
class Convergence:
    """Arms on one grid of evaluations (G,), with levels to compare them with, by name."""

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
    runs = {name: [_read(rows) for rows in of_arm] for name, of_arm in histories.items()}
    steps = [run[0] for of_arm in runs.values() for run in of_arm]
    if not steps or any(len(step) == 0 for step in steps):
        raise InputError("a convergence figure needs a history with at least one generation")
    if evaluated is None:
        first, last = min(s[0] for s in steps), max(s[-1] for s in steps)
        evaluated = np.unique(np.linspace(first, last, _POINTS).round())
    arms_ = [
        Arm(name, np.array([_at(run, evaluated) for run in of_arm]))
        for name, of_arm in runs.items()
    ]
    return Convergence(evaluated, tuple(arms_), dict(levels or {}), counted, measured)


def chart(data: Convergence, name: str, caption: str, words: str) -> Chart:
    """A line per arm, the middle 95% of its runs shaded."""
    has_several_runs = any(len(arm.fitness) > 1 for arm in data.arms)
    return Chart(
        name=name,
        caption=caption,
        words=words,
        panels=[panel(data)],
        title="mean and middle 95% of the runs" if has_several_runs else "",
    )


def panel(data: Convergence, title: str = "") -> Panel:
    """The arms in one pair of axes."""
    is_single = len(data.arms) == 1 and len(data.arms[0].fitness) == 1
    lines = []
    for place, arm in enumerate(data.arms):
        n = len(arm.fitness)
        label = arm.name if n == 1 else f"{arm.name} ({n} runs)"
        lines.append(
            Line(
                x=data.evaluated,
                y=arm.mean,
                name="" if is_single else label,
                colour=place,
                is_stepped=True,
                band=arm.interval,
            )
        )
    return Panel(
        series=lines,
        x=Axis(title=data.counted),
        y=Axis(title=data.measured),
        title=title,
        levels=[Level(value, f"{name}: {value:.3f}") for name, value in data.levels.items()],
    )


def search_curves(rows: Sequence[Mapping[str, Any]], target: str, threshold: float | None) -> Chart:
    """The best so far of each arm of a comparison of searches, with its interval over seeds."""
    lines = []
    for place, arm in enumerate(dict.fromkeys(str(row["arm"]) for row in rows)):
        x, mean, low, high = (
            [row[key] for row in rows if row["arm"] == arm]
            for key in ("evaluations", "mean", "low", "high")
        )
        lines.append(Line(x=x, y=mean, hover=arm, name=arm, colour=place, band=(low, high)))
    last = {row["arm"]: row["mean"] for row in rows}
    ends = "; ".join(f"{arm} {mean:.6g}" for arm, mean in last.items())
    return Chart(
        name="curves",
        caption="The best so far against evaluations: the mean over seeds and its 95% interval.",
        words=f"Line chart; at the end: {ends}.",
        panels=[
            Panel(
                series=lines,
                x=Axis(title="evaluations"),
                y=Axis(title=f"best {target}"),
                levels=[] if threshold is None else [Level(threshold, "start of the best 1%")],
            )
        ],
        title="mean over seeds and its 95% interval",
    )


def _read(rows: Sequence[Mapping[str, Any]]) -> tuple[FloatArray, FloatArray]:
    try:
        pairs = [(float(row["evaluated"]), float(row["fitness"])) for row in rows]
    except (KeyError, TypeError, ValueError):
        raise InputError("a history needs numbers under 'evaluated' and 'fitness'") from None
    numbers = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    return numbers[:, 0], numbers[:, 1]


def _at(run: tuple[FloatArray, FloatArray], evaluated: FloatArray) -> FloatArray:
    """The best so far after each number of evaluations: a generation counts once it is over.

    NaN before the first is over, and beyond the end of the run, where the value is unknown.
    """
    place = np.searchsorted(run[0], evaluated, side="right") - 1
    has_value = (place >= 0) & (evaluated <= run[0][-1])
    return np.where(has_value, run[1][np.maximum(place, 0)], np.nan)


def _charts(material: Material) -> Iterator[Chart]:
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
    yield chart(
        data,
        "convergence",
        f"Best fitness so far, on {measured_on}, against formulas evaluated. This is what the"
        f" search maximises: in sample.{several(len(runs), 'campaigns')}",
        f"Line chart; best fitness {float(last['fitness']):.3f} after"
        f" {int(last['evaluated']):,} formulas.",
    )


FIGURE = FigureKind(40, SEARCHED, _charts)


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
    for key in dict.fromkeys(key for settings, _ in runs for key in settings):
        if len({_words(settings, [*named, key]) for settings, _ in runs}) > len(
            {_words(settings, named) for settings, _ in runs}
        ):
            named.append(key)
    groups: dict[str, list[Sequence[Mapping[str, Any]]]] = {}
    for settings, history in runs:
        groups.setdefault(_words(settings, named) or "this run", []).append(history)
    return groups


def _words(settings: Mapping[str, Any], keys: Sequence[str]) -> str:
    return ", ".join(f"{key} {settings[key]}" for key in keys if key in settings)


def _identity(run: FormulaRun) -> dict[str, Any]:
    left_out = ("seed", "generations")
    settings = {k: v for k, v in run.settings.items() if k not in left_out}
    return {"tables": "+".join(str(table["name"]) for table in run.tables), **settings}


def _levels(
    run: FormulaRun, others: Sequence[FormulaRun], objective: str, measured_on: str
) -> dict[str, float]:
    """Rhos on the training rows, if that is the fitness: of counting, of every formula."""
    if objective != RHO or measured_on != "train":
        return {}
    levels = {
        f"the best of all {other.counts['evaluated']:,}": float(other.best["rho"]["train"])
        for other in others
        if not other.history and other.best is not None and _same_rows(run, other)
    }
    return levels | _counted(run)


def _same_rows(run: FormulaRun, other: FormulaRun) -> bool:
    """Whether both were fitted to the same rows of the same tables."""
    digests = [[table["digest"] for table in entry.tables] for entry in (run, other)]
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
