"""The report of a run: one self-contained HTML page, and its figures as files."""

from lpzero.report.page import Written, write

__all__ = ["Written", "write"]
