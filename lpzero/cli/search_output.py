"""What `lpzero search` prints: a line per step, a search's result, the table of a comparison."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lpzero.cli import output

if TYPE_CHECKING:
    from lpzero.search.comparison import Comparison
    from lpzero.search.environment import Entry


class StepLine:
    """A step in one line: the loop, how many were scored and evaluated, the best so far."""

    def __init__(self, loop: str, last: int | None) -> None:
        self.loop, self.last = loop, "" if last is None else f"/{last}"
        self.shown: tuple[Any, Any] = (None, None)

    def note(self, entry: Entry) -> None:
        """Print the line if the step or the best has changed."""
        if self.shown == (entry["step"], entry["best"]):
            return
        self.shown = entry["step"], entry["best"]
        output.note(
            f"{self.loop} {entry['step']}{self.last}  scored {entry['scored']:,}"
            f"  evaluated {entry['evaluations']:,}  best {_number(entry['best'])}"
        )

    def text(self, entry: Entry) -> str:
        """The text beside a bar, which has the number scored."""
        return f"{self.loop} {entry['step']}{self.last}  best {_number(entry['best'])}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.6g}"


def print_result(result: dict[str, Any]) -> None:
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


def print_comparison(found: Comparison, form: str, out: str | None) -> None:
    """Print the table of arms; write the curves to the directory."""
    from lpzero.search.comparison import curve_rows

    curves = curve_rows(found.results)
    example = next(iter(found.results.values()))[0]["evaluator"]
    if out is not None:
        from lpzero import files
        from lpzero.report import style
        from lpzero.report.drawn_chart import draw
        from lpzero.report.figures.convergence import search_curves

        files.write_csv(Path(out) / "curves.csv", curves)
        files.write_csv(Path(out) / "comparison.csv", found.rows)
        figure = draw(search_curves(curves, example["target"], found.threshold))
        for form_ in ("pdf", "png"):
            style.save(figure, Path(out) / f"curves.{form_}")
    if form == "json":
        arms = {"threshold": found.threshold, "evaluator": example, "rows": found.rows}
        output.print_json({**arms, "curves": curves})
        return
    limit = "" if found.threshold is None else f"; the best 1% start at {found.threshold:.6g}"
    output.print_rows(found.rows, "table", title=f"{example['target']}{limit}")
    if out is not None:
        click.echo(f"\ncurves and every run are in {output.printable(out)}")
        click.echo(output.printable(f"a page of them: lpzero report {shlex.quote(out)}"))
