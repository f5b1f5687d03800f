"""A budget of trainings: the cost and the target of what was trained, and the front of both."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lpzero.report.chart import Axis, Chart, Line, Panel, Points

# Why an architecture was trained, as the trace says it.
REASONS = {
    "prior": "the best by counting",
    "spread": "spread over the space",
    "improvement": "the largest expected improvement",
}


def chart(trace: Sequence[Mapping[str, Any]], cost: str, target: str) -> Chart | None:
    """A dot for each training that has a target; None if there are none."""
    known = [entry for entry in trace if entry["target"] is not None]
    if not known:
        return None
    edge = front(known, cost)
    n_failed = len(trace) - len(known)
    without = f" {n_failed} failed trainings are not drawn." if n_failed else ""
    shown = ", ".join(f"{entry['target']:.6g} at {entry[cost]:,.6g}" for entry in edge)
    return Chart(
        name="trained",
        caption=f"What was trained: {cost} against {target}, and the front, which no cheaper"
        f" training reaches.{without}",
        words=f"Chart of {len(known)} trainings; the front: {shown}.",
        panels=[
            Panel(
                series=[
                    *(
                        _points([e for e in known if e["why"] == why], cost, name, colour)
                        for colour, (why, name) in enumerate(REASONS.items())
                        if any(entry["why"] == why for entry in known)
                    ),
                    Line(
                        x=[entry[cost] for entry in edge],
                        y=[entry["target"] for entry in edge],
                        name="front",
                        colour=len(REASONS),
                        is_stepped=True,
                        hover=None,
                    ),
                ],
                x=Axis(title=cost, is_logarithmic=True),
                y=Axis(title=target),
            )
        ],
    )


def front(known: Sequence[Mapping[str, Any]], cost: str) -> list[Mapping[str, Any]]:
    """The trainings that no cheaper one reaches, the cheapest first."""
    edge: list[Mapping[str, Any]] = []
    for entry in sorted(known, key=lambda entry: (entry[cost], -entry["target"])):
        if not edge or entry["target"] > edge[-1]["target"]:
            edge.append(entry)
    return edge


def _points(entries: Sequence[Mapping[str, Any]], cost: str, name: str, colour: int) -> Points:
    return Points(
        x=[entry[cost] for entry in entries],
        y=[entry["target"] for entry in entries],
        hover=[f"training {e['evaluations']}\n{json.dumps(e['arch'])}" for e in entries],
        name=name,
        colour=colour,
    )
