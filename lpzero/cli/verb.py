"""A verb as a command: its options are the fields of its request, its result is printed."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

import click

from lpzero import verbs
from lpzero.cli import output
from lpzero.cli.interruption import stopped_with
from lpzero.cli.options import format_option, given, parameter
from lpzero.options import make, options
from lpzero.verbs.call import call


def command(name: str) -> click.Command:
    """The command of a verb.

    A module of the same name beside this one, if there is one, has `show(outcome, request)`, which
    prints the result as a table, and may have `screen(request)`, a context with what is shown
    meanwhile.
    """
    declared = verbs.module(name)

    @click.pass_context
    def callback(context: click.Context, /, form: str, **values: Any) -> None:
        _call(context, name, declared, form)

    made = click.Command(
        name,
        params=[parameter(entry) for entry in options(declared.Request)],
        callback=callback,
        help=declared.Request.__doc__,
    )
    return format_option(made)


def _call(context: click.Context, name: str, declared: ModuleType, form: str) -> None:
    asked = given(context)
    asked.pop("form", None)
    request = make(declared.Request, asked)
    printer = _printer(name)
    shown: AbstractContextManager[Any] = nullcontext(
        verbs.Screen(not asked.get("quiet"), form == "table", output.note)
    )
    if printer is not None and hasattr(printer, "screen"):
        shown = printer.screen(request)
    if hasattr(declared, "out"):
        request = replace(request, out=declared.out(request))
    is_resumed = hasattr(request, "resume") and request.out is not None
    more = ("--out", str(request.out), "--resume") if is_resumed else ()
    with shown as screen, stopped_with(context, *more):
        outcome = call(name, request, screen)
    if form == "json":
        output.print_json(outcome.result)
    elif printer is not None:
        printer.show(outcome, request)
    else:
        _show(outcome)


def _show(outcome: verbs.Outcome) -> None:
    """Print what a terminal shows: `head`, `rows` with a `title`, `lines`; by default all rows."""
    about = outcome.about
    rows = about.get("rows", outcome.result if isinstance(outcome.result, list) else None)
    if rows is None and "lines" not in about:
        output.print_json(outcome.result)
        return
    for line in about.get("head", ()):
        click.echo(output.printable(line))
    if rows is not None:
        output.print_rows(rows, "table", about.get("title"), about.get("significant", ()))
    for line in about.get("lines", ()):
        click.echo(output.printable(line))


def _printer(name: str) -> ModuleType | None:
    place = f"{__package__}.{name}"
    return import_module(place) if find_spec(place) is not None else None
