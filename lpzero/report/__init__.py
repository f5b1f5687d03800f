"""The report of a run: one HTML page that needs nothing else, and its figures as files."""

from lpzero.report.gathering import Gathered, gather
from lpzero.report.writing import Written, write

__all__ = ["Gathered", "Written", "gather", "write"]
