"""What a worker gets once and not with every item: a function with all that it refers to, as bytes.

Large arrays stay outside the pickle (protocol 5), so that a worker uses them where they arrived: in
Dask's memory, in Ray's object store, or in a file that every local process maps. They are read-only
there. The user's modules, and primitives declared in a script or a notebook, are run before the
function is unpickled, because it belongs to these modules.
"""

from __future__ import annotations

import hashlib
import io
import pickle
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
from numpy.typing import NDArray

from primitives import registry
from spaces import user_modules
from spaces.user_modules import UserModule

Bytes = NDArray[np.uint8]
Function = Callable[[Any], Any]

_LARGE = 1 << 20  # bytes of an array that stays outside the pickle
_KEPT = 2  # functions that a worker keeps; each may hold large arrays
_LOADED: OrderedDict[str, Function] = OrderedDict()

user_modules.on_forget(registry.forget_module)


@dataclass(frozen=True, slots=True, eq=False)
class Payload:
    """The function's pickle, its large arrays (n,), and what the user declared in the driver.

    `primitives` is a pickle of (primitive, digest) pairs; `digest` is of all but the engine.
    """

    digest: str
    modules: tuple[UserModule, ...]
    primitives: bytes
    function: bytes
    arrays: tuple[Bytes, ...] = ()
    engine: str = ""  # of the driver, for workers elsewhere; see `lpzero.parallel.tasks`

    @staticmethod
    def of(function: Function) -> Payload:
        """The payload of a function of this process."""
        large: list[Bytes] = []

        def is_small(buffer: pickle.PickleBuffer) -> bool:
            raw = buffer.raw()
            if raw.nbytes < _LARGE:
                return True
            large.append(np.frombuffer(raw, dtype=np.uint8))
            return False

        pickled, modules = dumps(function, is_small), user_modules.loaded()
        own = list(registry.foreign().values())
        primitives = cloudpickle.dumps(own) if own else b""
        digest = hashlib.blake2b(pickled, digest_size=20)
        digest.update(hashlib.sha256(primitives).digest())
        for module in modules:
            digest.update(f"{module.name} {module.path} {module.digest}\n".encode())
        for array in large:
            digest.update(array.data)
        return Payload(digest.hexdigest(), modules, primitives, pickled, tuple(large))

    @property
    def nbytes(self) -> int:
        """How many bytes a worker gets."""
        texts = sum(len(module.text) for module in self.modules)
        arrays = sum(array.nbytes for array in self.arrays)
        return len(self.function) + len(self.primitives) + texts + arrays

    def load(self, arrays: Callable[[], tuple[Bytes, ...]] | None = None) -> Function:
        """The function, unpacked once per process; `arrays` finds them where they are not here."""
        function = _LOADED.get(self.digest)
        if function is None:
            _declare(self.modules, self.primitives)
            given = self.arrays if arrays is None else arrays()
            shared = [array.data.toreadonly() for array in given]
            function = pickle.loads(self.function, buffers=shared)  # noqa: S301 (from the driver)
            assert function is not None, "a function was sent"
            _LOADED[self.digest] = function
            while len(_LOADED) > _KEPT:
                _LOADED.popitem(last=False)
        return function


@lru_cache(maxsize=4)
def _declare(modules: tuple[UserModule, ...], primitives: bytes) -> None:
    """Declare in this process what the user declared in the driver, unless it is there already."""
    for module in modules:
        user_modules.restore(module)
    if primitives:
        for primitive, digest in pickle.loads(primitives):  # noqa: S301 (from the driver)
            registry.adopt(primitive, digest)


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc]
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Path) and not value.is_absolute():
            return type(value), (str(value.absolute()),)
        return super().reducer_override(value)


def dumps(value: Any, is_inside: Callable[[pickle.PickleBuffer], bool] | None = None) -> bytes:
    """The pickle, with functions and classes by value where a worker cannot import them.

    `is_inside`, if given, says for each buffer of an array whether it belongs in the pickle.
    """
    written = io.BytesIO()
    _Pickler(written, protocol=5, buffer_callback=is_inside).dump(value)
    return written.getvalue()
