"""The keys of all formulas that were evaluated, shared by the states of a campaign.

A state never changes, but a copy of all keys in every generation would make the time of a campaign
grow with the square of its evaluations. States that follow each other share one dictionary, of
which each sees its own keys only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping


class Known(Mapping[str, int]):
    """Keys of formulas, each with the id of its candidate; in the order of the ids."""

    __slots__ = ("_count", "_end", "_ids")

    def __init__(self, ids: Mapping[str, int] | None = None) -> None:
        self._ids = dict(ids or {})
        self._count = len(self._ids)
        self._end = 1 + max(self._ids.values(), default=-1)

    def __getitem__(self, key: str) -> int:
        found = self._ids[key]
        if found >= self._end:  # of a later state
            raise KeyError(key)
        return found

    def __iter__(self) -> Iterator[str]:
        return (key for key, number in self._ids.items() if number < self._end)

    def __len__(self) -> int:
        return self._count

    def extended(self, fresh: Mapping[str, int]) -> Known:
        """These keys and the fresh ones, whose ids are larger; this one stays as it is."""
        if not fresh:
            return self
        if min(fresh.values()) < self._end or any(key in self for key in fresh):
            raise ValueError("fresh formulas have new keys, and ids after all those known")
        made = object.__new__(Known)
        is_last = len(self._ids) == self._count
        made._ids = self._ids if is_last else dict(self)  # another state continues the shared one
        made._ids.update(fresh)
        made._count, made._end = self._count + len(fresh), 1 + max(fresh.values())
        return made
