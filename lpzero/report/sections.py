"""The parts of a page: a figure, a section of markup and figures, the content of a page.

The same content becomes a page that needs no network (`page.document`) or a live one
(`Content.to_json`, which holds what a script needs to show a newer state of the same page).
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from lpzero.report.figures.drawn import Drawn
from lpzero.report.figures.plotly_spec import PALETTES
from lpzero.report.markup import Markup, element, joined


@dataclass(frozen=True, eq=False)
class Section:
    """A question and its answer: markup and figures in the order of the page.

    `name` is the address of the section, `title` its heading, `short` its line in the contents.
    """

    name: str
    title: str
    parts: Sequence[Markup | Drawn | None]
    short: str | None = None

    def body(self, with_pictures: bool) -> Markup:
        """The section's markup below its heading."""
        return joined(
            *(
                figure(part, with_pictures) if isinstance(part, Drawn) else part
                for part in self.parts
            )
        )


@dataclass(frozen=True, eq=False)
class Content:
    """What a page says: its title, remarks on what is missing, and its sections."""

    title: str
    remarks: Sequence[str]
    sections: Sequence[Section]

    @property
    def figures(self) -> Iterator[Drawn]:
        """Every figure, in the order of the page."""
        for section in self.sections:
            yield from (part for part in section.parts if isinstance(part, Drawn))

    def specs(self) -> dict[str, Any]:
        """The palettes and the specification of every figure by name: what the script draws."""
        return {
            "palettes": PALETTES,
            "figures": {drawn.name: drawn.spec for drawn in self.figures},
        }

    def to_json(self) -> dict[str, Any]:
        """The page as JSON values: `window.lpzero.update(...)` of its script takes them."""
        return {
            "title": self.title,
            "remarks": list(self.remarks),
            "sections": {s.name: s.body(with_pictures=False) for s in self.sections},
            **self.specs(),
        }


def figure(drawn: Drawn, with_picture: bool) -> Markup:
    """The figure's place on the page: the picture, which the script replaces by the live figure."""
    picture = None
    if with_picture:
        data = base64.b64encode(drawn.svg).decode()
        source = f"data:image/svg+xml;base64,{data}"
        picture = element("img", src=source, alt=drawn.words, loading="lazy")
    plot = element("div", class_="plot", role="img", aria_label=drawn.words, hidden=True)
    return element(
        "figure",
        picture,
        plot,
        element("figcaption", drawn.caption),
        id=f"figure-{drawn.name}",
        data_figure=drawn.name,
    )


def data_block(name: str, content: Any) -> Markup:
    """JSON for the script; it cannot end its element, whatever its texts hold."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    safe = text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")
    return element("script", Markup(safe), type="application/json", id=name)
