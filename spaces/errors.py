"""Errors about architectures and tables; each message tells the user what to do."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

# Values of a file may be nested so that a whole repr would never end.
_SHORT = reprlib.Repr()
_SHORT.maxlevel, _SHORT.maxlist, _SHORT.maxtuple, _SHORT.maxdict = 2, 20, 20, 8
_SHORT.maxstring = _SHORT.maxlong = _SHORT.maxother = 80


def shown(value: Any) -> str:
    """The value as an error message shows it: its repr, cut where it is long or deep."""
    try:
        text = _SHORT.repr(value)
    except ValueError:  # Python converts no integer of thousands of digits to text
        return "an integer of thousands of digits"
    return text if len(text) <= 200 else f"{text[:200]}..."


def as_text(value: Any) -> str:
    """The value itself if it is a text, else as an error message shows it.

    YAML's names may be numbers, and hexadecimal ones of any length.
    """
    return value if isinstance(value, str) else shown(value)


class SpaceError(Exception):
    """Root of every error raised by this package."""


class ArchitectureError(SpaceError, ValueError):
    """An architecture has a field outside its space."""


class FieldError(ArchitectureError):
    """One named field of an architecture is outside its space."""

    def __init__(self, field: str, reason: str) -> None:
        self.field, self.reason = field, reason
        super().__init__(f"{field}: {reason}")

    def __reduce__(self) -> tuple[type[FieldError], tuple[str, str]]:
        return FieldError, (self.field, self.reason)


class DeclarationError(SpaceError, ValueError):
    """A user's space is declared with choices, a name or a batch that make none."""


class BatchError(SpaceError, ValueError):
    """A minibatch that cannot be made: a wrong size, or a corpus that cannot be read."""


class MemoryLimitError(SpaceError, ValueError):
    """A network or a batch needs more memory than it may take."""


class TableError(SpaceError, ValueError):
    """A table's file is missing, broken or inconsistent."""


class UnknownNameError(SpaceError, KeyError):
    """There is no space, table or split of that name."""

    def __init__(self, kind: str, given: str, known: Iterable[str]) -> None:
        names = sorted(known)
        near = get_close_matches(given, names, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"
        super().__init__(f"unknown {kind} {given!r}; {hint}")

    def __str__(self) -> str:
        # KeyError would print the repr of its message.
        return str(self.args[0])


class FetchError(SpaceError, OSError):
    """A download failed or did not match its checksum."""
