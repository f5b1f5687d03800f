"""Command-line options derived from fields of requests and settings (`lpzero.options`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from lpzero.errors import InputError
from lpzero.options import (
    Bytes,
    Names,
    OneOf,
    Option,
    Place,
    Real,
    Repeated,
    SomeOf,
    Switch,
    Text,
    ValueKind,
    Whole,
    options,
)
from lpzero.verbs import groups

Command = TypeVar("Command", bound=Callable[..., Any])
if TYPE_CHECKING:
    _ParamType = click.ParamType[Any]
else:
    _ParamType = click.ParamType  # which takes no type before click 8.4
_GIVEN = (ParameterSource.COMMANDLINE, ParameterSource.ENVIRONMENT)


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


def parameter(entry: Option) -> click.Parameter:
    """The click parameter of an option or an argument; None, or an empty tuple, if not given."""
    kind = entry.kind
    if entry.is_argument:
        many = isinstance(kind, Repeated)
        is_required = not many and entry.default is not None
        shown = getattr(kind, "metavar", None)
        metavar = shown if is_required else f"[{shown}]"
        return click.Argument(
            [entry.name], nargs=-1 if many else 1, required=is_required, metavar=metavar
        )
    text = entry.help + _default(entry)
    if isinstance(kind, Switch):
        both = f"{entry.flag}/{kind.off}" if kind.off else entry.flag
        return click.Option([both, entry.name], is_flag=True, help=text)
    about: dict[str, Any] = {"type": _type(kind)}
    if isinstance(kind, Repeated):
        about = {"multiple": True, "metavar": kind.metavar}
    elif isinstance(kind, Text) and kind.metavar is not None:
        about["metavar"] = kind.metavar
    if entry.variable is not None:
        about |= {"envvar": entry.variable, "show_envvar": True}
    return click.Option([entry.flag, entry.name], help=text, **about)


def _type(kind: ValueKind) -> _ParamType:
    if isinstance(kind, Whole):
        if kind.none is not None:
            return _NumberOr(kind)
        return click.INT if kind == Whole() else click.IntRange(kind.least, kind.most)
    if isinstance(kind, Real):
        bounds = {"min_open": True} if kind.is_open else {}
        return click.FLOAT if kind == Real() else click.FloatRange(kind.least, kind.most, **bounds)
    if isinstance(kind, OneOf):
        return click.Choice(list(kind.known)) if kind.reads is None else _Word(kind, "name")
    if isinstance(kind, SomeOf):
        return _Word(kind, "names" if kind.separator else "letters")
    if isinstance(kind, Names):
        return _Word(kind, "names")
    if isinstance(kind, Place):
        return click.Path(file_okay=kind.may_be_file, dir_okay=kind.may_be_folder)
    if isinstance(kind, (Text, Repeated)):
        return click.STRING
    assert isinstance(kind, Bytes), f"no option is known for {kind}"
    return _Word(kind, "size")


def _default(entry: Option) -> str:
    shown = "" if entry.default is None else entry.shown(entry.default)
    return f"  [default: {shown}]" if shown else ""


def given(context: click.Context) -> dict[str, Any]:
    """The values that the command line or the environment gives, by name."""
    return {
        name: value
        for name, value in context.params.items()
        if context.get_parameter_source(name) in _GIVEN
    }


def options_of(*entries: Option) -> Callable[[Command], Command]:
    """A decorator that gives a command these options; one that is not given has its default."""

    def decorate(command: Command) -> Command:
        for entry in reversed(entries):
            made = parameter(entry)
            made.default = entry.default
            made.required = False

            def add(function: Any, made: click.Parameter = made) -> Any:
                if isinstance(function, click.Command):
                    function.params.append(made)
                else:
                    function.__click_params__ = [*getattr(function, "__click_params__", []), made]
                return function

            command = add(command)
        return command

    return decorate


def group_options(*kinds: Any) -> Callable[[Command], Command]:
    """A decorator that gives a command every option of these groups."""
    return options_of(*(entry for kind in kinds for entry in options(kind)))


def _named(kind: Any, name: str) -> Callable[[Command], Command]:
    [entry] = [entry for entry in options(kind) if entry.name == name]
    return options_of(entry)


data_option = _named(groups.Running, "data")
cache_option = _named(groups.Running, "cache")
jobs_option = _named(groups.Running, "jobs")
device_option = _named(groups.Running, "device")
definitions_option = _named(groups.Statistics, "definitions")
format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="The output format.",
)
seed_option = click.option(
    "--seed",
    type=int,
    default=0,
    show_default=True,
    help="The seed of untrained networks and batches.",
)


def from_given(kind: Any, values: Mapping[str, Any]) -> Any:
    """The group with those of the values that are its own."""
    from lpzero.options import make

    names = {entry.name for entry in options(kind)}
    return make(kind, {k: v for k, v in values.items() if k in names})


def given_settings(context: click.Context, entries: Iterable[Option]) -> dict[str, Any]:
    """The settings whose options were given on the command line, by field."""
    names = {entry.name for entry in entries}
    return {name: value for name, value in given(context).items() if name in names}
