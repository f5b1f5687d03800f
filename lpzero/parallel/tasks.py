"""What a worker gets, what it does with one item, and its answer: the result, or an error.

A payload is sent once and not with every item: a function with all that it refers to, as bytes.
Large arrays stay outside the pickle (protocol 5), so that a worker uses them where they arrived: in
Dask's memory, in Ray's object store, or in a file that every local process maps. They are read-only
there. The user's modules, and what was declared in a script or a notebook, are run before the
function is unpickled, because it belongs to these modules.
"""

from __future__ import annotations

import ctypes
import hashlib
import io
import pickle
import socket
import traceback
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
from numpy.typing import NDArray

import lpzero
import primitives
import spaces
from lpzero.errors import InputError, LPZeroError
from lpzero.version import VERSION
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

    `modules` are the user's files that were run there, `imported` the modules that the user named
    and a worker may import; no address from a file adds to them. `declared` is a pickle of the
    (primitive, digest) pairs and the spaces that were declared in a script or a notebook; `digest`
    is of all but the engine.
    """

    digest: str
    modules: tuple[UserModule, ...]
    imported: tuple[str, ...]
    declared: bytes
    function: bytes
    arrays: tuple[Bytes, ...] = ()
    engine: str = ""  # of the driver, for workers elsewhere; see `engine`

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

        pickled = dumps(function, is_small)
        modules, imported = user_modules.loaded(), user_modules.imported()
        own = list(registry.foreign().values()), user_modules.given_spaces()
        declared = cloudpickle.dumps(own) if any(own) else b""
        digest = hashlib.blake2b(pickled, digest_size=20)
        digest.update(hashlib.sha256(declared).digest())
        for module in modules:
            digest.update(f"{module.name} {module.path} {module.digest}\n".encode())
        digest.update("\n".join(imported).encode())
        for array in large:
            digest.update(array.data)
        return Payload(digest.hexdigest(), modules, imported, declared, pickled, tuple(large))

    @property
    def nbytes(self) -> int:
        """How many bytes a worker gets."""
        texts = sum(len(module.text) for module in self.modules)
        arrays = sum(array.nbytes for array in self.arrays)
        return len(self.function) + len(self.declared) + texts + arrays

    def load(self, arrays: Callable[[], tuple[Bytes, ...]] | None = None) -> Function:
        """The function, unpacked once per process; `arrays` finds them where they are not here."""
        function = _LOADED.get(self.digest)
        if function is None:
            _declare(self.modules, self.imported, self.declared)
            given = self.arrays if arrays is None else arrays()
            shared = [array.data.toreadonly() for array in given]
            function = pickle.loads(self.function, buffers=shared)  # noqa: S301 (from the driver)
            assert function is not None, "a function was sent"
            _LOADED[self.digest] = function
            while len(_LOADED) > _KEPT:
                _LOADED.popitem(last=False)
        return function


@lru_cache(maxsize=4)
def _declare(modules: tuple[UserModule, ...], imported: tuple[str, ...], declared: bytes) -> None:
    """Declare in this process what the user declared in the driver, unless it is there already."""
    user_modules.accept(imported)
    for module in modules:
        user_modules.restore(module)
    if declared:
        adopted, given = pickle.loads(declared)  # noqa: S301 (from the driver)
        for primitive, digest in adopted:
            registry.adopt(primitive, digest)
        for space in given:
            user_modules.remember_space(space.name, space)


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


# Of <malloc.h>: how much free memory a process keeps, and from which size on an array is a mapping
# of its own. The values are the largest that glibc's own, dynamic thresholds reach.
_MALLOC = {-1: 64 << 20, -3: 32 << 20}


@dataclass(frozen=True, slots=True)
class Done:
    """The function's result."""

    value: Any


class DoneWithoutResult(Done):
    """The function returned None: the type of the answer says all, so nothing need be fetched."""


@dataclass(frozen=True, slots=True)
class Raised:
    """The function's error, pickled, with the lines that say where it was raised."""

    error: bytes
    where: str

    @staticmethod
    def of(error: BaseException) -> Raised:
        where = "".join(traceback.format_exception(error))
        try:
            pickled = dumps(error)
            pickle.loads(pickled)  # noqa: S301 (our own): some errors can be written, not read
        except Exception:
            pickled = dumps(TaskError(f"{type(error).__name__}: {error}"))
        return Raised(pickled, where)

    def again(self) -> BaseException:
        """The error, caused by what the worker saw."""
        error: BaseException = pickle.loads(self.error)  # noqa: S301 (from our own worker)
        error.__cause__ = TaskError(f"in a worker:\n{self.where}")
        return error


@dataclass(frozen=True, slots=True)
class Died:
    """No answer: the worker died. `is_final` if others have died of the same item before."""

    is_final: bool = False


Answer = Done | Raised | Died


class TaskError(LPZeroError, RuntimeError):
    """An error in a worker that cannot be sent as it is."""


def perform(payload: Payload, item: bytes) -> Done | Raised:
    """Runs in a worker: the answer of the payload's function for an item."""
    if payload.engine != engine():
        return Raised.of(version_error({engine(): [socket.gethostname()]}, payload.engine))
    keep_freed_memory()
    return apply(payload.load, item)


def apply(load: Callable[[], Function], item: bytes) -> Done | Raised:
    """The answer of the function that `load` gives, for an item."""
    try:
        value = load()(pickle.loads(item))  # noqa: S301 (from the driver)
        return DoneWithoutResult(None) if value is None else Done(value)
    except (Exception, SystemExit) as error:  # the driver raises it
        return Raised.of(error)


def version_error(versions: dict[str, list[str]], wanted: str) -> InputError:
    """The error for workers with other versions, by version; a version is "none" without lpzero."""
    told = "; ".join(
        f"lpzero {version} on {', '.join(sorted(where)[:3])}"
        + (f" and {len(where) - 3} more" if len(where) > 3 else "")
        for version, where in sorted(versions.items())
    )
    return InputError(
        f"workers need lpzero {wanted}, as here; found {told}: install the same version there"
    )


@lru_cache(maxsize=1)
def engine() -> str:
    """The version and the source's digest, as in "0.2.0 (source 3f9a1c0b)".

    Two checkouts of one version differ in their source; their results and what they send may, too.
    """
    digest = hashlib.sha256()
    for package in (lpzero, primitives, spaces):
        root = Path(str(package.__file__)).parent
        for path in sorted(root.rglob("*.py")):
            digest.update(str(path.relative_to(root.parent)).encode())
            digest.update(path.read_bytes())
    return f"{VERSION} (source {digest.hexdigest()[:8]})"


@lru_cache(maxsize=1)
def keep_freed_memory() -> None:
    """Let the C library's allocator use freed memory again; once per process, where it can.

    By itself it gives arrays of a megabyte back to the system when they are freed, and the next one
    costs page faults, millions of them for all products of two terms. Dask starts its workers with
    MALLOC_TRIM_THRESHOLD_=65536, with which they take three times as long (experiments/benchmarks).
    """
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # macOS, musl
        return
    for name, value in _MALLOC.items():
        mallopt(name, value)
