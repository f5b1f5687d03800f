"""Sketches -> their branch tables, fast: `tabulate` is the only function that others call.

`plain` computes the same tables in the obvious way; the tests compare the two.
"""

from lpzero.scores.tabulation.tabulator import PRODUCTS, Tabulated, tabulate

__all__ = ["PRODUCTS", "Tabulated", "tabulate"]
