"""What `lpzero exhaust` prints: the best formulas beside the counters, and the verdict."""

from __future__ import annotations

from typing import Any

import click

from lpzero.cli import output
from lpzero.cli.verdict import print_verdict
from lpzero.verbs import Outcome
from lpzero.verbs.counters import judged_columns


def show(outcome: Outcome, request: Any) -> None:
    """Print the best formulas, the counters, the winner on every part and the verdict."""
    from lpzero.judgement.counters import BEST_COUNT

    result, form = outcome.result, "table"
    [table] = result["tables"]
    head = (
        f"{table['name']}: {table['target']}, space {table['space']}, chosen on"
        f" {table['n']['train']} architectures, tested on {table['n']['test']}"
    )
    rows = [_row("formula", line["formula"], line["rho"]) for line in result["top"]]
    output.print_rows(rows, form, title=head)
    click.echo()
    beside = [] if result["count"] is None else [{"proxy": BEST_COUNT, **result["count"]}]
    beside += result["counters"]
    rows = [_row("counter", line["proxy"], line["rho"]) for line in beside]
    output.print_rows(rows, form)
    best = result["best"]
    click.echo()
    if best is not None:
        judged = best["judged"][table["name"]]
        rows = [{"best on": part, **judged_columns(line)} for part, line in judged.items()]
        output.print_rows(rows, form)
        click.echo()
    print_verdict(result)
    click.echo(
        f"{result['evaluated']:,} formulas evaluated{_screened(result)},"
        f" {sum(result['rejected'].values()):,} rejected, {result['seconds']:.1f} s; the measures"
        f" are in {output.printable(result['out'])}"
    )


def _screened(result: dict[str, Any]) -> str:
    if result["ranked"] == result["evaluated"]:
        return ""
    return f" in closed form, the best {result['ranked']:,} of them ranked exactly"


def _row(kind: str, name: str, rho: dict[str, float]) -> dict[str, Any]:
    return {kind: name, **{f"rho {part}": value for part, value in rho.items()}}
