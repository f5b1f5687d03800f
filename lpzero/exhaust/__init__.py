"""Exhaustive runs: every formula of the paper's space on one table.

The package can be called: `lpzero.exhaust("nano-gpt2")` is `lpzero.python.functions.exhaust`.
"""

from lpzero.callable_package import make_callable
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

make_callable(__name__)
