"""`lpzero train SPACE`: build a nano table by training its architectures."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Any

import click

from lpzero.cli import output
from lpzero.cli.interruption import stopped_with
from lpzero.cli.supernet import refuse_supernet_options, supernet_options, train_supernet


@click.command()
@click.argument("space")
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    help="The run's directory.  [default: runs/train-SPACE]",
)
@click.option(
    "--n",
    "n_archs",
    type=click.IntRange(2),
    help="The number of architectures.  [default: the plan's]",
)
@click.option(
    "--steps", type=click.IntRange(1), help="The number of training steps.  [default: the recipe's]"
)
@click.option("--quiet", is_flag=True, help="Show no progress.")
@supernet_options
@output.no_lock_option
@output.jobs_option
@output.format_option
@click.pass_context
def train(
    context: click.Context,
    /,
    space: str,
    out: str | None,
    n_archs: int | None,
    steps: int | None,
    quiet: bool,
    no_lock: bool,
    jobs: int,
    form: str,
    is_supernet: bool,
    **of_supernet: Any,
) -> None:
    """Train the architectures of a nano SPACE and write them as a table.

    With --supernet, train one supernet of the SPACE: see docs/supernet.md. The same command
    continues a run that was stopped.
    """
    if is_supernet:
        train_supernet(context, context.params)
        return
    refuse_supernet_options(context)
    from lpzero.parallel import Workers
    from lpzero.training.table_build import build_table
    from spaces.training.recipes import plan_named

    plan = plan_named(space)
    if n_archs is not None:
        repeated = min(plan.n_repeated, n_archs)
        plan = dataclasses.replace(plan, n_archs=n_archs, n_repeated=repeated)
    if steps is not None:
        plan = dataclasses.replace(plan, recipe=dataclasses.replace(plan.recipe, steps=steps))
    start = time.perf_counter()
    folder = Path(out or Path("runs", f"train-{space}"))
    label = None if quiet else f"training {space}"
    with stopped_with(context):
        path = build_table(plan, folder, Workers(jobs), label, lock=not no_lock)
    seconds = round(time.perf_counter() - start, 3)
    if form == "json":
        output.print_json({"table": str(path), "n": plan.n_archs, "seconds": seconds})
    else:
        click.echo(output.printable(f"{path} ({seconds:.0f} s)"))
