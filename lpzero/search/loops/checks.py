"""Constants that make no sense are refused before a loop begins."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from lpzero.errors import InputError

_SHARES = ("probability", "inertia")


def check(loop: Any, least: dict[str, int] | None = None) -> None:
    """Counts from 1 (or from what `least` says), shares between 0 and 1, other numbers finite."""
    for field in dataclasses.fields(loop):
        value, name = getattr(loop, field.name), field.name.replace("_", "-")
        if field.name in _SHARES:
            if not 0 <= value <= 1:
                raise InputError(f"{name} is {value:g}, expected a number from 0 to 1")
        elif not math.isfinite(value):
            raise InputError(f"{name} is {value:g}, expected a finite number")
        elif isinstance(value, int) and value < (least or {}).get(field.name, 1):
            lowest = (least or {}).get(field.name, 1)
            raise InputError(f"{name} is {value}, expected at least {lowest}")
