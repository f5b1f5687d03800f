"""The page of a run: sections of markup and figures, in one file that needs no network.

`content_of` gives the content of a run's page. It becomes a document with inline style and script
and a policy that forbids any network (`document`), or a live page (`Content.to_json` holds what a
script needs to show a newer state of it). `write` writes the document and every figure as PDF, PNG
and SVG.
"""

from __future__ import annotations

import base64
import json
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from lpzero.errors import InputError
from lpzero.files import subfolder, write_bytes, write_text
from lpzero.report import plotly_chart, style
from lpzero.report.chart import Chart
from lpzero.report.drawn_chart import draw
from lpzero.report.figures.transfer import Transfer
from lpzero.report.markup import Child, Markup, element, encodable, joined
from lpzero.report.plotly_chart import bundle, digest
from lpzero.runs.config import with_article
from lpzero.runs.formula_run import UPSTREAM, FormulaRun
from lpzero.runs.run import Run, kind_of, report_unexpected_content

FOLDER, PAGE, FIGURES = "report", "index.html", "figures"
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
    return element("script", Markup(encodable(safe)), type="application/json", id=name)


def versions(run: Run) -> dict[str, Child]:
    """The versions that the run was started with."""
    return {f"version of {name}": str(version) for name, version in run.config.versions.items()}


def reproduction(run: Run, *more: Markup) -> Section:
    """The last section of a page: how to run the same again, and what the numbers depend on."""
    block = element("pre", element("code", "\n".join(commands(run))), tabindex=0)
    if run.command is None:
        why = "The command is not known: the run was started by Python code or an earlier version."
        block = element("div", element("p", why, class_="note"), block)
    elif run.code:
        why = (
            f"The first command runs Python code that is not part of lpzero: {', '.join(run.code)}."
            " Run it only if that code is yours, or if you have read it."
        )
        block = element("div", element("p", why, class_="note"), block)
    return Section("reproduce", "Reproduce", [block, *more])


def commands(run: Run) -> list[str]:
    """The command lines that reproduce the run and this report."""
    where = shlex.quote(str(run.folder))
    lines = [] if run.command is None else [shlex.join(run.command)]
    lines.append(f"lpzero report {where}")
    if isinstance(run, FormulaRun) and run.best is not None:
        formula = shlex.quote(run.best["formula"])
        lines.append(f"lpzero export {where} --to python")
        lines += [
            f"lpzero rank {shlex.quote(table['name'])} --proxy {formula}"
            + (f" --space {table['space']}" if table["space"] == UPSTREAM else "")
            for table in run.tables
        ]
    return lines


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


def content_of(
    run: Run,
    beside: Sequence[Run] = (),
    ranking: Sequence[Mapping[str, Any]] | None = None,
    transfer: Transfer | None = None,
) -> Content:
    """What the page of the run says; raise InputError if the other runs are of another kind.

    Nothing is drawn yet: pictures are made when the page is written, so this is quick enough for
    a page that is refreshed while the run goes on.
    """
    for other in beside:
        are_of_formulas = isinstance(run, FormulaRun) and isinstance(other, FormulaRun)
        if type(other) is not type(run) and not are_of_formulas:
            raise InputError(
                f"{other.folder} is {with_article(other.kind)}: it cannot be compared with"
                f" {with_article(run.kind)}"
            )
    page = resolve_name(kind_of(run.config).page)
    content: Content = page(run, beside, ranking, transfer)
    return content


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
        content = content_of(run, beside, ranking, transfer)
        encoded = {chart.name: _encoded(chart) for chart in content.figures}
        text = document(content, {name: forms["svg"] for name, forms in encoded.items()})
    saved = []
    figures = subfolder(run.folder, FOLDER, FIGURES)
    for name, forms in encoded.items():
        for form, data in forms.items():
            saved.append(figures / f"{name}.{form}")
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
