"""The winner among its rivals on test rows: a dot with its interval each.

The colour of a rival says what the paired difference says, not whether two intervals overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lpzero.judgement import counters
from lpzero.judgement.bootstrap import Outcome
from lpzero.report.chart import Axis, Chart, Level, Panel, Points
from lpzero.report.figures import FOUND, FigureKind, Material, file_name
from lpzero.runs.formula_run import FormulaRun

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
    """A proxy's rho on test rows; `difference` is the winner's less its own, if it was measured."""

    proxy: str
    kind: str
    rho: float
    rho_ci: tuple[float, float]
    difference: Mapping[str, Any] | None = None
    formula: str | None = None

    @property
    def outcome(self) -> str | None:
        """What the paired difference says; None without one."""
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
        return sorted((self.winner, *self.others), key=lambda rival: (-rival.rho, rival.proxy))


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
    rivals = [_rival(line) for line in column.get("rivals", ())] or list(_counted(run, table))
    taken = {run.best["formula"], *(rival.proxy for rival in rivals)}
    for line in ranked or ():
        if line["proxy"] not in taken and "test" in line:
            rivals.append(_rival({"kind": "zoo", **line, **line["test"]}))
    rivals.sort(key=lambda rival: (-rival.rho, rival.proxy))
    return Rivals(table, int(test["n"]), winner, tuple(rivals))


def chart(data: Rivals) -> Chart:
    """A row per proxy, the best on top; hovering over a rival shows the paired difference."""
    rows = data.rows
    groups: dict[tuple[str, int], list[Rival]] = {(WINNER, 0): [data.winner]}
    for rival in data.others:
        groups.setdefault(_SAID[rival.outcome], []).append(rival)
    values = "; ".join(f"{rival.proxy} {rival.rho:.3f}" for rival in rows[:12])
    return Chart(
        name=f"rivals-{file_name(data.table)}",
        caption=f"The winner among its rivals on the test rows of {data.table}. Colours show the"
        " paired difference: both are ranked in the same resamples, so overlapping intervals do not"
        " mean that the difference is unsettled.",
        words=f"Chart of rho: {values}.",
        panels=[
            Panel(
                series=[
                    Points(
                        x=[rival.rho for rival in rivals],
                        y=[rows.index(rival) for rival in rivals],
                        hover=[_hover(rival) for rival in rivals],
                        name=name,
                        colour=colour,
                        is_large=name == WINNER,
                        intervals=[rival.rho_ci for rival in rivals],
                    )
                    for (name, colour), rivals in groups.items()
                ],
                x=Axis(title=f"ρ on the {data.n} test rows, 95% interval"),
                y=Axis(names=[rival.proxy for rival in rows]),
                levels=[Level(data.winner.rho, is_vertical=True)],
            )
        ],
    )


def _hover(rival: Rival) -> str:
    lines = [f"{rival.proxy} ({rival.kind})"]
    lines += [rival.formula] if rival.formula else []
    lines.append("ρ {:.3f} [{:.3f}, {:.3f}]".format(rival.rho, *rival.rho_ci))
    if rival.difference is not None:
        low, high = rival.difference["rho_ci"]
        lines.append(
            f"winner − this: {rival.difference['rho']:.3f} [{low:.3f}, {high:.3f}], {rival.outcome}"
        )
    return "\n".join(lines)


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
    differences = {line["against"]: line for line in lines if line["table"] == table}
    rivals = [(str(line["proxy"]), "counter", line.get("judged")) for line in run.counters(table)]
    if run.count is not None:
        judged = run.count["judged"].get(table)
        rivals.insert(0, (counters.BEST_COUNT, counters.BEST_COUNT, judged))
    for name, kind, judged in rivals:
        if judged:
            test = judged["test"]
            yield Rival(
                name, kind, float(test["rho"]), _pair(test["rho_ci"]), differences.get(name)
            )


def _pair(interval: Sequence[float]) -> tuple[float, float]:
    low, high = interval
    return float(low), float(high)


def _charts(material: Material) -> Iterator[Chart]:
    for entry in material.run.tables:
        data = of_run(material.run, str(entry["name"]), material.ranking)
        if data is not None:
            yield chart(data)


FIGURE = FigureKind(5, FOUND, _charts)
