"""The text by which tests tell formulas of one ranking, or of opposite ones, from others."""

from __future__ import annotations

from primitives import Formula
from primitives.canonical import canonical


def key_up_to_sign(formula: Formula, positive: frozenset[str] = frozenset()) -> str:
    """A text that is equal for two formulas only if they rank alike, or one in reverse."""
    return str(canonical(formula, positive).with_sign(1))
