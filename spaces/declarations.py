"""Discovery of what the modules of a package declare, so that no list must name a new module."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any


def declared(
    package: str,
    path: Iterable[str],
    constant: str,
    is_wanted: Callable[[pkgutil.ModuleInfo], bool] = lambda module: True,
) -> list[Any]:
    """The constant of that name of every module of the package that has one, by module name.

    `path` is the package's `__path__`; a package may call this while it is being imported. Only
    modules for which `is_wanted` is true are imported.
    """
    names = sorted(module.name for module in pkgutil.iter_modules(path) if is_wanted(module))
    modules = [import_module(f"{package}.{name}") for name in names]
    return [getattr(module, constant) for module in modules if hasattr(module, constant)]
