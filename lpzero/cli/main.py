"""The `lpzero` command: verbs by name, imported when called; every error one line.

Exit codes: 0 done, 2 bad input, 1 failure, 130 interrupted (Ctrl-C or SIGTERM).
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Sequence
from typing import Any

import click

from lpzero.cli.screens import terminable
from lpzero.verbs import commands
from lpzero.version import DOCUMENTATION, VERSION

# Set it to see where an unexpected error comes from.
TRACEBACK_VARIABLE = "LPZERO_TRACEBACK"
PLUGIN = "--plugin"


class LazyGroup(click.Group):
    """A group that imports a verb's module only when the verb is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(commands())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in commands():
            return None
        from lpzero.cli.verb import command

        made = command(cmd_name)
        add_plugin_option(made)
        return made

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(commands().items()))

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write(f"\nDocumentation: {DOCUMENTATION}\n")

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and not args[0].startswith("-") and args[0] not in commands():
            from primitives.errors import did_you_mean

            hint = did_you_mean(args[0], commands())
            raise click.UsageError(f"unknown command {args[0]!r}; {hint}")
        return super().resolve_command(ctx, args)


@click.group(
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(VERSION, prog_name="lpzero")
@click.pass_context
def cli(context: click.Context) -> None:
    """Discover formulas that rank untrained transformers by how well they would train."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def _print_log() -> None:
    """Print what the packages log as notes on stderr."""
    from lpzero.cli.output import NoteHandler

    for name in ("lpzero", "primitives", "spaces"):
        log = logging.getLogger(name)
        if not any(isinstance(handler, NoteHandler) for handler in log.handlers):
            log.addHandler(NoteHandler(logging.WARNING))


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its exit code."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """The exit code of a command; its errors are already on stderr."""
    _print_log()
    if sys.stdout is None or sys.stderr is None:
        # A file that is opened now would get the number of the closed one, and be written to.
        _complain("error: stdout or stderr is closed; send it to a file or to /dev/null")
        return 2
    try:
        with terminable():
            run_plugins(arguments)
            # A verb that is stopped prints these arguments again.
            given = list(arguments)
            result = cli.main(given, prog_name="lpzero", standalone_mode=False, obj=tuple(given))
        sys.stdout.flush()
    except (KeyboardInterrupt, click.Abort):
        _complain("interrupted")
        return 130
    except BrokenPipeError:
        # The reader closed the pipe; flushing the rest of the buffer must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        message, code = explain(error)
        _complain(f"error: {message}")
        return code
    # --help and --version end with a code of their own.
    return result if isinstance(result, int) else 0


def explain(error: Exception) -> tuple[str, int]:
    """The error in one line, and its exit code."""
    if isinstance(error, click.ClickException):
        context = getattr(error, "ctx", None)
        hint = f" (see {context.command_path} --help)" if context else ""
        return _one_line(error.format_message() + hint), error.exit_code
    from spaces.memory import NOT_ENOUGH, is_out_of_memory

    if isinstance(error, _project_errors()):
        return _one_line(error), 2 if isinstance(error, (ValueError, LookupError)) else 1
    if is_out_of_memory(error):
        return NOT_ENOUGH, 2
    if isinstance(error, UnicodeEncodeError):  # a file's name may have bytes that are no text
        given = error.object[max(error.start - 40, 0) : error.end + 40]
        return _one_line(f"{given!r} is not text in UTF-8: rename the file"), 2
    if isinstance(error, OSError):
        place = f"{error.filename}: " if error.filename else ""
        is_input = isinstance(error, (FileNotFoundError, PermissionError, IsADirectoryError))
        return _one_line(f"{place}{error.strerror or error}"), 2 if is_input else 1
    name = type(error).__name__
    return _one_line(f"unexpected {name}: {error} (set {TRACEBACK_VARIABLE}=1 to see where)"), 1


def _project_errors() -> tuple[type[Exception], ...]:
    """The root error classes of the three packages."""
    from lpzero.errors import LPZeroError
    from spaces.errors import SpaceError

    roots: list[type[Exception]] = [LPZeroError, SpaceError]
    # Only if the command imported the primitives; otherwise their errors cannot occur.
    # The two packages are side by side, at the top or, in a wheel, below lpzero.
    loaded = sys.modules.get(SpaceError.__module__.replace("spaces", "primitives"))
    if loaded is not None:
        roots.append(loaded.PrimitiveError)
    return tuple(roots)


def run_plugins(arguments: Sequence[str]) -> None:
    """Run the files of --plugin, before a command derives its options from what they declare."""
    from itertools import takewhile

    words = list(takewhile(lambda word: word != "--", arguments))
    named = [words[i + 1] for i, word in enumerate(words[:-1]) if word == PLUGIN]
    named += [word.partition("=")[2] for word in words if word.startswith(f"{PLUGIN}=")]
    if named:
        from lpzero import plugins
        from lpzero.cli.output import note

        for name in named:
            note(f"note: running your plug-in {name}")
            plugins.load(name)


def add_plugin_option(command: click.Command) -> None:
    """Give the command the option that `run_plugins` has read."""
    from lpzero.cli.options import PanelOption
    from lpzero.options import CLUSTER

    text = "A Python file or module of your own, which is run first; repeatable."
    made = PanelOption(
        [PLUGIN], CLUSTER, multiple=True, expose_value=False, metavar="FILE.py", help=text
    )
    command.params.append(made)


def _one_line(message: Any) -> str:
    from lpzero.cli.output import printable

    return printable(" ".join(str(message).split()))


def _complain(line: str) -> None:
    if sys.stderr is not None:  # else print would write to stdout
        from lpzero.cli.output import note

        note(line)


if __name__ == "__main__":
    main()
