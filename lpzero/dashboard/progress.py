"""The section at the top of a live page: what the run is doing, and how far it is."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

from lpzero.dashboard.summary import RUNNING, UNREADABLE, Summary
from lpzero.report.chart import Chart
from lpzero.report.figures import convergence
from lpzero.report.markup import Child, Markup, element
from lpzero.report.sections import Section
from lpzero.runs.live_run import Now

# What one wants to see first of a run without a result; they stand below the facts then.
_WATCHED_FIGURES = ("convergence", "front")


def with_progress(
    line: Summary, now: Now, share: float, folder: str, sections: Sequence[Section] = ()
) -> list[Section]:
    """The sections of a run's page after one on its progress.

    While there is no result, the figures that change stand in that first section.
    """
    facts: dict[str, Child] = {"state": state(line.state), **now.facts}
    if share < 1:
        facts["journal"] = f"{share:.0%} read"
    parts: list[Markup | Chart | None] = [_tiles(facts), *_figure(now)]
    kept = list(sections)
    if line.state == "finished":
        command = element("code", f"lpzero report {shlex.quote(folder)}")
        parts.append(element("p", "This page as one file: ", command, class_="note"))
    elif line.state != UNREADABLE:
        parts += [part for section in sections for part in section.parts if _is_watched(part)]
        kept = [
            replace(section, parts=[part for part in section.parts if not _is_watched(part)])
            for section in sections
        ]
    title = "What is it doing?" if line.state == RUNNING else "How far is it?"
    return [Section("progress", title, parts, "Progress"), *kept]


def state(name: str) -> Markup:
    """A state in the colour of its class, and always in words."""
    return element("span", name, class_=f"state {name.split()[0]}")


def _tiles(facts: dict[str, Child]) -> Markup:
    tiles = [
        element("div", element("dt", name), element("dd", value)) for name, value in facts.items()
    ]
    return element("dl", *tiles, class_="tiles")


def _is_watched(part: Markup | Chart | None) -> bool:
    return isinstance(part, Chart) and part.name.startswith(_WATCHED_FIGURES)


def _figure(now: Now) -> list[Chart]:
    if not now.history:
        return []
    data = convergence.convergence(
        {"this run": [now.history]}, counted=now.counted, measured=now.measured
    )
    last = now.history[-1]
    return [
        convergence.chart(
            data,
            "so-far",
            f"{now.measured.capitalize()} against {now.counted}.",
            f"Line chart; {last['fitness']:.6g} after {last['evaluated']:,.0f}.",
        )
    ]
