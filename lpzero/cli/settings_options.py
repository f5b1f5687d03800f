"""Command-line options derived from the fields of settings (`lpzero.options`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from lpzero.errors import InputError
from lpzero.options import (
    Bytes,
    Names,
    OneOf,
    Option,
    Real,
    Repeated,
    SomeOf,
    Switch,
    ValueKind,
    Whole,
    options,
)

Command = TypeVar("Command", bound=Callable[..., Any])
if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType  # which takes no type before click 8.4


class _Word(_ParamType):
    """A word that the setting's kind parses."""

    def __init__(self, kind: ValueKind, name: str) -> None:
        self.kind, self.name = kind, name

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        if not isinstance(value, str):
            return value
        try:
            return self.kind.read(value)
        except (InputError, ValueError) as error:
            self.fail(str(error), param, ctx)


class _NumberOr(click.IntRange):
    """A whole number within bounds, or the word that stands for None."""

    def __init__(self, kind: Whole) -> None:
        super().__init__(kind.least, kind.most)
        self.none = kind.none

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str:
        return f"INTEGER|{self.none}"

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        return None if value == self.none else super().convert(value, param, ctx)


def settings_options(
    settings: Any, presets: Mapping[str, Any] | None = None
) -> Callable[[Command], Command]:
    """A decorator that gives a command an option for each setting of a dataclass.

    An option that is not given is None, or an empty tuple. The help text shows the default; if
    there are several presets (by name), also each one's value that differs from the first's.
    """

    def decorate(command: Command) -> Command:
        for entry in reversed(options(settings)):
            command = click_option(entry, entry.help + _defaults(entry, presets))(command)
        return command

    return decorate


def shared_options(settings: Mapping[str, Any]) -> list[Option]:
    """One option for each field name in several settings, given by the name of their owner.

    The help text lists the owners with their defaults. Bounds are left to the settings' own
    checks, because they may differ.
    """
    found: dict[str, dict[str, Option]] = {}
    for owner, declared in settings.items():
        for entry in options(declared):
            found.setdefault(entry.name, {})[owner] = entry
    return [_shared(owners) for owners in found.values()]


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
    return replace(first, help=f"{text}.", kind=kinds[0]() if kinds else first.kind)


def given_settings(
    context: click.Context, entries: Iterable[Option], given: Mapping[str, Any]
) -> dict[str, Any]:
    """The settings whose options were given on the command line, by field."""
    return {
        entry.name: given[entry.name]
        for entry in entries
        if context.get_parameter_source(entry.name) is ParameterSource.COMMANDLINE
    }


def click_option(entry: Option, text: str) -> Callable[[Command], Command]:
    """The click option of one setting."""
    names, kind = (entry.flag, entry.name), entry.kind
    if isinstance(kind, Switch):
        both = f"{entry.flag}/{kind.off}" if kind.off else entry.flag
        return click.option(both, entry.name, is_flag=True, help=text)
    if isinstance(kind, Repeated):
        return click.option(*names, multiple=True, metavar=kind.metavar, help=text)
    return click.option(*names, type=_type(kind), default=None, help=text)


def _type(kind: ValueKind) -> _ParamType:
    if isinstance(kind, Whole):
        if kind.none is not None:
            return _NumberOr(kind)
        return click.INT if kind == Whole() else click.IntRange(kind.least, kind.most)
    if isinstance(kind, Real):
        return click.FLOAT if kind == Real() else click.FloatRange(kind.least, kind.most)
    if isinstance(kind, OneOf):
        return click.Choice(list(kind.known)) if kind.reads is None else _Word(kind, "name")
    if isinstance(kind, SomeOf):
        return _Word(kind, "names" if kind.separator else "letters")
    if isinstance(kind, Names):
        return _Word(kind, "names")
    assert isinstance(kind, Bytes), f"no option is known for {kind}"
    return _Word(kind, "size")


def _defaults(entry: Option, presets: Mapping[str, Any] | None) -> str:
    if presets is None:
        found: Sequence[str] = [entry.shown(entry.default)] if entry.default is not None else []
    else:
        (_, first), *others = presets.items()
        value = getattr(first, entry.name)
        found = [entry.shown(value)]
        for name, other in others:
            if getattr(other, entry.name) != value:
                found.append(f"{name}: {entry.shown(getattr(other, entry.name))}")
    shown = "; ".join(part for part in found if part)
    return f"  [default: {shown}]" if shown else ""
