"""Command-line options derived from fields of requests and settings (`lpzero.options`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, replace
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from lpzero.errors import InputError
from lpzero.options import (
    COMMON,
    FORMER,
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


class PanelOption(click.Option):
    """An option on a panel of the help page, which does not show its former names."""

    def __init__(
        self, names: Sequence[str], panel: str = COMMON, former: Sequence[str] = (), **about: Any
    ) -> None:
        super().__init__([*names, *former], hidden=panel == FORMER, **about)
        self.panel, self.former = panel, former

    def get_help_extra(self, ctx: click.Context) -> Any:
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)  # an error names the bounds
        return extra

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        accepted = self.opts
        self.opts = [flag for flag in accepted if flag not in self.former]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = accepted


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
        return PanelOption([both, entry.name], entry.panel, is_flag=True, help=text)
    about: dict[str, Any] = {"type": _type(kind)}
    if isinstance(kind, Repeated):
        about = {"multiple": True, "metavar": kind.metavar}
    elif isinstance(kind, Text) and kind.metavar is not None:
        about["metavar"] = kind.metavar
    elif isinstance(kind, (Whole, Real)) and getattr(kind, "none", None) is None:
        about["metavar"] = "INTEGER" if isinstance(kind, Whole) else "NUMBER"
    if entry.variable is not None:
        about |= {"envvar": entry.variable, "show_envvar": True}
    names = [entry.flag, entry.name]
    return PanelOption(names, entry.panel, entry.former_flags, help=text, **about)


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
wide_option = click.option("--wide", "is_wide", is_flag=True, help="Print all rows and columns.")
