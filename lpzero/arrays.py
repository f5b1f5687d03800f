"""Names for the array types (numbers are float64, indices are int64), and a cache of arrays."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]  # row numbers and counts
KeyArray = npt.NDArray[np.int64]  # integers that sort in the same order as the scores
LabelArray = npt.NDArray[np.int64]  # rows with equal labels form a group


V = TypeVar("V")


class ByteCache(Generic[V]):
    """Values with their sizes in bytes, at most `limit` in total: the least recently used go."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.bytes = 0
        self._values: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()

    def get(self, key: Hashable) -> V | None:
        """The value, which becomes the most recently used; None if it is not cached."""
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def put(self, key: Hashable, value: V, size: int) -> None:
        """Cache the value, unless it alone exceeds the limit."""
        if size > self.limit or key in self._values:
            return
        self._values[key] = value, size
        self.bytes += size
        while self.bytes > self.limit:
            _, (_, freed) = self._values.popitem(last=False)
            self.bytes -= freed

    def __contains__(self, key: Hashable) -> bool:
        return key in self._values
