"""`lpzero rules`: what pruning removes, and why."""

from __future__ import annotations

from typing import Any

import click

from lpzero.cli.output import format_option, print_json, print_rows


@click.command()
@click.option(
    "--unaries",
    type=click.IntRange(1, 2),
    help="The number of operations per chain.  [default: both 1 and 2]",
)
@click.option("--off", multiple=True, metavar="RULE", help="Turn a rule off; repeatable.")
@click.option("--same-statistic", is_flag=True, help="Also pair each statistic with itself.")
@format_option
def rules(unaries: int | None, off: tuple[str, ...], same_statistic: bool, form: str) -> None:
    """List the pruning rules and how much of the paper's space each removes."""
    from primitives.pruning import RULES, without
    from primitives.sizes import measure, removed_alone

    active = without(*off)
    lengths = [1, 2] if unaries is None else [unaries]
    sizes = [measure(length, same_statistic, active) for length in lengths]
    rows = []
    for rule in RULES.values():
        row: dict[str, Any] = {"rule": rule.name, "on": rule.name in active}
        for size in sizes:
            row[f"removes_{size.unaries}"] = size.rejected.get(rule.name, 0)
            row[f"alone_{size.unaries}"] = removed_alone(size.unaries, rule.name, same_statistic)
        rows.append(row | {"example": rule.example, "kept": rule.kept, "reason": rule.reason})
    if form == "json":
        fields = ("unaries", "before", "kept", "distinct", "rejected")
        spaces = [{field: getattr(size, field) for field in fields} for size in sizes]
        print_json({"rules": rows, "sizes": spaces})
        return
    print_rows(rows, form)
    click.echo()
    for size in sizes:
        click.echo(
            f"chains of {size.unaries}: {size.before:,} formulas, {size.kept:,} after pruning,"
            f" {size.distinct:,} distinct (up to sign, for one reduction over blocks)"
        )
