"""A verb as a command: its options are the fields of its request, its result is printed."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from types import ModuleType
from typing import Any

import click

from lpzero import verbs
from lpzero.cli import output, screens
from lpzero.cli.options import format_option, given, parameter, wide_option
from lpzero.options import make, options
from lpzero.verbs.call import call


def command(name: str) -> click.Command:
    """The command of a verb.

    `show_NAME(outcome, request)` of `printers`, if there is one, prints the result as a table;
    `NAME(request)` of `screens`, if there is one, is a context with what is shown meanwhile.
    """
    declared = verbs.module(name)

    @click.pass_context
    def callback(context: click.Context, /, form: str, is_wide: bool, **values: Any) -> None:
        with output.wide(is_wide):
            _call(context, name, declared, form)

    made = click.Command(
        name,
        params=[parameter(entry) for entry in options(declared.Request)],
        callback=callback,
        help=declared.Request.__doc__,
    )
    return wide_option(format_option(made))


def _call(context: click.Context, name: str, declared: ModuleType, form: str) -> None:
    asked = given(context)
    for printing in ("form", "is_wide"):
        asked.pop(printing, None)
    request = make(declared.Request, asked)
    shown: AbstractContextManager[Any] = nullcontext(
        verbs.Screen(not asked.get("quiet"), form == "table", output.note)
    )
    if hasattr(screens, name):
        shown = getattr(screens, name)(request)
    if hasattr(declared, "out"):
        request = replace(request, out=declared.out(request))
    is_resumed = hasattr(request, "resume") and request.out is not None
    more = ("--out", str(request.out), "--resume") if is_resumed else ()
    # Verbs that share work among processes save what is finished.
    is_saved = any(entry.name == "jobs" for entry in options(declared.Request))
    stopped = screens.stopped_with(context, *more) if is_saved else nullcontext()
    with shown as screen, stopped:
        outcome = call(name, request, screen)
    if form == "json":
        output.print_json(outcome.result)
    else:
        from lpzero.cli import printers

        getattr(printers, f"show_{name}", _show)(outcome, request)
    if outcome.then is not None:
        outcome.then()


def _show(outcome: verbs.Outcome, request: Any) -> None:
    """Print `head`, `rows` with a `title`, `lines`; or a `text` as it is; by default all rows."""
    about = outcome.about
    if "text" in about:
        click.echo(about["text"], nl=False)
        return
    rows = about.get("rows", outcome.result if isinstance(outcome.result, list) else None)
    if rows is None and "lines" not in about:
        output.print_json(outcome.result)
        return
    for line in about.get("head", ()):
        output.say(line)
    if rows is not None:
        output.print_rows(rows, "table", about.get("title"), about.get("significant", ()))
    for line in about.get("lines", ()):
        output.say(line)
