"""LPZero engine: discovers formulas that rank untrained transformers."""

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from os.path import dirname, isdir, realpath
from types import ModuleType
from typing import Any

from lpzero.version import VERSION as __version__

# `primitives` and `spaces` are beside this package in the repository, and below it in a wheel, so
# that a user's own module `spaces` stays the user's: docs/decisions/0007-three-packages.md.
_TWO = ("primitives", "spaces")
_HERE = dirname(realpath(__file__))
_IS_WHEEL = isdir(f"{_HERE}/{_TWO[0]}")


class _Beside:
    """Finds the two packages beside this one, before a folder of the working directory."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Where the package is, if it is one of the two."""
        return PathFinder.find_spec(name, [dirname(_HERE)]) if name in _TWO else None


class _OtherName:
    """Finds the two packages and what is in them under their other name, as the same modules.

    In a wheel that is `spaces`, where nothing else has the name; else `lpzero.spaces`.
    """

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """A loader of the module, if the name is such a one."""
        parent, _, last = name.rpartition(".")
        if last in _TWO and parent == ("" if _IS_WHEEL else "lpzero"):
            others = [finder for finder in sys.meta_path if finder is not self]
            is_taken = _IS_WHEEL and any(finder.find_spec(name, path) for finder in others)
        else:
            is_taken = getattr(sys.modules.get(parent), "__name__", parent) == parent
        return None if is_taken else ModuleSpec(name, self)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Nothing: the module is there."""

    def exec_module(self, module: ModuleType) -> None:
        """Put the module in place of the one that was just made."""
        name = module.__name__
        plain = name.removeprefix("lpzero.")
        sys.modules[name] = import_module(f"lpzero.{plain}" if _IS_WHEEL else plain)


def _claim() -> None:
    """Find the two packages beside this one; raises ImportError if others are loaded."""
    for name in _TWO:
        loaded = sys.modules.get(name)
        places = list(getattr(loaded, "__path__", ())) or [str(loaded)]
        if loaded is not None and dirname(_HERE) not in (dirname(realpath(p)) for p in places):
            raise ImportError(
                f"lpzero has a package {name} in its repository, and another one was imported"
                f" before it, from {places[0]}: import lpzero first, or install a wheel"
            )
    sys.meta_path.insert(0, _Beside())  # type: ignore[arg-type]


if not any(type(finder).__name__ == _OtherName.__name__ for finder in sys.meta_path):
    if not _IS_WHEEL:
        _claim()
    sys.meta_path.insert(0, _OtherName())  # type: ignore[arg-type]

# Imported when they are used; `exhaust` and `search` can be called, too.
_MODULES = {"exhaust", "hf", "optuna", "search"}

__all__ = [
    "Discovery",
    "Layout",
    "__version__",
    "exhaust",
    "formula",
    "hf",
    "load",
    "load_table",
    "optuna",
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
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.python").get(name)
