"""Every module of the packages, imported once, so that forks of a process need not do it."""

from __future__ import annotations

import pkgutil
from importlib import import_module

_OPTIONAL = ("lpzero.parallel.dask", "lpzero.parallel.ray")  # whose libraries may be missing


def import_packages() -> None:
    """Import the modules of the three packages, and let torch use one thread."""
    for package in ("lpzero", "spaces", "primitives"):
        for module in pkgutil.walk_packages([package], f"{package}."):
            runs_a_command = module.name.endswith("__")  # when it is imported
            if module.name not in _OPTIONAL and not runs_a_command:
                import_module(module.name)
    import torch

    torch.set_num_threads(1)
