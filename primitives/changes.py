"""Callbacks that clear caches when a primitive or a statistic is declared or removed."""

from __future__ import annotations

from collections.abc import Callable

_callbacks: list[Callable[[], None]] = []


def on_change(callback: Callable[[], None]) -> None:
    """Call the function whenever the language changes."""
    _callbacks.append(callback)


def announce_change() -> None:
    """Call every callback."""
    for callback in _callbacks:
        callback()
