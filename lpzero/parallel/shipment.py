"""What a worker needs of the user's before it can unpack a task: modules, and primitives.

A worker is another process, perhaps on another machine. The texts of the user's modules go with
the task and are run there first; so are primitives that were declared elsewhere, as in a script or
a notebook. Only then is the task unpacked, because its functions belong to these modules.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import cloudpickle

from primitives import registry
from spaces import user_modules
from spaces.user_modules import UserModule

user_modules.on_forget(registry.forget_module)


@dataclass(frozen=True, slots=True)
class Shipment:
    """The user's modules, and a pickle of (primitive, digest) pairs."""

    modules: tuple[UserModule, ...]
    primitives: bytes | None

    @staticmethod
    def of_this_process() -> Shipment:
        """What the user declared in this process so far."""
        own = list(registry.foreign().values())
        return Shipment(user_modules.loaded(), cloudpickle.dumps(own) if own else None)

    @property
    def is_empty(self) -> bool:
        return not self.modules and self.primitives is None

    def unpack(self) -> None:
        """Declare all of it in this process, unless it is there already."""
        _unpack(self)


@dataclass(frozen=True, slots=True)
class Packed:
    """A function that is unpacked where it is called, and so are its arguments."""

    shipment: Shipment
    function: bytes

    @staticmethod
    def of(shipment: Shipment, function: Callable[..., Any]) -> Packed:
        return Packed(shipment, cloudpickle.dumps(function))

    def __call__(self, arguments: bytes) -> Any:
        self.shipment.unpack()
        return _loaded(self.function)(*pickle.loads(arguments))  # noqa: S301 (from the driver)


def pack(arguments: tuple[Any, ...]) -> bytes:
    """Arguments for a packed function."""
    return bytes(cloudpickle.dumps(arguments))


@lru_cache(maxsize=4)
def _unpack(shipment: Shipment) -> None:
    for module in shipment.modules:
        user_modules.restore(module)
    if shipment.primitives is not None:
        for primitive, digest in pickle.loads(shipment.primitives):  # noqa: S301 (from the driver)
            registry.adopt(primitive, digest)
    _loaded.cache_clear()


@lru_cache(maxsize=4)
def _loaded(function: bytes) -> Callable[..., Any]:
    found: Callable[..., Any] = pickle.loads(function)  # noqa: S301 (from the driver)
    return found
