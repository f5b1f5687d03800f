"""Exhaustive runs: every formula of the paper's space on one table."""

from lpzero.exhaust.report import choose, report, scores
from lpzero.exhaust.results import Entry, Query, Results
from lpzero.exhaust.run import Exhaustion, exhaust

__all__ = [
    "Entry",
    "Exhaustion",
    "Query",
    "Results",
    "choose",
    "exhaust",
    "report",
    "scores",
]
