"""What a worker needs of the user's before it can unpack a task: modules, and primitives.

A worker is another process, perhaps on another machine. The texts of the user's modules go with
the task and are run there first; so are primitives that were declared elsewhere, as in a script or
a notebook. Only then is the task unpacked, because its functions belong to these modules.
"""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import dataclass
from functools import lru_cache

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
    def digest(self) -> str:
        """The digest of all of it."""
        found = hashlib.sha256(self.primitives or b"")
        for module in self.modules:
            found.update(f"{module.name} {module.path} {module.digest}\n".encode())
        return found.hexdigest()

    @property
    def nbytes(self) -> int:
        """How many bytes it adds to what a worker gets."""
        return len(self.primitives or b"") + sum(len(module.text) for module in self.modules)

    def unpack(self) -> None:
        """Declare all of it in this process, unless it is there already."""
        _unpack(self)


@lru_cache(maxsize=4)
def _unpack(shipment: Shipment) -> None:
    for module in shipment.modules:
        user_modules.restore(module)
    if shipment.primitives is not None:
        for primitive, digest in pickle.loads(shipment.primitives):  # noqa: S301 (from the driver)
            registry.adopt(primitive, digest)
