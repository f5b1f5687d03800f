"""A formula for display: rendered, with its text below it for copying."""

from __future__ import annotations

from lpzero.report.markup import Markup, element
from primitives.errors import PrimitiveError
from primitives.mathml import to_mathml
from primitives.parser import parse


def shown(text: str) -> Markup:
    """The formula as mathematics and as text; as text alone if this version cannot read it."""
    code = element("code", text)
    try:
        rendered = Markup(to_mathml(parse(text), with_name=False))
    except PrimitiveError:
        return element("span", code, class_="formula")
    return element("span", rendered, code, class_="formula")
