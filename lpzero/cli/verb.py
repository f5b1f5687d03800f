"""A verb as a command: its options are the fields of its request, its result is printed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from types import ModuleType
from typing import Any

import click

from lpzero import verbs
from lpzero.cli import output, screens
from lpzero.cli.options import format_option, given, parameter, wide_option
from lpzero.options import COMMON, PANELS, make, options
from lpzero.verbs.call import call
from lpzero.version import DOCUMENTATION

_ALL = "lpzero.help_all"


class VerbCommand(click.Command):
    """A command whose help page has panels, then examples and the documentation's address."""

    def __init__(self, name: str, examples: Sequence[str], **about: Any) -> None:
        super().__init__(name, **about)
        self.examples = examples

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        by_panel: dict[str, list[tuple[str, str]]] = {panel: [] for panel in PANELS}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and not isinstance(param, click.Argument):
                by_panel[getattr(param, "panel", COMMON)].append(record)
        for panel, records in by_panel.items():
            if records and (panel == COMMON or ctx.meta.get(_ALL)):
                with formatter.section(f"{panel[0].upper()}{panel[1:]}"):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples:
                    formatter.write(f"  {line}\n")
        formatter.write(f"\nDocumentation: {DOCUMENTATION}\n")


def _show_all(context: click.Context, option: click.Parameter, is_asked: bool) -> None:
    if is_asked and not context.resilient_parsing:
        context.meta[_ALL] = True
        click.echo(context.get_help())
        context.exit()


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

    made = VerbCommand(
        name,
        getattr(declared, "EXAMPLES", ()),
        params=[parameter(entry) for entry in options(declared.Request)],
        callback=callback,
        help=declared.Request.__doc__,
    )
    wide_option(format_option(made))
    made.params.append(
        click.Option(
            ["--help-all"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_show_all,
            help="Show every option and exit.",
        )
    )
    return made


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
