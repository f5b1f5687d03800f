"""`lpzero tables`: the tables, and how to download them."""

from __future__ import annotations

import dataclasses
import sys
import time

import click

from lpzero.cli.options import data_option, format_option
from lpzero.cli.output import note, print_json, print_rows


@click.group(invoke_without_command=True)
@format_option
@data_option
@click.pass_context
def tables(context: click.Context, form: str, data: str | None) -> None:
    """List the tables: size, whether present, target, licence."""
    if context.invoked_subcommand is None:
        from spaces.tables import describe

        print_rows([dataclasses.asdict(entry) for entry in describe(data)], form)


@tables.command()
@click.argument("name")
@click.option("--force", is_flag=True, help="Replace existing files that differ.")
@format_option
@data_option
@click.pass_context
def fetch(context: click.Context, name: str, force: bool, form: str, data: str | None) -> None:
    """Download and verify the table NAME into the data root."""
    from lpzero.downloads.fetch import fetch as fetch_table

    parent = context.parent
    typed = click.core.ParameterSource.COMMANDLINE
    if parent and typed != context.get_parameter_source("data"):
        # `lpzero tables --data FOLDER fetch NAME` means the same.
        data = parent.params["data"]
    line = ProgressLine(name)
    try:
        fetched = fetch_table(name, data, force=force, progress=line.show)
    finally:
        line.close()
    if form == "json":
        print_json({"name": name, "path": str(fetched.path), "downloaded": fetched.downloaded})
    else:
        state = "downloaded and verified" if fetched.downloaded else "already present and complete"
        click.echo(f"{name}: {state}, {fetched.path}")


class ProgressLine:
    """One line on stderr, updated in place on a terminal and printed once elsewhere."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.text = ""
        self.shown_at = 0.0

    def show(self, done: int, total: int | None) -> None:
        """Show how many bytes are downloaded."""
        share = f" of {total / 1e6:.1f} MB ({done / total:.0%})" if total else " MB"
        self.text = f"{self.name}: {done / 1e6:.1f}{share}"
        now = time.monotonic()
        if sys.stderr.isatty() and now - self.shown_at > 0.1:
            self.shown_at = now
            click.echo(f"\r{self.text}", err=True, nl=False)

    def close(self) -> None:
        """Print the final state."""
        if self.text:
            note(f"\r{self.text}" if sys.stderr.isatty() else self.text)
