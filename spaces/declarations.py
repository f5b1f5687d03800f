"""What the modules of a package declare: a new module is found, and no list names it."""

from __future__ import annotations

import pkgutil
from collections.abc import Sequence
from importlib import import_module
from typing import Any


def declared(package: str, path: Sequence[str], constant: str) -> list[Any]:
    """The constant of that name of every module of the package that has one, by module name.

    `path` is the package's `__path__`; a package may ask while it is being imported itself.
    """
    found = []
    for module in sorted(info.name for info in pkgutil.iter_modules(path)):
        value = getattr(import_module(f"{package}.{module}"), constant, None)
        if value is not None:
            found.append(value)
    return found
