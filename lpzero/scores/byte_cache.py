"""A least-recently-used cache with a limit in bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class ByteCache(Generic[V]):
    """Values with their sizes in bytes, at most `limit` in total."""

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
