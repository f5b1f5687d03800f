"""Bugs."""

from __future__ import annotations

from experiments.mutants.bugs import Bugs

BUGS: tuple[Bugs, ...] = ()
