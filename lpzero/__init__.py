"""LPZero engine: discovers formulas that rank untrained transformers."""

from importlib import import_module
from typing import Any

from lpzero.version import VERSION as __version__

# Names by the module that has them, imported when they are used.
_LAZY = {"space": "own"}

__all__ = ["__version__", "space"]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
