"""LPZero engine: discovers formulas that rank untrained transformers."""

import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from os.path import dirname, realpath
from pathlib import Path
from typing import Any

from lpzero.version import VERSION as __version__

# The packages beside this one, whatever else has these names. A folder called `spaces` in the
# working directory, or a package of that name in another distribution, would be found first where
# the working directory is first on the path (`python -m`, a notebook) or where an editable install
# is found last. After `import lpzero` both names mean ours: docs/decisions/0007-three-packages.md.
_SIBLINGS = ("primitives", "spaces")


class _Siblings:
    """A finder of the two packages in the folder that has this package."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Where the package is, if it is one of the two."""
        return PathFinder.find_spec(name, [self.folder]) if name in _SIBLINGS else None


def _claim(folder: str) -> None:
    """Find the two packages in the folder from now on; raises ImportError if others are loaded."""
    for name in _SIBLINGS:
        loaded = sys.modules.get(name)
        places = list(getattr(loaded, "__path__", ())) or [str(loaded)]
        if loaded is not None and folder not in (dirname(realpath(place)) for place in places):
            raise ImportError(
                f"lpzero has a package {name}, and another one was imported before it, from"
                f" {places[0]}: import lpzero first, or rename yours"
            )
    if not any(isinstance(finder, _Siblings) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Siblings(folder))


_claim(str(Path(__file__).resolve().parent.parent))

# Imported when they are used; `exhaust` and `search` can be called, too.
_MODULES = {"exhaust", "hf", "search"}

__all__ = [
    "Discovery",
    "Layout",
    "__version__",
    "exhaust",
    "formula",
    "hf",
    "load",
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
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.python").get(name)
