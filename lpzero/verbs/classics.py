"""classics: List the formulas of the papers."""

from __future__ import annotations

from dataclasses import dataclass

from lpzero.verbs import Outcome, Screen

EXAMPLES = ("lpzero classics --wide",)


@dataclass(frozen=True, kw_only=True)
class Request:
    """List the classic proxies as formulas, and those that the language cannot express."""


def run(request: Request, screen: Screen) -> Outcome:
    """A row per classic proxy."""
    from primitives.classics import CLASSICS

    return Outcome(
        [
            {
                "proxy": classic.name,
                "formula": classic.text,
                "fidelity": classic.fidelity.value,
                "definition": classic.definition,
                "note": classic.note,
            }
            for classic in CLASSICS
        ]
    )
