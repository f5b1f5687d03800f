"""Copying a formula: as text, as LaTeX, as JSON; the buttons appear where there is a script."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lpzero.report.markup import Markup, element
from primitives.errors import PrimitiveError
from primitives.latex import to_latex
from primitives.parser import parse

_FORMS = {"text": "text", "latex": "LaTeX", "json": "JSON"}


def record(formula: str, facts: Mapping[str, Any]) -> str:
    """What can be copied of a formula, as a JSON text: itself, its LaTeX, and facts about it."""
    try:
        latex = to_latex(parse(formula))
    except PrimitiveError:  # another version wrote it
        latex = formula
    return json.dumps({"formula": formula, "latex": latex, **facts}, ensure_ascii=False)


def buttons(word: str = "Copy as") -> list[Markup]:
    """A button per form."""
    return [
        element("button", f"{word} {shown}", type="button", data_copy=form)
        for form, shown in _FORMS.items()
    ]


def of_one(formula: str, facts: Mapping[str, Any]) -> Markup:
    """The buttons for one formula."""
    said = element("output", "")
    return element(
        "div",
        *buttons(),
        said,
        class_="control",
        data_copied=record(formula, facts),
        hidden=True,  # until the script that implements it runs
    )
