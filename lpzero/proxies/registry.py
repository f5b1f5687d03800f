"""Every proxy by name, how one is declared, and those that other packages offer.

    @proxy(needs=Needs.GRADIENT | Needs.LABELS, paper="Lee et al. 2019", normalised=True)
    def snip(network):
        "sum |dL/dW * W| over the matrices of the blocks"
        return [[...], ...]  # block by block the terms of the sum, or one number

The registered name is the function's with hyphens. `normalised` also declares NAME-normalised,
the mean of the terms instead of their sum. `reads` are statistics without which the proxy means
nothing: it does not apply to spaces whose networks do not have them.

Our own are declared by the modules of `lpzero.proxies.families`, which are listed and imported when
a name is looked up that is not among those imported so far, or all names are listed: most of them
import torch. Those of other packages are in the entry-point group `lpzero.proxies`. An entry point
leads to a module that declares proxies with `@proxy` or `register`, to one such function, to a
proxy, or to the text of a formula, which is registered under the entry point's name. They are
loaded when all names or an unknown name are requested. A plug-in that fails is logged in one line,
and everything it registered is removed.
"""

from __future__ import annotations

import logging
import pkgutil
import sys
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from lpzero.errors import InputError
from lpzero.proxies import families
from lpzero.proxies.base import Measure, Needs, NetworkProxy, Proxy
from spaces import user_modules
from spaces.errors import UnknownNameError

F = TypeVar("F", bound=Callable[..., Any])
GROUP = "lpzero.proxies"
logger = logging.getLogger(__name__)

_PROXIES: dict[str, Proxy] = {}
_FAMILIES: dict[str, str] = {}  # of our proxies the module that declared it
_OWNERS: dict[str, str] = {}  # of a user's proxy the module that declared it
_OFFERED: dict[str, Proxy] = {}  # given as objects
_is_loaded = False
_has_plugins = False


def register(proxy: Proxy, module: str = "") -> Proxy:
    """Register the proxy under its name; a family of ours says which `module` it is."""
    is_ours, owner = module.startswith(f"{families.__name__}."), user_modules.running()
    if not is_ours:
        load_families()  # a name of ours is taken, whether or not it was looked up before
    if not isinstance(proxy, Proxy):
        raise InputError(f"{proxy!r} is not a proxy: its class must inherit lpzero.proxies.Proxy")
    if proxy.name in _PROXIES:
        raise InputError(f"there is a proxy {proxy.name} already; choose another name")
    _PROXIES[proxy.name] = proxy
    if is_ours:
        _FAMILIES[proxy.name] = module
    elif owner is not None:
        _OWNERS[proxy.name] = owner
    return proxy


def offer(proxy: Proxy) -> None:
    """Know a proxy that the user gives as an object by its name; it may replace an earlier one."""
    if proxy.name in _OFFERED or proxy.name not in known():
        _PROXIES[proxy.name] = _OFFERED[proxy.name] = proxy
    elif _PROXIES[proxy.name] != proxy:
        raise InputError(f"there is a proxy {proxy.name} already; give the function another name")


def _forget_module(module: str) -> None:
    """Remove the proxies that a module of the user's declared."""
    for name in [name for name, owner in _OWNERS.items() if owner == module]:
        _OWNERS.pop(name)
        _PROXIES.pop(name, None)


user_modules.on_forget(_forget_module)


def proxy(
    *,
    needs: Needs,
    paper: str,
    normalised: bool = False,
    direction: int = 1,
    version: int = 1,
    has_own_batch: bool = False,
    n_inputs: int = 0,
    reads: str = "",
) -> Callable[[F], F]:
    """Declare a function of one network as a proxy; raise `version` when its values change."""

    def declare(function: F) -> F:
        name, module = function.__name__.replace("_", "-"), function.__module__
        definition = " ".join((function.__doc__ or "").split("\n\n")[0].split())
        by_block = function.__annotations__.get("return") == "Terms"
        measure = Measure(name, function, version, by_block, has_own_batch, n_inputs)
        how = direction, frozenset(reads)
        register(NetworkProxy(name, measure, needs, paper, definition, False, *how), module)
        if normalised:
            mean = f"mean of the terms of {name}"
            means = NetworkProxy(f"{name}-normalised", measure, needs, paper, mean, True, *how)
            register(means, module)
        return function

    return declare


def load_families() -> None:
    """Import every family, and sort our proxies by their modules' names, in which order they are in
    every list."""
    global _is_loaded
    if _is_loaded:
        return
    _is_loaded = True  # what a family looks up while it is imported is there already
    for module in pkgutil.iter_modules(families.__path__):
        import_module(f"{families.__name__}.{module.name}")
    ordered = sorted(_PROXIES, key=lambda name: (name not in _FAMILIES, _FAMILIES.get(name, "")))
    restore({name: _PROXIES[name] for name in ordered})


def known() -> list[str]:
    """The names of the registered proxies, without loading plug-ins."""
    load_families()
    return list(_PROXIES)


def names() -> list[str]:
    """Every proxy's name, in the order of the families, then those of plug-ins.

    Also of those that `lpzero rank` takes only by name: the released recipes and what runs on more
    inputs (`lpzero.proxies.ranking.ranked_by_default`).
    """
    _load_plugins()
    return known()


def get(name: str) -> Proxy:
    """The proxy of that name; plug-ins are loaded only if it is not one of ours."""
    if name not in _PROXIES:
        load_families()
    if name not in _PROXIES and name not in names():
        raise UnknownNameError("proxy", name, _PROXIES)
    return _PROXIES[name]


def family(name: str) -> str:
    """The family of the proxy of that name: our module that declares it, or "plug-in"."""
    load_families()
    return _FAMILIES[name].rpartition(".")[2] if name in _FAMILIES else "plug-in"


def snapshot() -> dict[str, Proxy]:
    """The registered proxies by name, as a copy."""
    load_families()
    return dict(_PROXIES)


def restore(earlier: dict[str, Proxy]) -> None:
    """Have these proxies alone, as they were at the snapshot."""
    kept = dict(earlier)
    _PROXIES.clear()
    _PROXIES.update(kept)


def _load_plugins() -> None:
    """Load every plug-in, once."""
    global _has_plugins
    if _has_plugins:
        return
    _has_plugins = True  # before loading: a plug-in may request names itself
    for entry in sorted(entry_points(group=GROUP), key=lambda e: (_package(e), e.name)):
        before = snapshot()
        try:
            _register_plugin(entry, before)
        except (Exception, SystemExit) as error:  # whatever the plug-in's module does
            restore(before)
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            logger.warning(
                "plug-in %s of %s is ignored: %s", entry.name, _package(entry), reason[:300]
            )


def _register_plugin(entry: EntryPoint, before: dict[str, Proxy]) -> None:
    from lpzero.proxies.formula import FormulaProxy  # looks proxies up here
    from primitives.parser import parse

    was_imported = entry.module in sys.modules  # then it declared its proxies earlier
    offered = entry.load()
    if isinstance(offered, str):
        register(FormulaProxy(entry.name, parse(offered)))
    elif isinstance(offered, Proxy):
        if _PROXIES.get(offered.name) is not offered:
            register(offered)
    elif before == _PROXIES and not was_imported:
        raise InputError(f"{entry.value} declares no proxy")
    for name in _PROXIES.keys() - before.keys():
        if name != name.strip() or not name or set(name) & set("(),/\\\0 \n"):
            raise InputError(f"{name!a} cannot be a proxy's name; use letters and hyphens")


def _package(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist is not None else "an unknown package"
