"""`lpzero export SOURCE --to FORM`: a formula as a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lpzero.cli import output
from lpzero.cli.options import given_settings, options_of
from lpzero.export.exporter import EXPORTERS
from lpzero.options import shared_options

if TYPE_CHECKING:
    from lpzero.export.exported import Formulas

_OWN = shared_options({name: form.options for name, form in EXPORTERS.items()})
_KINDS = "; ".join(f"{name}: {form.help}" for name, form in EXPORTERS.items())


@click.command()
@click.argument("source", metavar="DIR|FILE|FORMULA|NAME")
@click.option(
    "--to", "form", type=click.Choice(list(EXPORTERS)), required=True, help=f"The form. {_KINDS}."
)
@click.option("--out", type=click.Path(path_type=Path), help="The output file.  [default: stdout]")
@click.option("--force", is_flag=True, help="Overwrite an existing file.")
@click.option(
    "--top",
    type=click.IntRange(min=1),
    help="Export this many formulas of the hall of fame, best first.",
)
@click.option("--all", "everything", is_flag=True, help="Export the whole hall of fame.")
@click.option(
    "--formula", metavar="PLACE|id:NUMBER", help="Export one formula of the hall of fame."
)
@click.option("--name", help="The name of the exported formula or ensemble.")
@click.option(
    "--ensemble",
    is_flag=True,
    help="Export formulas as one proxy, the mean of their ranks: those of --top or --all, else the"
    " ensemble that a campaign reports.",
)
@click.option(
    "--exact", is_flag=True, help="Score on whole tensors instead of the engine's sketches."
)
@options_of(*_OWN)
@click.pass_context
def export(
    context: click.Context,
    /,
    source: str,
    form: str,
    out: Path | None,
    force: bool,
    top: int | None,
    everything: bool,
    formula: str | None,
    name: str | None,
    ensemble: bool,
    exact: bool,
    **own: Any,
) -> None:
    """Export the winner of a campaign, or any other formula, as a file.

    From a run's directory the winner is exported, unless --top, --all, --formula or --ensemble is
    given.
    """
    from dataclasses import replace

    from lpzero.export import Choice, Selection, select
    from lpzero.export import export as write
    from lpzero.export.exporter import write_file
    from lpzero.export.source import exact as with_whole_tensors
    from lpzero.untrusted import check_text

    def named_formulas(name: str) -> Formulas:
        from lpzero.proxies.lookup import named_formulas as find  # loads torch

        return find(name)

    if (top is not None) + everything + (formula is not None) > 1:
        raise click.UsageError("--top, --all and --formula exclude each other; give only one")
    is_reported = ensemble and top is None and not everything and formula is None
    found = select(source, Choice(top, everything, formula, is_reported), named_formulas)
    output.note(f"note: {remark}" for remark in found.remarks)
    entries, called = found.entries, found.ensemble or ("ensemble" if ensemble else None)
    if called is not None and len(entries) < 2:
        raise click.UsageError("an ensemble has at least two members, but one formula was chosen")
    if name is not None and called is not None:
        called = check_text(name, "--name")
    elif name is not None:
        if len(entries) != 1:
            raise click.UsageError(f"--name is for one formula, but {len(entries)} were chosen")
        entries = [replace(entries[0], name=check_text(name, "--name"))]
    if exact:
        entries = with_whole_tensors(entries)
    chosen = Selection(entries, found.counters, called, winner=found.winner)
    text = write(chosen, form, **given_settings(context, _OWN))
    if out is None:
        click.echo(text, nl=False)
    else:
        write_file(out, text, force)
