"""Packages that can be called: `lpzero.search(...)` is a function, `lpzero.search` a package."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

# Resolved when it is called: the Python face is above every package.
_FACE = "lpzero.python.functions"


class _CallablePackage(ModuleType):
    """A package as the function of the Python face that has its name."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        name = self.__name__.rpartition(".")[2]
        return getattr(import_module(_FACE), name)(*arguments, **options)


def make_callable(package: str) -> None:
    """Let the package be called."""
    sys.modules[package].__class__ = _CallablePackage
