"""Search loops: from any proxy and any space to the best architecture found.

Request(space, loop, proxy, ...)  ->  run(request, ...)  ->  SearchOutcome: best, trace

The package can be called: `lpzero.search("nano-gpt2")` is `lpzero.notebook.verbs.search`.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lpzero.search.constraints import Constraints
    from lpzero.search.request import Request
    from lpzero.search.search import Resources, SearchOutcome, run

__all__ = ["Constraints", "Request", "Resources", "SearchOutcome", "run"]

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


# Resolved when it is called: the Python face is above this package.
_FACE = "lpzero.notebook.verbs"


class _Callable(ModuleType):
    """This package as the function that `import lpzero` offers under the same name."""

    def __call__(self, *words: Any, **options: Any) -> Any:
        return getattr(import_module(_FACE), "search")(*words, **options)  # noqa: B009


sys.modules[__name__].__class__ = _Callable
