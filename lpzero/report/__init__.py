"""The report of a run: one HTML page that needs nothing else, and its figures as files."""

from lpzero.report.gathering import Gathered
from lpzero.report.opening import gather
from lpzero.report.searching import Search
from lpzero.report.writing import Written, write

__all__ = ["Gathered", "Search", "Written", "gather", "write"]
