"""Spaces of the user's by their address, `my_module:SPACE` or `folder/my_module.py:SPACE`."""

from __future__ import annotations

from typing import Any

from spaces import user_modules
from spaces.base import Space
from spaces.errors import UnknownNameError
from spaces.user_modules import UserCodeError

_FOUND: dict[str, tuple[str, Space[Any]]] = {}  # by the space's own name: address and space


def is_address(text: str) -> bool:
    """Whether the text is an address rather than a name."""
    return ":" in text


def find(address: str) -> Space[Any]:
    """The space at the address; its module is run if it was not yet."""
    module_name, _, attribute = address.rpartition(":")
    if not module_name or not attribute.isidentifier():
        raise UserCodeError(f"{address!r} is not an address; write my_module:SPACE")
    module = user_modules.load(module_name)
    found = getattr(module, attribute, None)
    if not isinstance(found, Space):
        offered = sorted(n for n, value in vars(module).items() if isinstance(value, Space))
        if found is None:
            raise UnknownNameError(f"space in {module_name}", attribute, offered)
        raise UserCodeError(
            f"{address} is a {type(found).__name__}, expected a space, as lpzero.space makes one"
        )
    remember(address, found)
    return found


def remember(address: str, space: Space[Any]) -> None:
    """Know the space by its own name from now on, too."""
    known = _FOUND.get(space.name)
    if known is not None and known[1] != space:
        raise UserCodeError(
            f"{known[0]} and {address} are different spaces, both called {space.name}: give one of"
            " them another name="
        )
    _FOUND[space.name] = address, space


def named(name: str) -> Space[Any] | None:
    """A space that was found before, by its own name."""
    return _FOUND[name][1] if name in _FOUND else None


def address_of(space: Space[Any]) -> str:
    """What `spaces.get` takes to find the space in another process: its address or its name."""
    known = _FOUND.get(space.name)
    return space.name if known is None else known[0]
