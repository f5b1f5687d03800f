"""LPZero engine: discovers formulas that rank untrained transformers."""

from importlib import import_module
from pathlib import Path
from typing import Any

from lpzero.siblings import claim
from lpzero.version import VERSION as __version__

claim(str(Path(__file__).resolve().parent.parent))

# Names by the module that has them, imported when they are used.
_LAZY = {
    "Discovery": "python.discovery",
    "Layout": "statistics.layout",
    "formula": "python.formula",
    "load_table": "python.functions",
    "rank": "python.functions",
    "score": "proxies.model_scores",
    "space": "own",
    "train": "python.functions",
}
# Imported when they are used; `exhaust` and `search` can be called, too.
_MODULES = {"exhaust", "hf", "search"}

__all__ = [
    "Discovery",
    "Layout",
    "__version__",
    "exhaust",
    "formula",
    "hf",
    "load_table",
    "rank",
    "score",
    "search",
    "space",
    "train",
]


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"{__name__}.{name}")
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_LAZY[name]}"), name)
