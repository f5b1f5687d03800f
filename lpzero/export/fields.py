"""Exported files to checked values: strict JSON, known fields, one clear line for any error."""

from __future__ import annotations

import json
import math
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lpzero.errors import InputError
from spaces.untrusted import UntrustedError, read_regular

MAX_BYTES = 1_000_000
MAX_TEXT = 300  # characters of a name or label
_MAX_DEPTH = 20
_MAX_DIGITS = 25  # of a number: more than a float needs, few enough to parse quickly


def read_text(path: Path, most: int = MAX_BYTES) -> str:
    """The text of a regular file of at most so many bytes."""
    try:
        return read_regular(path, most).decode("utf-8")
    except UntrustedError as error:
        raise InputError(f"{error}; give a file that `lpzero export` wrote") from None
    except FileNotFoundError:
        raise InputError(f"there is no file {path}; give a proxy, a formula or a file") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in UTF-8 (byte {error.start})") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{str(path)!r} cannot be read: {reason}") from None


def read_json(text: str, where: str) -> Any:
    """The JSON value; rejects duplicate keys, NaN, deep nesting and very long numbers."""
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_int=_integer,
            parse_float=_float,
        )
        _check_depth(value)
    except RecursionError:
        raise InputError(f"{where} is nested too deeply") from None
    except ValueError as error:
        raise InputError(f"{where} is not valid JSON: {error}") from None
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in pairs:
        if name in values:
            raise ValueError(f"the key {_shown(name)} appears twice")
        values[name] = value
    return values


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _integer(digits: str) -> int:
    if len(digits) > _MAX_DIGITS:
        raise ValueError(f"a number of {len(digits)} digits is too long")
    return int(digits)


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"{_shown(digits)} is beyond the range of numbers")
    return value


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return
    raise ValueError(f"nested deeper than {_MAX_DEPTH} levels")


def _inside(value: Any) -> Sequence[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else ()


class Fields:
    """An object's fields, each read once and checked; `done` rejects the rest."""

    def __init__(self, value: Any, where: str) -> None:
        if not isinstance(value, Mapping):
            raise InputError(f"{where} is {_kind(value)}, expected an object")
        self._left, self.where = dict(value), where

    def has(self, name: str) -> bool:
        """Whether the field is there and was not read."""
        return name in self._left

    def take(self, name: str) -> Any:
        """The field's value, unchecked."""
        if name not in self._left:
            raise InputError(f"{self.where} has no {name!r}; export the formula again")
        return self._left.pop(name)

    def text(self, name: str) -> str:
        """A short text without control characters."""
        return check_text(self.take(name), f"{self.where}: {name}")

    def integer(self, name: str, least: int | None = None) -> int:
        """A whole number."""
        value = self.take(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise InputError(f"{self.where}: {name} is {_kind(value)}, expected a whole number")
        if least is not None and value < least:
            raise InputError(f"{self.where}: {name} is {value}, expected at least {least}")
        return value

    def optional_integer(self, name: str, least: int | None = None) -> int | None:
        """A whole number or null."""
        return self.take(name) if self._left.get(name, 0) is None else self.integer(name, least)

    def optional_text(self, name: str) -> str | None:
        """A text or null."""
        return self.take(name) if self._left.get(name, 0) is None else self.text(name)

    def choice(self, name: str, allowed: Sequence[str]) -> str:
        """One of the allowed texts."""
        value = self.take(name)
        if not isinstance(value, str) or value not in allowed:
            shown = _shown(value)
            raise InputError(f"{self.where}: {name} is {shown}, use one of {', '.join(allowed)}")
        return value

    def items(self, name: str) -> list[Any]:
        """A list."""
        value = self.take(name)
        if not isinstance(value, list):
            raise InputError(f"{self.where}: {name} is {_kind(value)}, expected a list")
        return value

    def inner(self, name: str) -> Fields:
        """The fields of an object inside."""
        return Fields(self.take(name), f"{self.where}: {name}")

    def mapping(self, name: str) -> dict[str, Any]:
        """An object whose keys the caller checks."""
        value = self.take(name)
        if not isinstance(value, dict):
            raise InputError(f"{self.where}: {name} is {_kind(value)}, expected an object")
        return value

    def done(self) -> None:
        """Raise InputError if a field was not read: a misspelt field must not be ignored."""
        if self._left:
            raise InputError(
                f"{self.where} has an unknown field {_shown(next(iter(self._left)))};"
                " remove it, or update lpzero"
            )


def check_text(value: Any, where: str) -> str:
    """The text, if it is short and contains no control characters."""
    if not isinstance(value, str):
        raise InputError(f"{where} is {_kind(value)}, expected a text")
    if len(value) > MAX_TEXT:
        raise InputError(f"{where} has {len(value):,} characters, at most {MAX_TEXT} are allowed")
    control = [c for c in value if unicodedata.category(c)[0] == "C"]
    if control:
        raise InputError(f"{where} contains the control character {control[0]!a}; use plain text")
    return value


def check_number(value: Any, where: str, limit: float = math.inf) -> float:
    """A finite number of at most that magnitude."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise InputError(f"{where} is {_kind(value)}, expected a number")
    if not math.isfinite(value) or abs(value) > limit:
        raise InputError(f"{where} is {value:g}, expected a number of magnitude {limit:g} at most")
    return float(value)


def check_numbers(value: Any, where: str, n: int, limit: float = 1e100) -> list[float]:
    """A list of n finite numbers of at most that magnitude."""
    if not isinstance(value, list) or len(value) != n:
        given = f"a list of {len(value):,}" if isinstance(value, list) else _kind(value)
        raise InputError(f"{where} is {given}, expected a list of {n:,} numbers")
    return [check_number(number, where, limit) for number in value]


def _kind(value: Any) -> str:
    names = {
        dict: "an object",
        list: "a list",
        str: "a text",
        bool: "a truth value",
        int: "a number",
        float: "a number",
        type(None): "null",
    }
    return names.get(type(value), type(value).__name__)


def _shown(value: Any) -> str:
    text = ascii(value)
    return text if len(text) <= 40 else text[:40] + "..."
