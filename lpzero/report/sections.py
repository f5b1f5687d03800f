"""The parts of a page: a figure, a section of markup and figures, the content of a page.

The same content becomes a page that needs no network (`page.document`) or a live one
(`Content.to_json`, which holds what a script needs to show a newer state of the same page).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lpzero.report import plotly_chart
from lpzero.report.chart import Chart
from lpzero.report.markup import Markup, element, joined

Pictures = Mapping[str, bytes]  # figures as SVG by name; a live page has none


@dataclass(frozen=True, eq=False)
class Section:
    """A question and its answer: markup and figures in the order of the page.

    `name` is the address of the section, `title` its heading, `short` its line in the contents.
    """

    name: str
    title: str
    parts: Sequence[Markup | Chart | None]
    short: str | None = None

    def body(self, pictures: Pictures) -> Markup:
        """The section's markup below its heading."""
        return joined(
            *(figure(part, pictures) if isinstance(part, Chart) else part for part in self.parts)
        )


@dataclass(frozen=True, eq=False)
class Content:
    """What a page says: its title, remarks on what is missing, and its sections."""

    title: str
    remarks: Sequence[str]
    sections: Sequence[Section]

    @property
    def figures(self) -> Iterator[Chart]:
        """Every figure, in the order of the page."""
        for section in self.sections:
            yield from (part for part in section.parts if isinstance(part, Chart))

    def specs(self) -> dict[str, Any]:
        """The palettes and the specification of every figure by name: what the script draws."""
        return {
            "palettes": plotly_chart.PALETTES,
            "figures": {chart.name: plotly_chart.spec(chart) for chart in self.figures},
        }

    def to_json(self) -> dict[str, Any]:
        """The page as JSON values: `window.lpzero.update(...)` of its script takes them."""
        return {
            "title": self.title,
            "remarks": list(self.remarks),
            "sections": {s.name: s.body({}) for s in self.sections},
            **self.specs(),
        }


def figure(chart: Chart, pictures: Pictures) -> Markup:
    """The figure's place on the page: its picture, which the script replaces by the live figure."""
    picture = None
    if chart.name in pictures:
        data = base64.b64encode(pictures[chart.name]).decode()
        source = f"data:image/svg+xml;base64,{data}"
        picture = element("img", src=source, alt=chart.words, loading="lazy")
    plot = element("div", class_="plot", role="img", aria_label=chart.words, hidden=True)
    return element(
        "figure",
        picture,
        plot,
        element("figcaption", chart.caption),
        id=f"figure-{chart.name}",
        data_figure=chart.name,
    )


def data_block(name: str, content: Any) -> Markup:
    """JSON for the script; it cannot end its element, whatever its texts hold."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    safe = text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return element("script", Markup(safe), type="application/json", id=name)
