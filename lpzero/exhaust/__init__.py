"""The paper's whole space, every formula, on one table."""

from lpzero.exhaust.report import choose, report, scores
from lpzero.exhaust.results import NEEDS_GRADIENTS, Entry, Query, Results
from lpzero.exhaust.run import Exhaustion, exhaust

__all__ = [
    "NEEDS_GRADIENTS",
    "Entry",
    "Exhaustion",
    "Query",
    "Results",
    "choose",
    "exhaust",
    "report",
    "scores",
]
