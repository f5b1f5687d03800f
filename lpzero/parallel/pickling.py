"""Pickles for workers, whose working folder may be another: they get absolute paths."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cloudpickle


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
