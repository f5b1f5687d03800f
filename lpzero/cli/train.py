"""`lpzero train SPACE`: build a table by training architectures of a space."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lpzero.cli import output
from lpzero.cli.interruption import stopped_with
from lpzero.cli.supernet import refuse_supernet_options, supernet_options, train_supernet

if TYPE_CHECKING:
    from spaces.training.recipes import Plan

_FILE = ".json"


@click.command()
@click.argument("space", metavar="SPACE|MODULE:NAME")
@click.option(
    "--out",
    type=click.Path(),
    help="The run's directory, or the table's file, TABLE.json; the run is then in TABLE.run."
    "  [default: runs/train-SPACE]",
)
@click.option(
    "--n",
    "n_archs",
    type=click.IntRange(2),
    help="The number of architectures.  [default: the plan's; of a space of your own 128]",
)
@click.option(
    "--seeds",
    type=click.IntRange(1),
    help="The number of trainings whose mean is a target; some architectures get twice as many, for"
    " the noise of targets.  [default: the plan's; of a space of your own 1]",
)
@click.option(
    "--steps", type=click.IntRange(1), help="The number of training steps.  [default: the recipe's]"
)
@click.option("--quiet", is_flag=True, help="Show no progress.")
@supernet_options
@output.no_lock_option
@output.worker_options
@output.format_option
@click.pass_context
def train(
    context: click.Context,
    /,
    space: str,
    out: str | None,
    n_archs: int | None,
    seeds: int | None,
    steps: int | None,
    quiet: bool,
    no_lock: bool,
    form: str,
    is_supernet: bool,
    **given: Any,
) -> None:
    """Train architectures of SPACE and write them as a table.

    SPACE is a nano space, or one of your own with a `train` function, my_module:SPACE. With
    --supernet, train one supernet of the SPACE: see docs/supernet.md. The same command continues a
    run that was stopped.
    """
    if is_supernet:
        train_supernet(context, context.params)
        return
    refuse_supernet_options(context)
    from lpzero import files
    from lpzero.training.table_build import build_table

    plan = _plan(space, n_archs, seeds, steps)
    start = time.perf_counter()
    asked = Path(out or Path("runs", f"train-{plan.name}"))
    is_file = asked.suffix == _FILE
    folder = asked.with_suffix(".run") if is_file else asked
    label = None if quiet else f"training {plan.name}"
    with stopped_with(context):
        path = build_table(plan, folder, output.workers(given), label, lock=not no_lock)
    if is_file:
        files.write_text(asked, path.read_text(encoding="utf-8"))
        path = asked
    seconds = round(time.perf_counter() - start, 3)
    if form == "json":
        output.print_json({"table": str(path), "n": plan.n_archs, "seconds": seconds})
    else:
        click.echo(output.printable(f"{path} ({seconds:.0f} s)"))


def _plan(space: str, n_archs: int | None, seeds: int | None, steps: int | None) -> Plan:
    """The space's own training, or the recipe of the nano table of that name."""
    import dataclasses

    from spaces.training.recipes import own_plan, plan_named
    from spaces.user_modules import is_address

    if is_address(space):
        own = own_plan(space, n_archs, seeds)
        if own is None:
            raise click.UsageError(
                f"{space} has no training: give lpzero.space(..., train=my_train), a function of an"
                " architecture and a seed"
            )
        if steps is not None:
            raise click.UsageError("--steps is for nano tables; your own train decides its steps")
        return own
    plan = plan_named(space)
    if seeds is not None:
        most = max(plan.n_repeated_seeds, 2 * seeds)
        plan = dataclasses.replace(plan, n_seeds=seeds, n_repeated_seeds=most)
    if n_archs is not None:
        repeated = min(plan.n_repeated, n_archs)
        plan = dataclasses.replace(plan, n_archs=n_archs, n_repeated=repeated)
    if steps is not None:
        plan = dataclasses.replace(plan, recipe=dataclasses.replace(plan.recipe, steps=steps))
    return plan
