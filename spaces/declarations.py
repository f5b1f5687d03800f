"""Discovery of what modules declare, so that no list must name a new one.

`declared` finds the modules of a package, `load_group` what other packages offer through entry
points. Groups: lpzero.spaces, lpzero.tables, lpzero.loops (`lpzero.search.loops`),
lpzero.primitives (`primitives.registry`) and lpzero.proxies (`lpzero.proxies.registry`).
"""

from __future__ import annotations

import logging
import pkgutil
from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

logger = logging.getLogger(__name__)


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


def load_group(group: str, take: Callable[[str, Any], None]) -> None:
    """Load every entry point of the group and give `take` its name and what it leads to.

    One that fails, or that `take` refuses, is logged in one line and left out.
    """
    for point in sorted(entry_points(group=group), key=lambda of: (package_of(of), of.name)):
        try:
            take(point.name, point.load())
        except (Exception, SystemExit) as error:  # whatever the plug-in's module does
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            logger.warning(
                "plug-in %s of %s is ignored: %s", point.name, package_of(point), reason[:300]
            )


def package_of(point: EntryPoint) -> str:
    """The package that offers the entry point."""
    return point.dist.name if point.dist is not None else "an unknown package"
