"""Table files to checked values; an error names the file and the field in one line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from spaces.errors import ArchitectureError, TableError, shown
from spaces.untrusted import UntrustedError, parse_json, read_regular

if TYPE_CHECKING:
    from collections.abc import Iterator

T = TypeVar("T")
# In bytes; the largest published files have 0.45 MB (JSON) and 0.05 MB (YAML).
LARGEST = 8 << 20
LARGEST_YAML = 512 << 10
_MAX_DEPTH = 20
_MOST_COLONS = 10


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How a file is read: its target, which way is better, its column of ids, its task.

    With `impute` numbers that few rows lack are medians, with `categories` texts are indicators.
    """

    target: str | None = None
    smaller_is_better: bool = False
    ids: str | None = None
    task: str | None = None
    impute: bool = False
    categories: bool = False

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values; the last two only where they are set, as earlier runs have."""
        fields = asdict(self)
        return {k: v for k, v in fields.items() if v or k not in ("impute", "categories")}


def read_text(path: Path, largest: int = LARGEST) -> str:
    """The text of a regular file of limited size."""
    try:
        return read_regular(path, largest).decode("utf-8")
    except FileNotFoundError:
        raise TableError(f"{path}: the file is missing") from None
    except UnicodeDecodeError as error:
        raise TableError(f"{path}: not UTF-8 text (byte {error.start})") from error
    except UntrustedError as error:
        raise TableError(str(error)) from None
    except OSError as error:
        raise TableError(f"{path}: cannot be read ({error.strerror})") from error


def read_json(path: Path, largest: int = LARGEST) -> Any:
    """The file's JSON value."""
    text = read_text(path, largest)
    try:
        return parse_json(text, path)
    except UntrustedError as error:
        raise TableError(str(error)) from None


def read_yaml(path: Path, largest: int = LARGEST_YAML) -> Any:
    """The file's YAML value; plain data only."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = read_text(path, largest)
    try:
        _check_events(yaml.parse(text, Loader=loader), path)
        return yaml.load(text, Loader=loader)  # noqa: S506 (one of the two safe loaders)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f" at line {mark.line + 1} column {mark.column + 1}" if mark else ""
        raise TableError(f"{path}: broken YAML{place}") from error
    except (ValueError, OverflowError, AttributeError, LookupError, TypeError) as error:
        # Such as a date of month 13, or a number of thousands of digits.
        if isinstance(error, TableError):
            raise
        raise TableError(
            f"{path}: a value that YAML cannot hold ({type(error).__name__})"
        ) from None


def _check_events(events: Iterable[Any], path: Path) -> None:
    """Raise TableError for what a small file can make endless: nesting and aliases.

    libyaml parses without recursion, but building the values recurses in C, beyond any limit of
    Python; an alias of an alias doubles what is built.
    """
    import yaml

    depth = 0
    for event in events:
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.AliasEvent):
            raise TableError(f"{path}: YAML with aliases, which are not read: write the value out")
        elif isinstance(event, yaml.ScalarEvent) and _is_long_sexagesimal(event.value):
            raise TableError(f"{path}: a number with more than {_MOST_COLONS} colons")
        if depth > _MAX_DEPTH:
            raise TableError(f"{path}: YAML that is nested too deeply")


def _is_long_sexagesimal(text: str) -> bool:
    """Whether it is a number to base 60, as YAML reads 1:30:00, that takes long to compute."""
    return text.count(":") > _MOST_COLONS and not text.strip("0123456789:_.+-")


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
        value = _to_float(value, f"{where}: {name}")
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        expected = _KINDS.get(kind, kind.__name__)
        raise TableError(f"{where}: {name} = {shown(value)}, expected {expected}")
    if isinstance(value, float) and not math.isfinite(value):
        raise TableError(f"{where}: {name} = {value!r}, expected a finite number")
    return value


def _to_float(value: int, where: str) -> float:
    try:
        return float(value)
    except OverflowError:
        raise TableError(f"{where} = {shown(value)}, expected a finite number") from None


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
