"""`lpzero stats TABLE`: run every network of a table once and store its sketch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lpzero.cli import output
from lpzero.cli.interruption import stopped_with
from lpzero.sketches.sketch import SketchOptions
from lpzero.statistics.losses import LOSSES

if TYPE_CHECKING:
    from lpzero.sketches.builder import BuildReport
    from lpzero.sketches.store import Store
    from spaces.tables import Table


@click.command()
@click.argument("table", required=False)
@click.option(
    "--elements",
    type=click.IntRange(min=1),
    default=SketchOptions().limit,
    show_default=True,
    help="The number of elements kept per matrix.",
)
@click.option("--exact", is_flag=True, help="Keep whole matrices; needs much disk space.")
@click.option(
    "--loss",
    type=click.Choice(LOSSES),
    default="auto",
    show_default=True,
    help="The loss to differentiate; auto is next-token for language models, else cotangent.",
)
@output.file_options
@click.option(
    "--chunk",
    type=click.IntRange(min=1),
    help="The number of sequences per pass; fewer need less memory.  [default: all]",
)
@click.option("--retry-failed", is_flag=True, help="Retry the architectures that failed before.")
@click.option("--list", "list_", is_flag=True, help="List the contents of the cache instead.")
@click.option("--prune", "what", help="Remove 'stale' sketches, 'all', or those of a space.")
@output.batch_options
@output.definitions_option
@output.running_options
@output.seed_option
@click.pass_context
def stats(context: click.Context, /, **given: Any) -> None:
    """Extract the statistics of TABLE's networks; finished networks are skipped."""
    from lpzero.sketches.maintenance import listing, prune
    from lpzero.sketches.store import Store, default_folder

    store = Store(Path(given["cache"]).expanduser() if given["cache"] else default_folder())
    if given["what"] is not None:
        n_files, n_bytes = prune(store, given["what"])
        row = {"cache": str(store.folder), "removed": n_files, "bytes": n_bytes}
        output.print_rows([row], given["form"])
    elif given["list_"]:
        output.print_rows(listing(store), given["form"], title=str(store.folder))
    elif given["table"] is None:
        raise click.UsageError("no table given; name one of `lpzero tables`, or use --list")
    else:
        _extract(context, store, given)


def _extract(context: click.Context, store: Store, given: dict[str, Any]) -> None:
    from lpzero.sketches.builder import Builder, build

    limit = None if given["exact"] else given["elements"]
    builder = Builder(
        SketchOptions(
            limit,
            given["loss"],
            given["seed"],
            given["seed"],
            output.chosen_batch(given),
            given["definitions"],
        ),
        store,
        output.workers(given),
        given["device"],
        given["chunk"],
        given["retry_failed"],
        label=given["table"],
    )
    table = output.load_table(given)
    with stopped_with(context):
        report, _ = build(table.space, table.archs, builder)
    _print(table, store, report, given["form"])


def _print(table: Table, store: Store, report: BuildReport, form: str) -> None:
    failed = [{"id": table.ids[i], "reason": reason} for i, reason in report.failed.items()]
    row: dict[str, Any] = {
        "table": table.name,
        "space": table.space.name,
        "n": report.n,
        "built": report.built,
        "present": report.present,
        "failed": len(failed),
        "corrupt": report.corrupt,
        "bytes": report.bytes,
        "seconds": round(report.seconds, 3),
        "cache": str(store.folder),
    }
    if form == "json":
        output.print_json({**row, "failures": failed})
    else:
        output.print_rows([row], form)
    if failed:
        output.note(f"{len(failed)} failed; --retry-failed retries them:")
        output.note(f"  {entry['id']}: {entry['reason']}" for entry in failed)
