"""Primitives of other packages: the entry-point group `lpzero.primitives`.

An entry point leads to a module that declares primitives with `@unary` and `@binary`, or to one of
them. They are loaded when a formula has an unknown name, and then belong to the language of this
process; a campaign searches with them only if it is given the package as a plug-in.
"""

from __future__ import annotations

import logging
from functools import lru_cache
from importlib.metadata import entry_points

from primitives import registry

GROUP = "lpzero.primitives"
logger = logging.getLogger(__name__)


@lru_cache(maxsize=1)
def load() -> None:
    """Load every plug-in, once; one that fails is named, and what it declared is removed."""
    for found in sorted(entry_points(group=GROUP), key=lambda one: (one.value, one.name)):
        before = {*registry.UNARIES, *registry.BINARIES}
        try:
            found.load()
        except (Exception, SystemExit) as error:  # whatever the plug-in's module does
            for name in {*registry.UNARIES, *registry.BINARIES} - before:
                registry.forget(name)
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            logger.warning("plug-in %s is ignored: %s", found.name, reason[:300])
