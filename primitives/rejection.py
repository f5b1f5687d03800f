"""The result for a formula that was not scored, with the reason."""

from __future__ import annotations

from dataclasses import dataclass

NON_FINITE = "non-finite"


@dataclass(frozen=True, slots=True)
class Rejected:
    """rule: the name that is counted; reason: one sentence for a reader."""

    rule: str
    reason: str

    def __str__(self) -> str:
        return f"rejected by {self.rule}: {self.reason}"
