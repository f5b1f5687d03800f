"""The section at the top of a live page: what the run is doing, and how far it is."""

from __future__ import annotations

import shlex
from functools import partial

from lpzero.dashboard.summary import RUNNING, Summary
from lpzero.report.figures import convergence
from lpzero.report.figures.drawn import Drawn
from lpzero.report.markup import Child, Markup, element
from lpzero.report.sections import Section
from lpzero.report.tables import pairs
from lpzero.runs.live_run import Now

NAME = "now"


def progress_section(line: Summary, now: Now, share: float, folder: str) -> Section:
    """State, facts, and the best so far if the run's own sections do not have it yet."""
    facts: dict[str, Child] = {"state": state(line.state), "kind": line.kind, "table": line.table}
    facts.update(now.facts)
    if share < 1:
        facts["journal"] = f"{share:.0%} read"
    parts: list[Markup | Drawn] = [pairs("Progress", facts)]
    parts += _figure(now)
    if line.state not in (RUNNING, "unreadable"):
        command = f"lpzero report {shlex.quote(folder)}"
        words = element("p", "The page as one file: ", element("code", command), class_="note")
        parts.append(words)
    return Section(NAME, "Where is it?", parts, "Progress")


def state(name: str) -> Markup:
    """A state in the colour of its class, and always in words."""
    return element("span", name, class_=f"state {name.split()[0]}")


def _figure(now: Now) -> list[Drawn]:
    if not now.history:
        return []
    data = convergence.convergence(
        {"this run": [now.history]}, counted=now.counted, measured=now.measured
    )
    last = now.history[-1]
    return [
        Drawn(
            "so-far",
            f"{now.measured.capitalize()} against {now.counted}.",
            f"Line chart; {last['fitness']:.6g} after {last['evaluated']:,.0f}.",
            convergence.spec(data),
            partial(convergence.draw, data),
        )
    ]
