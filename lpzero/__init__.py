"""LPZero engine: discovers formulas that rank untrained transformers."""

from importlib import import_module
from typing import Any

from lpzero.version import VERSION as __version__

# Names by the module that has them, imported when they are used.
_LAZY = {"Layout": "statistics.layout", "score": "proxies.model_scores", "space": "own"}
_MODULES = {"hf"}  # sub-packages that are imported when they are used

__all__ = ["Layout", "__version__", "hf", "score", "space"]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
