"""Search loops: from any proxy and any space to the best architecture found.

Request(space, loop, proxy, ...)  ->  run(request, ...)  ->  SearchOutcome: best, trace

The package can be called: `lpzero.search("nano-gpt2")` is `lpzero.python.functions.search`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lpzero.callable_package import make_callable

if TYPE_CHECKING:
    from lpzero.search.constraints import Constraints
    from lpzero.search.request import Request
    from lpzero.search.search import Resources, SearchOutcome, run

__all__ = ["Constraints", "Request", "Resources", "SearchOutcome", "run"]

# How a search draws and runs its networks (docs/search.md, "Networks of a search"). quick: weights
# drawn by name and shape, passes of absolute weights in float32; as-ranked: as `lpzero rank` does.
QUICK, AS_RANKED = NETWORKS = ("quick", "as-ranked")
_HOMES = {
    "Constraints": "constraints",
    "Request": "request",
    "Resources": "search",
    "SearchOutcome": "search",
    "run": "search",
}


def __getattr__(name: str) -> Any:
    # Requests load proxies and so torch; the loops and their options, for --help, do not.
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


make_callable(__name__)
