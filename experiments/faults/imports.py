"""Every module of the packages, imported once, so that forks of a process need not do it."""

from __future__ import annotations

import pkgutil
from importlib import import_module

# Modules of libraries that may be missing, and the one that runs a command when it is imported.
_LEFT_OUT = ("lpzero.parallel.dask", "lpzero.parallel.ray", "lpzero.__main__")


def import_packages() -> None:
    """Import the modules of the three packages, and let torch use one thread."""
    for package in ("lpzero", "spaces", "primitives"):
        for module in pkgutil.walk_packages([package], f"{package}."):
            if module.name not in _LEFT_OUT:
                import_module(module.name)
    import torch

    torch.set_num_threads(1)
