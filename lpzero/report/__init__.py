"""The report of a run: one HTML page that needs nothing else, and its figures as files."""

from lpzero.report.output import Written, write

__all__ = ["Written", "write"]
