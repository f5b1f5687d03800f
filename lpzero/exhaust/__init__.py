"""Exhaustive runs: every formula of the paper's space on one table."""

from lpzero.exhaust.report import choose, report, scores
from lpzero.exhaust.results import Entry, Query, Results
from lpzero.exhaust.run import ExhaustSettings, exhaust

__all__ = [
    "Entry",
    "ExhaustSettings",
    "Query",
    "Results",
    "choose",
    "exhaust",
    "report",
    "scores",
]
