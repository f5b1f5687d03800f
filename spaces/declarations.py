"""What the modules of a package declare: a new module is found, and no list names it."""

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

    `path` is the package's `__path__`; a package may ask while it is being imported itself. Only
    modules that are wanted are imported.
    """
    names = sorted(module.name for module in pkgutil.iter_modules(path) if is_wanted(module))
    modules = [import_module(f"{package}.{name}") for name in names]
    return [getattr(module, constant) for module in modules if hasattr(module, constant)]
