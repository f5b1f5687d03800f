"""Every proxy by name, and how one is declared.

A proxy scores a list of architectures of a space; larger always means better. Its direction, -1
where the paper wants the quantity small, is declared with it and never fitted to a table.
Most are a function of one built network:

    @proxy(needs=Needs.GRADIENT | Needs.LABELS, paper="Lee et al. 2019", normalised=True)
    def snip(network):
        "sum |dL/dW * W| over the matrices of the blocks"
        return [[...], ...]  # block by block the terms of the sum, or one number

The registered name is the function's with hyphens. `normalised` also declares NAME-normalised,
the mean of the terms instead of their sum. `reads` are statistics without which the proxy means
nothing: it does not apply to spaces whose networks do not have them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from types import FrameType
from typing import Any, TypeVar

from lpzero.errors import InputError
from lpzero.proxies.base import Measure, Needs, NetworkProxy, Proxy
from spaces import user_modules
from spaces.errors import UnknownNameError

F = TypeVar("F", bound=Callable[..., Any])

# The modules that declare proxies, in the order of their names in every list.
FAMILIES = (
    "jacobian",
    "activations",
    "attention",
    "auto_prox",
    "sizes",
    "components",
    "az_nas",
    "formula",
    "engine",
    "hidden",
    "kernels",
    "te_nas",
    "patterns",
    "saliency",
    "released",
    "supernet",
    "trazor",
)
_PACKAGE = __name__.rpartition(".")[0]

_PROXIES: dict[str, Proxy] = {}
_FAMILY: dict[str, int] = {}  # of our proxies the place of their module in FAMILIES
_is_loaded = False
_LOADERS: list[Callable[[], None]] = []
_OWNERS: dict[str, str] = {}  # of a user's proxy the module that declared it


def register(proxy: Proxy) -> Proxy:
    """Register the proxy under its name."""
    family, owner = _declaring_family(), user_modules.running()
    if family is None:
        load_families()  # a name of ours is taken, whether or not it was looked up before
    if proxy.name in _PROXIES:
        raise InputError(f"there is a proxy {proxy.name} already; choose another name")
    _PROXIES[proxy.name] = proxy
    if family is not None:
        _FAMILY[proxy.name] = family
    elif owner is not None:
        _OWNERS[proxy.name] = owner
    return proxy


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
        known = function.__name__.replace("_", "-")
        definition = " ".join((function.__doc__ or "").split("\n\n")[0].split())
        by_block = function.__annotations__.get("return") == "Terms"
        measure = Measure(known, function, version, by_block, has_own_batch, n_inputs)
        wanted = frozenset(reads)
        register(NetworkProxy(known, measure, needs, paper, definition, False, direction, wanted))
        if normalised:
            mean = f"mean of the terms of {known}"
            other = f"{known}-normalised"
            register(NetworkProxy(other, measure, needs, paper, mean, True, direction, wanted))
        return function

    return declare


def load_families() -> None:
    """Import the families, all but a few of which import torch, and sort the proxies by them."""
    global _is_loaded
    if _is_loaded:
        return
    _is_loaded = True  # what a family looks up while it is imported is there already
    for family in FAMILIES:
        import_module(f"{_PACKAGE}.{family}")
    ordered = sorted(_PROXIES.items(), key=lambda item: _FAMILY.get(item[0], len(FAMILIES)))
    _PROXIES.clear()
    _PROXIES.update(ordered)


def _declaring_family() -> int | None:
    """The place of the family whose module is being run; None if it is a user's proxy."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        module = str(frame.f_globals.get("__name__"))
        package, _, name = module.rpartition(".")
        if module == f"{_PACKAGE}.plugins" or module == user_modules.running():
            return None
        if package == _PACKAGE and name in FAMILIES:
            return FAMILIES.index(name)
        frame = frame.f_back
    return None


def known() -> list[str]:
    """The names of the registered proxies, without loading plug-ins."""
    load_families()
    return list(_PROXIES)


def names() -> list[str]:
    """Every proxy's name, in the order of the families, then those of plug-ins.

    Also of those that `lpzero rank` takes only by name: the released recipes and what runs on more
    inputs (`lpzero.proxies.ranking.ranked_by_default`).
    """
    for load in _LOADERS:
        load()
    return known()


def add_loader(load: Callable[[], None]) -> None:
    """Call `load`, which registers more proxies, when all names or an unknown one are needed."""
    _LOADERS.append(load)


def get(name: str) -> Proxy:
    """The proxy of that name; plug-ins are loaded only if it is not one of ours."""
    if name not in _PROXIES:
        load_families()
    if name not in _PROXIES and name not in names():
        raise UnknownNameError("proxy", name, _PROXIES)
    return _PROXIES[name]


def snapshot() -> dict[str, Proxy]:
    """The registered proxies by name, as a copy."""
    load_families()
    return dict(_PROXIES)


def restore(earlier: dict[str, Proxy]) -> None:
    """Remove what was registered since the snapshot."""
    _PROXIES.clear()
    _PROXIES.update(earlier)
