"""Search loops: from any proxy and any space to the best architecture found.

Request(space, loop, proxy, ...)  ->  run(request, ...)  ->  SearchOutcome: best, trace
"""

from lpzero.search.constraints import Constraints
from lpzero.search.request import Request
from lpzero.search.search import Resources, SearchOutcome, run

__all__ = ["Constraints", "Request", "Resources", "SearchOutcome", "run"]
