"""Settings as dataclasses: each field carries its help text, its bounds and its option.

    @dataclass(frozen=True, slots=True)
    class Settings:
        population: int = option(100, "Formulas that survive.", Whole(2, 100_000))

The command line's options (`lpzero.cli.options`), the validation (`check`), the JSON (`to_json`,
`from_json`) and the words of a printed command (`Option.words`) are all derived from these fields,
so no second list has to be maintained.

A request of a verb is such a dataclass too. It may have positional arguments (`argument`), other
dataclasses whose options become its own (`group`), and settings of which only the given ones are
kept (`given_of`); `make` builds it from flat values, `chosen` gives these values back. An option
that `is_code` may be the address of an object in a Python file of the user's, my_module.py:NAME,
and `make` runs that file: the values must come from the command line or from Python, never from a
file.
"""

from __future__ import annotations

import dataclasses
import math
import numbers
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from lpzero.errors import InputError
from primitives.errors import did_you_mean
from spaces.memory import UNITS, read_bytes

_KEY, _GROUP, _GIVEN = "option", "group", "given"
# The panels of a help page, in their order: --help shows the first, --help-all the others too.
PANELS = (
    COMMON := "common",
    TABLE_FILE := "table file",
    NETWORKS := "networks",
    LANGUAGE := "language",
    EVOLUTION := "evolution",
    LOOP := "loops",
    BOUNDS := "bounds",
    SUPERNET := "supernet",
    FORMS := "forms",
    JUDGEMENT := "judgement",
    PAPERS := "reproduction of the papers",
    CLUSTER := "machine and cluster",
)
FORMER = "former"  # accepted, but shown on no help page: another option does the same
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ValueKind:
    """How a setting's values are validated, and how the command line spells them.

    `python` is the type of the values in Python.
    """

    python: ClassVar[str] = "str"

    def check(self, name: str, value: Any) -> None:
        """Raise InputError unless the value is allowed."""
        raise NotImplementedError

    def read(self, text: str) -> Any:
        """The value of a command line argument, not yet validated by `check`."""
        return text

    def words(self, flag: str, value: Any) -> list[str]:
        """The command line arguments that set the value."""
        return [flag, str(value)]


@dataclass(frozen=True, slots=True)
class Whole(ValueKind):
    """A whole number within bounds; `none`, if given, is the argument that means None."""

    python: ClassVar[str] = "int"
    least: int | None = None
    most: int | None = None
    none: str | None = None

    def check(self, name: str, value: Any) -> None:
        if value is None and self.none is not None:
            return
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            raise InputError(f"{name} is {value!r}, expected a whole number")
        _check_bounds(name, int(value), self.least, self.most)

    def read(self, text: str) -> int | None:
        return None if text == self.none else int(text)

    def words(self, flag: str, value: Any) -> list[str]:
        return [flag, self.none if value is None and self.none else str(value)]


SEED = Whole(0, (1 << 32) - 1)  # what every generator of random numbers takes


@dataclass(frozen=True, slots=True)
class Real(ValueKind):
    """A finite number within bounds; `is_open` excludes the lower one."""

    python: ClassVar[str] = "float"
    least: float | None = None
    most: float | None = None
    is_open: bool = False

    def check(self, name: str, value: Any) -> None:
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise InputError(f"{name} is {value!r}, expected a number")
        try:
            number = float(value)
        except OverflowError:  # an integer of hundreds of digits
            number = math.inf
        if not math.isfinite(number):
            raise InputError(f"{name} is {number:g}, expected a finite number")
        if self.is_open and number == self.least:
            raise InputError(f"{name} is {number:g}, expected more than {self.least:g}")
        _check_bounds(name, number, self.least, self.most)

    def read(self, text: str) -> float:
        return float(text)


SHARE = Real(0, 1)


@dataclass(frozen=True, slots=True)
class Text(ValueKind):
    """Any text; `metavar` says in a usage line what it is."""

    metavar: str | None = None

    def check(self, name: str, value: Any) -> None:
        if not isinstance(value, (str, Path)):
            raise InputError(f"{name} is {value!r:.60}, expected text")


@dataclass(frozen=True, slots=True)
class Place(Text):
    """The path of a file or a folder, or of either."""

    python: ClassVar[str] = "str | Path"
    may_be_file: bool = True
    may_be_folder: bool = True


FOLDER, FILE = Place(may_be_file=False), Place(may_be_folder=False)


@dataclass(frozen=True, slots=True)
class OneOf(ValueKind):
    """One of the known names; `what` describes in error messages what is being named.

    `reads`, if given, translates the user's spelling, such as an abbreviation, into a known name.
    """

    what: str
    known: Collection[str]
    is_optional: bool = False
    reads: Callable[[str], str] | None = None

    def check(self, name: str, value: Any) -> None:
        if not (value is None and self.is_optional):
            _check_known(self.what, [value], self.known)

    def read(self, text: str) -> str:
        return text if self.reads is None else self.reads(text)

    def words(self, flag: str, value: Any) -> list[str]:
        return [] if value is None else [flag, str(value)]


@dataclass(frozen=True, slots=True)
class Device(Text):
    """A device of torch: auto, or a kind of device and, of several, which one, as in cuda:1."""

    kinds: ClassVar[tuple[str, ...]] = ("auto", "cpu", "cuda", "mps", "xpu")
    metavar: str | None = "auto|cpu|cuda[:N]|mps|xpu[:N]"

    def check(self, name: str, value: Any) -> None:
        kind, number = str(value).partition(":")[::2]
        is_numbered = kind in ("cuda", "xpu") and re.fullmatch(r"\d{1,4}", number)
        _check_known(name, [kind if is_numbered else value], self.kinds)


@dataclass(frozen=True, slots=True)
class SomeOf(ValueKind):
    """Several of the known names in one argument, separated by commas or, for letters, by nothing.

    `shorthand` maps words to whole tuples, such as "off" to the empty one.
    """

    python: ClassVar[str] = "Sequence[str]"
    what: str
    known: Collection[str]
    separator: str = ","
    may_be_empty: bool = False
    shorthand: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def check(self, name: str, value: Any) -> None:
        is_one_text = isinstance(value, str) and self.separator  # "GJ" is two letters
        if is_one_text or not isinstance(value, Iterable):
            raise InputError(f"{name} is {value!r}, expected a list of names")
        names = list(value)
        _check_known(self.what, names, self.known)
        if not names and not self.may_be_empty:
            raise InputError(f"no {self.what} is given; {did_you_mean('', self.known)}")
        _check_distinct(self.what, names)

    def read(self, text: str) -> tuple[str, ...]:
        for word, value in self.shorthand:
            if text == word:
                return value
        if not self.separator:
            return tuple(text.replace(",", "").replace(" ", ""))
        return tuple(part.strip() for part in text.split(self.separator))

    def words(self, flag: str, value: Any) -> list[str]:
        for word, meaning in self.shorthand:
            if tuple(value) == meaning:
                return [flag, word]
        return [flag, self.separator.join(value)]


@dataclass(frozen=True, slots=True)
class Names(ValueKind):
    """Several names in one argument, separated by commas; what they name is checked later."""

    python: ClassVar[str] = "Sequence[str]"
    what: str

    def check(self, name: str, value: Any) -> None:
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise InputError(f"{name} is {value!r}, expected a list of names")
        names = list(value)
        if not all(isinstance(entry, str) and entry for entry in names):
            raise InputError(f"{name}: a {self.what} has no name")
        _check_distinct(self.what, names)

    def read(self, text: str) -> tuple[str, ...]:
        return tuple(part.strip() for part in text.split(","))

    def words(self, flag: str, value: Any) -> list[str]:
        return [flag, ",".join(value)] if value else []


@dataclass(frozen=True, slots=True)
class Repeated(ValueKind):
    """A list of strings; the option is repeated for each of them."""

    python: ClassVar[str] = "Sequence[str]"
    metavar: str

    def check(self, name: str, value: Any) -> None:
        if isinstance(value, str) or not all(isinstance(text, str) for text in value):
            raise InputError(f"{name} is {value!r}, expected a list of strings")

    def words(self, flag: str, value: Any) -> list[str]:
        return [word for text in value for word in (flag, text)]


@dataclass(frozen=True, slots=True)
class Switch(ValueKind):
    """False unless the option is given; `off` is the one that undoes what a preset turned on."""

    python: ClassVar[str] = "bool"
    off: str | None = None

    def check(self, name: str, value: Any) -> None:
        if not isinstance(value, bool):
            raise InputError(f"{name} is {value!r}, expected true or false")

    def words(self, flag: str, value: Any) -> list[str]:
        if value:
            return [flag]
        return [self.off] if self.off else []


@dataclass(frozen=True, slots=True)
class Bytes(ValueKind):
    """An amount of memory in bytes, spelled 4GB, 512MB or 4 (gigabytes)."""

    python: ClassVar[str] = "int"

    def check(self, name: str, value: Any) -> None:
        Whole(1).check(name, value)

    def read(self, text: str) -> int:
        return read_bytes(text)

    def words(self, flag: str, value: Any) -> list[str]:
        unit = next(name for name in ("GB", "MB", "B") if value % UNITS[name] == 0)
        return [flag, f"{value // UNITS[unit]}{unit}"]


def option(
    default: T,
    help: str,
    kind: ValueKind,
    flag: str | None = None,
    *,
    is_local: bool = False,
    is_code: bool = False,
    variable: str | None = None,
    panel: str = COMMON,
    former: tuple[str, ...] = (),
) -> T:
    """A field of a frozen dataclass that is also an option.

    `flag` is the option's spelling if it differs from the field's name, `panel` the part of the
    help page that it stands on, `former` are names that it had before. The result does not depend
    on an option that `is_local`: it says where or how long to work, and is not part of the command
    that reproduces a run. One that `is_code` may name code of the user's, which `make` runs.
    `variable` is the environment variable that sets it, too.
    """
    if isinstance(kind, Switch) and default:
        raise TypeError("a switch that is on by default could not be turned off")
    about = {"help": help, "kind": kind, "flag": flag, "variable": variable}
    about |= {"is_local": is_local, "is_code": is_code, "panel": panel, "former": former}
    made: T = dataclasses.field(default=default, metadata={_KEY: about})
    return made


def argument(metavar: str, default: Any = MISSING, *, is_code: bool = False) -> Any:
    """A field that is a positional argument; several values if its default is an empty tuple."""
    kind = Repeated(metavar) if default == () else Text(metavar)
    about = {"help": "", "kind": kind, "is_argument": True, "is_code": is_code}
    return dataclasses.field(default=default, metadata={_KEY: about})


def group(kind: type[T]) -> T:
    """A field that holds a dataclass whose options belong to the outer one."""
    made: T = dataclasses.field(default_factory=kind, metadata={_GROUP: kind})
    return made


def given_of(entries: Callable[[], Sequence[Option]]) -> dict[str, Any]:
    """A field that holds, by name, the values of those of the options that were given."""
    made: dict[str, Any] = dataclasses.field(default_factory=dict, metadata={_GIVEN: entries})
    return made


@dataclass(frozen=True, slots=True)
class Option:
    """A setting as a command line option, or as a positional argument."""

    name: str
    help: str
    kind: ValueKind
    flag: str
    default: Any
    is_local: bool = False
    is_code: bool = False
    variable: str | None = None
    is_argument: bool = False
    panel: str = COMMON
    former: tuple[str, ...] = ()

    @property
    def former_flags(self) -> list[str]:
        """The flags of the names that the option had before."""
        return [_flag(name) for name in self.former]

    def addresses(self, value: Any) -> list[str]:
        """The addresses of code in the value, if the option may have some."""
        texts = [value] if isinstance(value, str) else value if isinstance(value, Sequence) else []
        return [text for text in texts if self.is_code and ":" in str(text)]

    def words(self, value: Any) -> list[str]:
        """The command line arguments that set the value."""
        words = self.kind.words(self.flag, value)
        return [word for word in words if word != self.flag] if self.is_argument else words

    def shown(self, value: Any) -> str:
        """The value as a user writes it; empty if the option takes no value."""
        return " ".join(self.words(value)[1:])


def options(settings: Any) -> list[Option]:
    """The options of a dataclass or an instance of it, in the order of its fields."""
    entries: list[Option] = []
    for field in dataclasses.fields(settings):
        if _KEY in field.metadata:
            about = dict(field.metadata[_KEY])
            spelled = about.pop("flag", None) or _flag(field.name)
            entries.append(Option(field.name, flag=spelled, default=field.default, **about))
        elif _GROUP in field.metadata:
            entries += options(field.metadata[_GROUP])
        elif _GIVEN in field.metadata:
            entries += field.metadata[_GIVEN]()
    return entries


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def with_presets(settings: Any, presets: Mapping[str, Any]) -> list[Option]:
    """The options of settings, whose help texts show the value of the first of the presets.

    Values of the other presets, by name, follow where they differ.
    """
    (_, first), *others = presets.items()
    entries = []
    for entry in options(settings):
        value = getattr(first, entry.name)
        shown = [_shown(entry, value)]
        for name, other in others:
            if getattr(other, entry.name) != value:
                shown.append(f"{name}: {_shown(entry, getattr(other, entry.name))}")
        is_plain = isinstance(entry.kind, Switch) and len(shown) == 1
        text = "" if is_plain or shown == [""] else f"  [default: {'; '.join(shown)}]"
        entries.append(dataclasses.replace(entry, help=entry.help + text, default=None))
    return entries


def _shown(entry: Option, value: Any) -> str:
    return ("on" if value else "off") if isinstance(entry.kind, Switch) else entry.shown(value)


def shared_options(settings: Mapping[str, Any]) -> list[Option]:
    """One option for each field name in several settings, given by the name of their owner.

    The help text lists the owners with their defaults. Bounds are left to the settings' own
    checks, because they may differ.
    """
    by_name: dict[str, dict[str, Option]] = {}
    for owner, declared in settings.items():
        for entry in options(declared):
            by_name.setdefault(entry.name, {})[owner] = entry
    return [_shared(owners) for owners in by_name.values()]


def _shared(owners: Mapping[str, Option]) -> Option:
    first = next(iter(owners.values()))
    texts: dict[str, list[str]] = {}
    for owner, entry in owners.items():
        if type(entry.kind) is not type(first.kind) or entry.flag != first.flag:
            raise TypeError(f"{first.flag} means different kinds of value: rename one of them")
        shown = entry.shown(entry.default)
        texts.setdefault(entry.help.rstrip("."), []).append(f"{owner}: {shown}" if shown else owner)
    text = "; ".join(f"{help} ({', '.join(of)})" for help, of in texts.items())
    kinds: list[type[Whole] | type[Real]] = [k for k in (Whole, Real) if isinstance(first.kind, k)]
    kind = kinds[0]() if kinds else first.kind
    return dataclasses.replace(first, help=f"{text}.", kind=kind, default=None)


def make(kind: type[T], given: Mapping[str, Any]) -> T:
    """The request with the given values, by the names of its options; raise InputError if wrong."""
    entries = {entry.name: entry for entry in options(kind)}
    given = renamed(kind, given)
    for name in given:
        if name not in entries:
            raise InputError(f"unknown option {name!r}; {did_you_mean(name, entries)}")
    for name, entry in entries.items():
        if entry.is_argument and entry.default is MISSING and name not in given:
            raise InputError(f"no {name} given")
    made = _made(kind, given)
    for name, entry in entries.items():
        for address in entry.addresses(given.get(name)):
            from spaces.user_modules import load_address  # most commands need none

            load_address(address)
    return made


def renamed(kind: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The values by the names that the options have now, where former ones are given."""
    now = {former: entry.name for entry in options(kind) for former in entry.former}
    return {now.get(name, name): value for name, value in given.items()}


def _made(kind: type[T], given: Mapping[str, Any]) -> T:
    values: dict[str, Any] = {}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        if _GROUP in field.metadata:
            inner = field.metadata[_GROUP]
            names = {entry.name for entry in options(inner)}
            values[field.name] = _made(inner, {k: v for k, v in given.items() if k in names})
        elif _GIVEN in field.metadata:
            names = {entry.name for entry in field.metadata[_GIVEN]()}
            values[field.name] = {k: v for k, v in given.items() if k in names}
        elif field.name in given:
            values[field.name] = given[field.name]
    made = kind(**values)
    check(made)
    return made


def chosen(request: Any) -> dict[str, Any]:
    """The values of a request that are not its defaults, by the names of its options, as JSON."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(request):
        value = getattr(request, field.name)
        if _GROUP in field.metadata:
            values |= chosen(value)
        elif _GIVEN in field.metadata:
            values |= {name: _plain(entry) for name, entry in value.items()}
        elif _KEY in field.metadata and (field.default is MISSING or value != field.default):
            values[field.name] = _plain(value)
    return values


def check(settings: Any) -> None:
    """Raise InputError unless every setting has a value that its declaration allows."""
    for field in dataclasses.fields(settings):
        if _KEY not in field.metadata or field.metadata[_KEY].get("is_argument"):
            continue
        value = getattr(settings, field.name)
        if not (value is None and field.default is None):
            field.metadata[_KEY]["kind"].check(field.name.replace("_", "-"), value)


def to_json(settings: Any) -> dict[str, Any]:
    """The settings that are options as plain JSON values."""
    values = {entry.name: getattr(settings, entry.name) for entry in options(settings)}
    return {name: _plain(value) for name, value in values.items()}


def from_json(kind: type[T], value: Mapping[str, Any]) -> T:
    """The settings from the values of `to_json`."""
    names = {entry.name for entry in options(kind)}
    if set(value) != names:
        differing = ", ".join(sorted(set(value) ^ names))
        raise InputError(f"settings have missing or unknown fields: {differing}")
    return kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in value.items()})


def _plain(value: Any) -> Any:
    if isinstance(value, Set):
        return sorted(value)
    if isinstance(value, Path):
        return str(value)
    return [_plain(entry) for entry in value] if isinstance(value, tuple) else value


def _check_distinct(what: str, names: Sequence[str]) -> None:
    if len(set(names)) < len(names):
        raise InputError(f"a {what} is repeated: {', '.join(names)}")


def _check_known(what: str, names: Iterable[Any], known: Collection[str]) -> None:
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise InputError(f"unknown {what} {name!r}; {did_you_mean(str(name), known)}")


_LONGEST = 10**308  # larger integers have no float, which a format converts to


def _check_bounds(name: str, value: float, least: float | None, most: float | None) -> None:
    if (least is None or value >= least) and (most is None or value <= most):
        return
    if least is not None and most is not None:
        bounds = f"{least:,} to {most:,}"
    else:
        bounds = f"at least {least:,}" if least is not None else f"at most {most:,}"
    shown = f"{value:,.10g}" if abs(value) < _LONGEST else "a number of hundreds of digits"
    raise InputError(f"{name} is {shown}, expected {bounds}")
