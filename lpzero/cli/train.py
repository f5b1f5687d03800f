"""What `lpzero train` prints: the table's path, or the networks of a supernet."""

from __future__ import annotations

from typing import Any

import click

from lpzero.cli import output
from lpzero.verbs import Outcome


def show(outcome: Outcome, request: Any) -> None:
    """Print where the table is, or how good the networks are with the supernet's weights."""
    result = outcome.result
    if request.supernet:
        _print_networks(result)
    else:
        click.echo(output.printable(f"{result['table']} ({result['seconds']:.0f} s)"))


def _print_networks(result: dict[str, Any]) -> None:
    rows = [
        {
            "parameters": row["parameters"],
            "flops": row["flops"],
            "valid": row["valid"],
            "test": row["test"],
            "95%": "{:.3f} to {:.3f}".format(*row["test_ci"]),
        }
        for row in result["networks"]
    ]
    which = "preferred" if result["is_preferred"] else "some"
    title = f"{result['target']} of {which} networks with the supernet's weights"
    output.print_rows(rows, "table", title)
    click.echo(output.printable(f"\n{result['directory']} ({result['seconds']:.0f} s)"))
