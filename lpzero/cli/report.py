"""`lpzero report DIR`: one self-contained HTML page of a run, and its figures."""

from __future__ import annotations

import json
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lpzero.cli import output

if TYPE_CHECKING:
    from lpzero.report.figures.transfer import Transfer


_LARGEST_RANKING = 64 << 20  # bytes


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path())
@click.option(
    "--out", type=click.Path(), help="The file of the page.  [default: DIR/report/index.html]"
)
@click.option("--open", "is_opened", is_flag=True, help="Open the page in a browser.")
@click.option(
    "--beside",
    multiple=True,
    metavar="DIR",
    type=click.Path(),
    help="Another run of the same kind, for the convergence figure; repeatable.",
)
@click.option(
    "--ranking",
    metavar="FILE|DIR",
    type=click.Path(),
    help="A ranking (`lpzero rank --out DIR`, or its JSON output), to show its proxies too.",
)
@click.option(
    "--transfer",
    "is_transferred",
    is_flag=True,
    help="Score the winners of DIR and --beside on each other's tables; may run networks.",
)
@output.running_options
def report(
    folder: str,
    out: str | None,
    is_opened: bool,
    beside: tuple[str, ...],
    ranking: str | None,
    is_transferred: bool,
    form: str,
    **running: Any,
) -> None:
    """Write one HTML page on the run of any kind in DIR, and its figures.

    The page needs no network and no other file; figures are written to DIR/report/figures as PDF,
    PNG and SVG. The report of an unfinished run covers what is there.
    """
    from lpzero.report import write
    from lpzero.runs.run import open_run

    run = open_run(folder)
    rows = None if ranking is None else _rows(Path(ranking), run)
    others = [open_run(other) for other in beside]
    transfer = _transferred([run, *others], running) if is_transferred else None
    written = write(run, out, others, rows, transfer)
    output.note(f"note: {remark}" for remark in written.remarks)
    if form == "json":
        names = [str(path) for path in written.figures]
        remarks = list(written.remarks)
        output.print_json({"page": str(written.page), "figures": names, "remarks": remarks})
    else:
        figures = run.folder / "report" / "figures"
        click.echo(output.printable(f"report: {written.page}"))
        click.echo(output.printable(f"figures: {len(written.figures)} files in {figures}"))
    if is_opened and not webbrowser.open(written.page.resolve().as_uri()):
        output.note("note: no browser was found; open the page manually")


def _transferred(runs: Sequence[Any], running: dict[str, Any]) -> Transfer:
    from lpzero.errors import InputError
    from lpzero.report import transfer
    from lpzero.runs.formula_run import FormulaRun

    for run in runs:
        if not isinstance(run, FormulaRun):
            raise InputError(
                f"{run.folder} is a {run.kind}: --transfer needs runs that found formulas"
            )
    workers = output.workers(running)
    return transfer.measure(runs, running["data"], running["cache"], running["device"], workers)


def _rows(path: Path, run: Any) -> list[dict[str, Any]]:
    from lpzero.errors import InputError
    from lpzero.proxies.ranking_record import RankingRun
    from lpzero.report.ranking_differences import compared
    from lpzero.runs.run import open_run
    from spaces.regular_files import NotRegularError, read_regular

    if path.is_dir():
        found = open_run(path)
        if not isinstance(found, RankingRun):
            raise InputError(f"{path} is a {found.kind}: --ranking needs a ranking")
        return compared(found, run)
    try:
        rows = json.loads(read_regular(path, _LARGEST_RANKING))
    except (ValueError, RecursionError, NotRegularError):
        rows = None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path} is not the output of `lpzero rank TABLE --format json`")
    return rows
