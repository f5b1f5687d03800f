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
    """List the pruning rules and how much of the paper's space each removes.

    Rules of level term apply to every term, rules of level score to what stands above the terms.
    The latter are on as long as any rule is, and have no counts: the paper's space has none of it.
    """
    from primitives.pruning import OUTER_RULES, RULES, without
    from primitives.space_size import measure, removed_alone

    active = without(*off)
    lengths = [1, 2] if unaries is None else [unaries]
    sizes = [measure(length, same_statistic, active) for length in lengths]
    rows = []
    for rule in (*RULES.values(), *OUTER_RULES.values()):
        is_term = rule.name in RULES
        row: dict[str, Any] = {
            "rule": rule.name,
            "level": "term" if is_term else "score",
            "on": not is_term or rule.name in active,
        }
        for n, size in zip(lengths, sizes, strict=True):
            removed = size.rejected.get(rule.name, 0)
            row[f"removes_{n}"] = removed if is_term else None
            alone = removed_alone(n, rule.name, same_statistic) if is_term else None
            row[f"alone_{n}"] = alone
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
