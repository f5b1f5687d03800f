"""The page: sections in order, inline style and script, and a policy that forbids any network.

`write` writes the page of a run, and every figure as PDF, PNG and SVG.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from lpzero.errors import InputError
from lpzero.files import write_bytes, write_text
from lpzero.report import style
from lpzero.report.chart import Chart
from lpzero.report.drawn_chart import draw
from lpzero.report.figures.transfer import Transfer
from lpzero.report.markup import Markup, element, joined
from lpzero.report.plotly_chart import bundle, digest
from lpzero.report.sections import Content, Pictures, Section, data_block
from lpzero.runs.run import Run, report_unexpected_content

FOLDER, PAGE, FIGURES = "report", "index.html", "figures"


def document(content: Content, pictures: Pictures | None = None) -> str:
    """A complete HTML document that needs no other file; equal content gives equal text.

    `pictures` are its figures as SVG, drawn here if they are not given.
    """
    css, code = asset("report.css"), asset("report.js")
    if pictures is None:
        pictures = {chart.name: style.encode(draw(chart), "svg") for chart in content.figures}
    scripts = [f"'sha256-{digest(code)}'"]
    carried: list[Markup] = []
    if pictures:
        plotly = bundle()
        scripts.append(f"'sha256-{plotly.digest}'")
        carried = [
            data_block("figures", content.specs()),
            element("script", Markup(plotly.packed), type="text/plain", id="plotly"),
        ]
    # Only these scripts may run, and nothing may be loaded from anywhere. Plotly adds styles of its
    # own; a style can load nothing either.
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none';"
        f" style-src 'unsafe-inline'; script-src {' '.join(scripts)}"
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        *head_lines(content.title),
        element("link", rel="icon", href="data:,"),
        element("style", Markup(css)),
    )
    inside = joined(*body(content, pictures), *carried, element("script", Markup(code)))
    made = element("html", head, element("body", inside), lang="en")
    return f"<!DOCTYPE html>\n{made}\n"


def head_lines(title: str) -> list[Markup]:
    """The lines of a head that pages and live pages share."""
    return [
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="generator", content="lpzero"),
        element("title", title),
    ]


def body(content: Content, pictures: Pictures) -> list[Markup]:
    """What is inside the body: skip link, header, contents and sections, without any script."""
    first = content.sections[0].name
    return [
        element("a", "Skip to the result", class_="skip", href=f"#{first}"),
        element("header", element("h1", content.title), remarks(content.remarks)),
        _contents(content.sections),
        element("main", *(_section(section, pictures) for section in content.sections)),
    ]


def asset(name: str) -> str:
    """The text of a style sheet or script of this package."""
    text = files("lpzero.report").joinpath(name).read_text(encoding="utf-8")
    assert "</" not in text, "it would end its element"
    return text


def remarks(lines: Sequence[str]) -> Markup:
    """What is missing, in a box of its own; hidden if nothing is."""
    items = [element("li", line) for line in lines]
    inside = [element("strong", "Remarks"), element("ul", *items)]
    return element("div", *inside, class_="remarks", id="remarks", hidden=not lines)


def _contents(sections: Sequence[Section]) -> Markup:
    links = [
        element("li", element("a", section.short or section.title, href=f"#{section.name}"))
        for section in sections
    ]
    return element("nav", element("ul", *links), class_="contents", aria_label="Contents")


def _section(section: Section, pictures: Pictures) -> Markup:
    return element(
        "section",
        element("h2", section.title, id=f"{section.name}-title"),
        element("div", section.body(pictures), class_="body"),
        id=section.name,
        aria_labelledby=f"{section.name}-title",
    )


@dataclass(frozen=True, slots=True)
class Written:
    """The files of the page and the figures, and remarks on what is missing."""

    page: Path
    figures: tuple[Path, ...]
    remarks: tuple[str, ...]


def write(
    run: Run,
    out: str | Path | None = None,
    beside: Sequence[Run] = (),
    ranking: Sequence[Mapping[str, Any]] | None = None,
    transfer: Transfer | None = None,
) -> Written:
    """Write the page to `out`, DIR/report/index.html if None, and figures to DIR/report/figures.

    `beside`: other runs of the same kind for the convergence figure; `ranking`: the rows of
    `lpzero rank`; `transfer`: the result of `transfer.measure`.
    """
    place = run.folder / FOLDER
    target = place / PAGE if out is None else Path(out)
    if target.is_dir():
        raise InputError(f"{target} is a directory: name a file for the page")
    _check_writable(place / FIGURES)
    _check_writable(target.parent)
    with report_unexpected_content(run.folder):
        # The pages know every kind of run, and through some of them torch.
        from lpzero.report.contents import content_of

        content = content_of(run, beside, ranking, transfer)
        encoded = {chart.name: _encoded(chart) for chart in content.figures}
        text = document(content, {name: forms["svg"] for name, forms in encoded.items()})
    saved = []
    for name, forms in encoded.items():
        for form, data in forms.items():
            saved.append(place / FIGURES / f"{name}.{form}")
            write_bytes(saved[-1], data)
    write_text(target, text)
    return Written(target, tuple(saved), tuple(run.remarks))


def _check_writable(folder: Path) -> None:
    """Raise InputError unless files can be created in the nearest existing directory."""
    nearest = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise InputError(
            f"{nearest} is not writable: copy the run to a directory where you may write"
        )


def _encoded(chart: Chart) -> dict[str, bytes]:
    """The files of a figure, by format."""
    figure = draw(chart)
    return {form: style.encode(figure, form) for form in style.FORMATS}
