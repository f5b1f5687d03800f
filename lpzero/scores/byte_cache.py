"""A dictionary that forgets what was used longest ago when it holds more bytes than it may."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

V = TypeVar("V")


class ByteCache(Generic[V]):
    """Values with their sizes in bytes, at most `limit` together."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.bytes = 0
        self._values: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()

    def get(self, key: Hashable) -> V | None:
        """The value, which from now on is the one used last."""
        found = self._values.get(key)
        if found is None:
            return None
        self._values.move_to_end(key)
        return found[0]

    def put(self, key: Hashable, value: V, size: int) -> None:
        """Keep the value, unless it alone is too large."""
        if size > self.limit or key in self._values:
            return
        self._values[key] = value, size
        self.bytes += size
        while self.bytes > self.limit:
            _, (_, freed) = self._values.popitem(last=False)
            self.bytes -= freed

    def __contains__(self, key: Hashable) -> bool:
        return key in self._values

    def __len__(self) -> int:
        return len(self._values)
