"""The errors of the formula language, and the result for a formula that was not scored.

Errors have one root, and subclasses that are also builtin errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeVar

_T = TypeVar("_T")
NON_FINITE = "non-finite"


class PrimitiveError(Exception):
    """Root of every error raised by this package."""


class FormulaError(PrimitiveError, ValueError):
    """A text or tree that is not a formula; `position` counts characters from zero."""

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message)
        self.position = position


class DeclarationError(PrimitiveError, TypeError):
    """A primitive that the registry's probes reject."""


class UnknownPrimitiveError(FormulaError, LookupError):
    """A name that no primitive, statistic or rule has."""


class TensorError(PrimitiveError, ValueError):
    """A tensor of the wrong shape, or a block without the statistic asked for."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """rule: the name that is counted; reason: one sentence for a reader."""

    rule: str
    reason: str

    def __str__(self) -> str:
        return f"rejected by {self.rule}: {self.reason}"


def look_up(kind: str, name: str, declared: Mapping[str, _T]) -> _T:
    """What is declared by that name; raises UnknownPrimitiveError with a hint otherwise."""
    if name not in declared:
        raise UnknownPrimitiveError(f"no {kind} {name!r}; {did_you_mean(name, declared)}")
    return declared[name]


def did_you_mean(given: str, known: Iterable[str]) -> str:
    """A closing hint for an error message: the nearest name, or all of them."""
    names = list(known)
    near = get_close_matches(given, names, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]!r}?"
    return "choose from: " + ", ".join(names)
