"""What other packages offer through entry points: loaded one by one, a failure names its plug-in.

Groups: lpzero.spaces, lpzero.tables, lpzero.loops (`lpzero.search.loops`), lpzero.primitives
(`primitives.entry_points`) and lpzero.proxies (`lpzero.proxies.registry`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

logger = logging.getLogger(__name__)


def load_group(group: str, take: Callable[[str, Any], None]) -> None:
    """Load every entry point of the group and give `take` its name and what it leads to.

    One that fails, or that `take` refuses, is logged in one line and left out.
    """
    for found in sorted(entry_points(group=group), key=lambda one: (package_of(one), one.name)):
        try:
            take(found.name, found.load())
        except (Exception, SystemExit) as error:  # whatever the plug-in's module does
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            logger.warning(
                "plug-in %s of %s is ignored: %s", found.name, package_of(found), reason[:300]
            )


def package_of(found: EntryPoint) -> str:
    """The package that offers the entry point."""
    return found.dist.name if found.dist is not None else "an unknown package"
