"""What `lpzero search` prints: the result of a search, or the table of a comparison."""

from __future__ import annotations

import json
import shlex
from typing import Any

import click

from lpzero.cli import output
from lpzero.verbs import Outcome


def show(outcome: Outcome, request: Any) -> None:
    """Print the best architecture, or the table of a comparison."""
    if request.compare:
        print_comparison(outcome.result, request.out)
        return
    _print_result(outcome.result)
    if outcome.about["footprint"] is not None:
        click.echo(str(outcome.about["footprint"]))


def _print_result(result: dict[str, Any]) -> None:
    """Print the best architecture, its size and cost, and the steps at which it changes."""
    best = dict(result["best"])
    click.echo(json.dumps(best.pop("arch")))
    click.echo()
    outside = best.pop("outside_table", [])
    of = result["evaluator"]
    # Scores of formulas may be a millionth or a million.
    of_any_size = ("score", "best") if of["evaluator"] == "proxy" else ("score",)
    title = f"{result['loop']} with {result['proxy']}"
    output.print_rows([best], "table", title, of_any_size)
    click.echo()
    shown = ("step", "scored", "evaluations", "score", "target", "best", "alike")
    trace, before = [], object()
    for entry in result["trace"]:
        if entry["best"] != before or entry is result["trace"][-1]:
            trace.append({key: entry[key] for key in shown if key in entry})
        before = entry["best"]
    output.print_rows(trace, "table", "steps at which the best changes", of_any_size)
    error = f", cross-validated rmse {of['rmse']:.4g}, rho {of['rho']:.3f}" if "rmse" in of else ""
    source = f" of {of['table']}" if "table" in of else ""
    evaluated = f"{result['evaluations']:,} evaluated by {of['evaluator']}{source}{error}"
    if of["evaluator"] == "proxy":
        evaluated = "none evaluated, only the proxy was used"
    click.echo(f"\n{result['scored']:,} scored, {evaluated}, {result['seconds']:.1f} s")
    for remark in result.get("remarks", ()):
        click.echo(remark)
    if outside:
        click.echo(
            f"outside the surrogate's table: {', '.join(outside)}; the target is extrapolated"
        )


def print_comparison(result: dict[str, Any], out: str | None) -> None:
    """Print the table of arms, and where the curves are."""
    threshold, example = result["threshold"], result["evaluator"]
    limit = "" if threshold is None else f"; the best 1% start at {threshold:.6g}"
    output.print_rows(result["rows"], "table", title=f"{example['target']}{limit}")
    if out is not None:
        click.echo(f"\ncurves and every run are in {output.printable(out)}")
        click.echo(output.printable(f"a page of them: lpzero report {shlex.quote(out)}"))
