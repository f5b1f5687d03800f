"""Proxies that other packages offer, through the entry-point group `lpzero.proxies`.

An entry point leads to a module that declares proxies with `@proxy` or `register`, to one such
function, to a proxy, or to the text of a formula, which is registered under the entry point's name.
They are loaded when all names or an unknown name are requested. A plug-in that fails is logged in
one line, and everything it registered is removed.
"""

from __future__ import annotations

import logging
import sys
from importlib.metadata import EntryPoint, entry_points

from lpzero.errors import InputError
from lpzero.proxies import registry
from lpzero.proxies.base import Proxy
from lpzero.proxies.formula import FormulaProxy
from primitives.parser import parse

GROUP = "lpzero.proxies"

logger = logging.getLogger(__name__)
_is_loaded = False


def load() -> None:
    """Load every plug-in, once."""
    global _is_loaded
    if _is_loaded:
        return
    _is_loaded = True  # before loading: a plug-in may request names itself
    for found in sorted(entry_points(group=GROUP), key=lambda e: (_package(e), e.name)):
        before = registry.snapshot()
        try:
            _register(found, before)
        except (Exception, SystemExit) as error:  # whatever the plug-in's module does
            registry.restore(before)
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            logger.warning(
                "plug-in %s of %s is ignored: %s", found.name, _package(found), reason[:300]
            )


def _register(found: EntryPoint, before: dict[str, Proxy]) -> None:
    was_imported = found.module in sys.modules  # then it declared its proxies earlier
    offered = found.load()
    if isinstance(offered, str):
        registry.register(FormulaProxy(found.name, parse(offered)))
    elif isinstance(offered, Proxy):
        if registry.snapshot().get(offered.name) is not offered:
            registry.register(offered)
    elif registry.snapshot() == before and not was_imported:
        raise InputError(f"{found.value} declares no proxy")
    for name in registry.snapshot().keys() - before.keys():
        if name != name.strip() or not name or set(name) & set("(),/\\\0 \n"):
            raise InputError(f"{name!a} cannot be a proxy's name; use letters and hyphens")


def _package(found: EntryPoint) -> str:
    return found.dist.name if found.dist is not None else "an unknown package"


registry.add_loader(load)
