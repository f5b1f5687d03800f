"""The page: sections in order, inline style and script, and a policy that forbids any network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files

from lpzero.report import hall_of_fame, provenance, verdict
from lpzero.report.figures.drawn import Drawn
from lpzero.report.markup import Markup, element
from lpzero.runs.formula_run import FormulaRun


def page(run: FormulaRun, drawn: Sequence[Drawn]) -> str:
    """The document of a campaign or an exhaustive run; equal runs give equal text."""
    names = ", ".join(str(table["name"]) for table in run.tables)
    missing = None
    if run.result is not None and run.scores is None:
        missing = (
            "Score against target is not drawn: the directory has no scores.json. Run the same"
            " command again (a campaign with --resume) to write it."
        )
    return document(
        f"{names}: {run.kind}",
        run.remarks,
        [
            ("result", "Result", verdict.section(run)),
            ("searched", "Search", provenance.searched(run)),
            ("hall-of-fame", "Hall of fame", hall_of_fame.section(run)),
            ("figures", "Figures", figures(drawn, missing)),
            ("rejected", "Rejected formulas", provenance.rejections(run)),
            ("provenance", "Provenance", provenance.provenance(run)),
            ("reproduce", "Reproduce", commands(provenance.commands(run))),
        ],
    )


def document(
    title: str, remarks: Sequence[str], sections: Sequence[tuple[str, str, Markup]]
) -> str:
    """A complete HTML document of sections: each a name, a title and its content."""
    body = [
        element("a", "Skip to the result", class_="skip", href=f"#{sections[0][0]}"),
        element("header", element("h1", title), _remarks(remarks)),
        element("main", *(_section(*section) for section in sections)),
    ]
    head, script = _head(title)
    made = element("html", head, element("body", *body, script), lang="en")
    return f"<!DOCTYPE html>\n{made}\n"


def _head(title: str) -> tuple[Markup, Markup]:
    css, code = (_asset(name) for name in ("report.css", "report.js"))
    # Only this style and this script may run, and nothing may be loaded from anywhere.
    policy = (
        "default-src 'none'; img-src data:; base-uri 'none'; form-action 'none';"
        f" style-src 'sha256-{_digest(css)}'; script-src 'sha256-{_digest(code)}'"
    )
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("meta", name="generator", content="lpzero"),
        element("title", title),
        element("link", rel="icon", href="data:,"),
        element("style", Markup(css)),
    )
    return head, element("script", Markup(code))


def _asset(name: str) -> str:
    text = files("lpzero.report").joinpath(name).read_text(encoding="utf-8")
    assert "</" not in text, "it would end its element"
    return text


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _section(name: str, title: str, content: Markup) -> Markup:
    return element(
        "section",
        element("h2", title, id=f"{name}-title"),
        content,
        id=name,
        aria_labelledby=f"{name}-title",
    )


def _remarks(remarks: Sequence[str]) -> Markup | None:
    if not remarks:
        return None
    items = [element("li", remark) for remark in remarks]
    return element("div", element("strong", "Remarks"), element("ul", *items), class_="remarks")


def figures(drawn: Sequence[Drawn], missing: str | None = None) -> Markup:
    """The figures in order, after a note on what is missing."""
    parts = [*([element("p", missing)] if missing else []), *(_figure(entry) for entry in drawn)]
    return element("div", *parts) if parts else element("p", "There is nothing to draw yet.")


def _figure(entry: Drawn) -> Markup:
    data = base64.b64encode(entry.svg).decode()
    image = element("img", src=f"data:image/svg+xml;base64,{data}", alt=entry.words)
    return element("figure", image, element("figcaption", entry.caption), id=f"figure-{entry.name}")


def commands(lines: Sequence[str]) -> Markup:
    """Command lines, ready to be copied."""
    return element("pre", element("code", "\n".join(lines)), tabindex=0)
