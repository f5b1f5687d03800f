"""Search loops: from any proxy and any space to the best architecture found.

Request(space, loop, proxy, ...)  ->  run(request, ...)  ->  Outcome: best, trace
"""

from lpzero.search.constraints import Constraints
from lpzero.search.request import Request
from lpzero.search.running import Outcome, Surroundings, run

__all__ = ["Constraints", "Outcome", "Request", "Surroundings", "run"]
