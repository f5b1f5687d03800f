"""`python -m spaces.training build nano-gpt2 --jobs 2`: trains a nano table."""

from __future__ import annotations

import dataclasses
import sys
import time
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from spaces.errors import SpaceError
from spaces.training.recipes import PLANS, plan_named
from spaces.training.table_builder import build


@click.group()
def training() -> None:
    """Train the architectures of the nano tables."""


@training.command("build")
@click.argument("name")
@click.option("--n", "n_archs", type=click.IntRange(2), help="Architectures (default: the plan's).")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True)
@click.option(
    "--work",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("runs/training"),
    show_default=True,
    help="Folder of the journal and the table; a killed build goes on from here.",
)
def build_command(name: str, n_archs: int | None, jobs: int, work: Path) -> None:
    """Train the table NAME, or go on with it, and print its path."""
    plan = plan_named(name)
    if n_archs is not None:
        repeated = min(plan.n_repeated, n_archs)
        plan = dataclasses.replace(plan, n_archs=n_archs, n_repeated=repeated)
    columns = (TextColumn(name), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    started = time.perf_counter()
    with Progress(*columns, console=Console(stderr=True)) as progress:
        bar = progress.add_task(name, total=None)
        path = build(
            plan, work, jobs, lambda done, total: progress.update(bar, completed=done, total=total)
        )
    click.echo(f"{path} ({time.perf_counter() - started:.0f} s)")


def main() -> int:
    try:
        training(standalone_mode=False)
    except (SpaceError, click.UsageError) as error:
        message = error.format_message() if isinstance(error, click.UsageError) else str(error)
        click.echo(f"error: {message} (tables: {', '.join(PLANS)})", err=True)
        return 2
    except (KeyboardInterrupt, click.Abort):
        click.echo("stopped; the same command goes on from here", err=True)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
