"""HTML from Python values: all text is escaped; markup has its own type."""

from __future__ import annotations

import re
from html import escape

_NAME = re.compile(r"[a-z][a-z0-9-]*")
_VOID = frozenset({"meta", "link", "img", "br", "input", "col"})
Attribute = str | int | float | bool | None


class Markup(str):
    """Text that is already HTML; only this module and our own generators create it."""

    __slots__ = ()


Child = str | int | float | None


def element(name: str, /, *children: Child, **attributes: Attribute) -> Markup:
    """The element with these children; `class_` is class, `data_key` is data-key.

    An attribute that is None or False is omitted; True has no value.

    >>> element("td", "a < b", class_="number")
    '<td class="number">a &lt; b</td>'
    """
    written = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{written}>")
    return Markup(f"<{name}{written}>{joined(*children)}</{name}>")


def joined(*children: Child) -> Markup:
    """The children concatenated, escaped unless they are markup; None is skipped."""
    return Markup(
        "".join(
            child if isinstance(child, Markup) else escape(str(child))
            for child in children
            if child is not None
        )
    )


def _attribute(key: str, value: Attribute) -> str:
    name = key.rstrip("_").replace("_", "-")
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of an attribute")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'
