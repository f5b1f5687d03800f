"""The packages `primitives` and `spaces` beside this one, whatever else has these names.

A folder called `spaces` in the working directory, or a package of that name in another
distribution, would be found first where the working directory is first on the path (`python -m`, a
notebook) or where an editable install is found last. After `import lpzero` both names mean ours:
docs/decisions/0007-three-packages.md.
"""

import sys
from importlib.machinery import ModuleSpec, PathFinder
from os.path import dirname, realpath
from typing import Any

NAMES = ("primitives", "spaces")


class Siblings:
    """A finder of the two packages in the folder that has this package."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """Where the package is, if it is one of the two."""
        return PathFinder.find_spec(name, [self.folder]) if name in NAMES else None


def claim(folder: str) -> None:
    """Find the two packages in the folder from now on; raises ImportError if others are loaded."""
    for name in NAMES:
        loaded = sys.modules.get(name)
        places = list(getattr(loaded, "__path__", ())) or [str(loaded)]
        if loaded is not None and folder not in (dirname(realpath(place)) for place in places):
            raise ImportError(
                f"lpzero has a package {name}, and another one was imported before it, from"
                f" {places[0]}: import lpzero first, or rename yours"
            )
    if not any(isinstance(finder, Siblings) for finder in sys.meta_path):
        sys.meta_path.insert(0, Siblings(folder))
