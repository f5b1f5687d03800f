"""Packages that can be called: `lpzero.search(...)` is a function, `lpzero.search` a package."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

# Resolved when it is called: the Python face is above every package.
_FACE = "lpzero.python"


class _CallablePackage(ModuleType):
    """A package as the function of the Python face that has its name, help and signature."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return self._function(*arguments, **options)

    @property
    def __signature__(self) -> Any:
        return self._function.__signature__

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        return str(self._function.__doc__)

    @property
    def _function(self) -> Any:
        return import_module(_FACE).get(self.__name__.rpartition(".")[2])


def make_callable(package: str) -> None:
    """Let the package be called."""
    sys.modules[package].__class__ = _CallablePackage
