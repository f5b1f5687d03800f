"""How a user's file is read as a table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reading:
    """How a file is read: its target, which way is better, its column of ids, its task."""

    target: str | None = None
    smaller_is_better: bool = False
    ids: str | None = None
    task: str | None = None
