"""The time limit of a search: it ends between two facts, never in the middle of one."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from lpzero.errors import InputError


class TimeUpError(Exception):
    """The time limit is reached; the search's facts so far are all recorded."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """So many seconds from now; with a deadline, facts are computed `at_once` at a time."""

    seconds: float
    at_once: int = 1
    start: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise InputError(f"the time limit is {self.seconds!r}, expected more than 0 seconds")

    def check(self) -> None:
        """Raise TimeUpError if the time is over."""
        if time.monotonic() - self.start >= self.seconds:
            raise TimeUpError
