"""Table files to checked values; an error names the file and the field in one line."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from spaces.errors import ArchitectureError, TableError

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")


def read_text(path: Path) -> str:
    """The file as text."""
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise TableError(f"{path}: the file is missing") from None
    except UnicodeDecodeError as error:
        raise TableError(f"{path}: not UTF-8 text (byte {error.start})") from error
    except OSError as error:
        raise TableError(f"{path}: cannot be read ({error.strerror})") from error


def read_json(path: Path) -> Any:
    """The file's JSON value."""
    try:
        return json.loads(read_text(path))
    except RecursionError:
        raise TableError(f"{path}: its JSON is nested too deep") from None
    except json.JSONDecodeError as error:
        place = f"line {error.lineno} column {error.colno}"
        raise TableError(f"{path}: broken or truncated JSON at {place}: {error.msg}") from error


def read_yaml(path: Path) -> Any:
    """The file's YAML value; plain data only."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return yaml.load(read_text(path), Loader=loader)  # noqa: S506 (one of the two safe loaders)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" at line {mark.line + 1} column {mark.column + 1}" if mark else ""
        raise TableError(f"{path}: broken YAML{place}") from error


def field(record: Any, name: str, kind: type[T], where: str) -> T:
    """The record's value at a dotted name; raises TableError if it is missing or of another kind.

    A bool is not a number; an int is accepted as a float.
    """
    value = record
    for part in name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            raise TableError(f"{where}: the field {name} is missing")
        value = value[part]
    if kind is float and type(value) is int:
        value = float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TableError(f"{where}: {name} = {value!r}, expected {_KINDS.get(kind, kind.__name__)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise TableError(f"{where}: {name} = {value!r}, expected a finite number")
    return value


_KINDS: dict[type[Any], str] = {
    float: "a number",
    int: "an integer",
    str: "a text",
    list: "a list",
    dict: "an object",
}


@contextmanager
def architecture_of(where: str) -> Iterator[None]:
    """Add the file and row to an error about an architecture's field."""
    try:
        yield
    except ArchitectureError as error:
        raise TableError(f"{where}: {error}") from error


def refuse(where: str, message: str) -> NoReturn:
    """Raise TableError about a place in a file."""
    raise TableError(f"{where}: {message}")
