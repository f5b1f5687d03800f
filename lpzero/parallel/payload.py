"""A function with all that it refers to, as bytes that a worker gets once and not with every item.

Large arrays stay outside the pickle (protocol 5), so that a worker uses them where they arrived: in
Dask's memory, in Ray's object store, or in a file that every local process maps. They are read-only
there. The user's modules are run before anything is unpickled (`lpzero.parallel.shipment`).
"""

from __future__ import annotations

import hashlib
import pickle
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lpzero.parallel.pickling import dumps
from lpzero.parallel.shipment import Shipment

Bytes = NDArray[np.uint8]
Function = Callable[[Any], Any]

_LARGE = 1 << 20  # bytes of an array that stays outside the pickle
_KEPT = 2  # functions that a worker keeps; each may hold large arrays
_LOADED: OrderedDict[str, Function] = OrderedDict()


@dataclass(frozen=True, slots=True, eq=False)
class Payload:
    """The function's pickle, its large arrays (n,), and the digest of both and the shipment."""

    digest: str
    shipment: Shipment
    function: bytes
    arrays: tuple[Bytes, ...] = ()
    engine: str = ""  # of the driver, for workers elsewhere; see `lpzero.parallel.engine`

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
        shipment = Shipment.of_this_process()
        digest = hashlib.blake2b(pickled, digest_size=20)
        digest.update(shipment.digest.encode())
        for array in large:
            digest.update(array.data)
        return Payload(digest.hexdigest(), shipment, pickled, tuple(large))

    @property
    def nbytes(self) -> int:
        """How many bytes a worker gets."""
        return len(self.function) + self.shipment.nbytes + sum(one.nbytes for one in self.arrays)

    def load(self, arrays: Callable[[], tuple[Bytes, ...]] | None = None) -> Function:
        """The function, unpacked once per process; `arrays` finds them where they are not here."""
        found = _LOADED.get(self.digest)
        if found is None:
            self.shipment.unpack()
            given = self.arrays if arrays is None else arrays()
            shared = [one.data.toreadonly() for one in given]
            found = pickle.loads(self.function, buffers=shared)  # noqa: S301 (from the driver)
            assert found is not None, "a function was sent"
            _LOADED[self.digest] = found
            while len(_LOADED) > _KEPT:
                _LOADED.popitem(last=False)
        return found
