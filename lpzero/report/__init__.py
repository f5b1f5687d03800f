"""The report of a run: one HTML page that needs nothing else, and its figures as files."""

from lpzero.report.formula_run import FormulaRun
from lpzero.report.output import Written, write
from lpzero.report.search_page import Search
from lpzero.report.source import open_source

__all__ = ["FormulaRun", "Search", "Written", "open_source", "write"]
