"""Branch tables: the means of which every formula of the paper's space is made."""

from lpzero.branches.chains import Chain, ChainSet, surviving
from lpzero.branches.table import BranchTable, branch_table, over_blocks, over_tensors
from lpzero.branches.tabulation import PRODUCTS, Tabulated, tabulate

__all__ = [
    "PRODUCTS",
    "BranchTable",
    "Chain",
    "ChainSet",
    "Tabulated",
    "branch_table",
    "over_blocks",
    "over_tensors",
    "surviving",
    "tabulate",
]
