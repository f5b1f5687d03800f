"""Command-line options derived from fields of requests and settings (`lpzero.options`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, replace
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
        is_required = entry.default is MISSING
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


def _option(name: str) -> Callable[[Command], Command]:
    """A decorator that gives a command of an experiment an option that the verbs share."""
    [shared] = [entry for entry in options(groups.Running) if entry.flag == f"--{name}"]
    entry = replace(shared, name=name)  # experiments call it as the command line does

    def decorate(command: Command) -> Command:
        made = parameter(entry)
        made.default = entry.default
        command.__click_params__ = [*getattr(command, "__click_params__", []), made]  # type: ignore[attr-defined]
        return command

    return decorate


data_option, cache_option, jobs_option = map(_option, ("data", "cache", "jobs"))
format_option = click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="The output format.",
)
wide_option = click.option(
    "--wide", "is_wide", is_flag=True, help="Print everything, not only what fits the terminal."
)
