"""What a mutant is: a small realistic bug, and the tests that should catch it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256


@dataclass(frozen=True, slots=True)
class Mutant:
    """One replacement in one file; `tests` are run, in this order, until one fails.

    `survives` says why no test catches it, for the few that are left.
    """

    file: str
    old: str
    new: str
    bug: str
    tests: tuple[str, ...]
    survives: str | None = None

    @property
    def key(self) -> str:
        """A text that changes with the mutant."""
        parts = [self.file, self.old, self.new, *self.tests]
        return sha256("\0".join(parts).encode()).hexdigest()[:16]

    def apply(self, text: str) -> str:
        """The file's text with the bug; raises ValueError unless it applies exactly once."""
        found = text.count(self.old)
        if found != 1:
            raise ValueError(f"{self.file}: {self.old!r} is there {found} times, expected once")
        return text.replace(self.old, self.new)


@dataclass(frozen=True, slots=True)
class Bugs:
    """The bugs of one file as (old, new, what it is), and the tests that concern it."""

    file: str
    tests: Sequence[str]
    found: Sequence[tuple[str, ...]]

    def mutants(self) -> Iterator[Mutant]:
        """A mutant for each bug; a fourth part is the reason why it survives."""
        for old, new, bug, *why in self.found:
            yield Mutant(self.file, old, new, bug, tuple(self.tests), *why)
