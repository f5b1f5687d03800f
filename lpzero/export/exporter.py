"""The declaration of a form that formulas are exported in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lpzero.export.source import Selection


@dataclass(frozen=True, slots=True)
class NoOptions:
    """The options of a form that has none."""


@dataclass(frozen=True, slots=True)
class Exporter:
    """A module `NAME_form` declares one as `EXPORTER`, and `lpzero export --to NAME` writes it.

    `write` returns the text of the selected formulas. `options` is a dataclass of settings
    (`lpzero.options`) that only this form has; `write` gets an instance of it.
    """

    name: str
    help: str
    write: Callable[[Selection, Any], str]
    options: type[Any] = NoOptions
