"""`lpzero classics`: the papers' formulas."""

from __future__ import annotations

import click

from lpzero.cli.output import format_option, print_rows


@click.command()
@format_option
def classics(form: str) -> None:
    """List the classic proxies as formulas, and those that the language cannot express."""
    from primitives.classics import CLASSICS

    rows = [
        {
            "proxy": classic.name,
            "formula": classic.text,
            "fidelity": classic.fidelity.value,
            "definition": classic.definition,
            "note": classic.note,
        }
        for classic in CLASSICS
    ]
    print_rows(rows, form)
