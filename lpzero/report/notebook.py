"""Figures and the page from Python objects, for notebooks: no server, and no directory needed.

`source` is a finished `Campaign`, a run (`open_run`) or the directory of a run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lpzero.discover import report as campaign_report
from lpzero.discover.discovery import Campaign
from lpzero.discover.record import CampaignRun
from lpzero.errors import InputError
from lpzero.files import write_text
from lpzero.report.page import content_of, document
from lpzero.report.plotly_chart import coloured, spec
from lpzero.runs.config import StoredConfig, versions
from lpzero.runs.run import Run, open_run

if TYPE_CHECKING:
    import plotly.graph_objects

Source = Campaign | Run | Path | str


@dataclass(frozen=True, slots=True)
class Page:
    """A report page; a notebook shows it in a frame, `save` writes it to a file."""

    html: str

    def save(self, path: str | Path) -> Path:
        """Write the page and return its path."""
        write_text(Path(path), self.html)
        return Path(path)

    def __repr__(self) -> str:
        return f"Page({len(self.html):,} characters of HTML; save(path) writes it)"

    def _repr_html_(self) -> str:
        frame = 'width="100%" height="900" style="border: 0"'
        return f'<iframe {frame} title="report" srcdoc="{escape(self.html)}"></iframe>'


def figure_names(source: Source) -> list[str]:
    """The names of the figures that the source has the data for, in the order of the page."""
    return [chart.name for chart in content_of(run_of(source)).figures]


def plot(
    source: Source, name: str | None = None, palette: str = "light"
) -> plotly.graph_objects.Figure:
    """A figure of the page, the first one if no name is given, as a Plotly figure.

    A name may be the beginning of one: "scores" is the first figure `scores-TABLE`.
    """
    from plotly.graph_objects import Figure

    charts = list(content_of(run_of(source)).figures)
    chart = next((chart for chart in charts if chart.name.startswith(name or "")), None)
    if chart is None:
        names = ", ".join(chart.name for chart in charts) or "none yet"
        raise InputError(f"there is no figure {name!r}; there are: {names}")
    figure = coloured(spec(chart), palette)
    return Figure(data=figure["data"], layout={**figure["layout"], "title": {"text": ""}})


def page(source: Source) -> Page:
    """The page of a run of any kind."""
    return Page(document(content_of(run_of(source))))


def run_of(source: Source) -> Run:
    """The run that the source stands for; raise InputError if it has not been run."""
    if isinstance(source, Run):
        return source
    if isinstance(source, (str, Path)):
        return open_run(source)
    if not hasattr(source, "result_"):
        raise InputError("there is nothing to show yet: call run() first")
    return open_run(source.out) if source.out is not None else _in_memory(source)


def _in_memory(campaign: Campaign) -> CampaignRun:
    """The campaign as a run, without a directory."""
    outcome, config = campaign.outcome_, campaign.config
    request: dict[str, Any] = json.loads(json.dumps(config.request))
    names = [table.name for table in campaign.tables]
    tally = outcome.tally
    return CampaignRun(
        StoredConfig(Path("DIR"), config.kind, config.hash, versions(), request),
        campaign.result_,
        list(campaign.remarks_),
        [{key: str(t[key]) for key in ("name", "space", "target", "digest")}
         for t in request["tables"]],
        campaign_report.scores(campaign.tables, campaign.objective, campaign.result_),
        list(outcome.hall.rows(names)),
        list(tally.history),
        {"tried": tally.tried, "evaluated": tally.evaluated, "repeats": tally.repeats},
        dict(tally.rejected),
        [candidate.to_json(names) for candidate in outcome.hall.entries],
    )  # fmt: skip
