"""What `lpzero discover` prints: a line per generation, then the winner and the verdict."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from lpzero.cli import output
from lpzero.cli.interruption import handling
from lpzero.cli.verdict import print_verdict
from lpzero.verbs import Outcome, Screen
from lpzero.verbs.counters import judged_columns

if TYPE_CHECKING:
    from lpzero.discover.campaign import Callback, Progress

_MUCH = 0.05  # in rho
_QUIET_SECONDS = 2.0  # between lines where they do not overwrite each other


@contextmanager
def screen(request: Any) -> Iterator[Screen]:
    """A context with a line per generation, in which Ctrl-C finishes the generation first."""
    is_quiet = request.shown.quiet
    line, stop = _GenerationLine(), _Stop()

    def stops() -> bool:
        """Whether the user asked to stop; no generation is running any more."""
        stop.is_evolving = False
        line.close()
        return stop.is_asked

    watch: list[Callback] = [stop.after_generation]
    watch += [] if is_quiet else [line]
    with handling((signal.SIGINT, signal.SIGTERM), stop):
        yield Screen(not is_quiet, say=output.note, watch=watch, stops=stops)


class _Stop:
    """Handles Ctrl-C and SIGTERM: a generation is finished first, anything else is left at once.

    A second signal stops the generation, too.
    """

    def __init__(self) -> None:
        self.is_asked = self.is_evolving = False

    def __call__(self, number: int, frame: Any) -> None:
        if self.is_asked or not self.is_evolving:
            raise KeyboardInterrupt
        self.is_asked = True
        output.note("\nfinishing the generation; press again to stop at once")

    def after_generation(self, progress: Progress) -> bool:
        """Whether the campaign stops here."""
        self.is_evolving = True
        return self.is_asked


class _GenerationLine:
    """A line per generation on stderr: overwritten on a terminal, every few seconds elsewhere."""

    def __init__(self) -> None:
        self.is_live = sys.stderr.isatty()
        self.width, self.shown = 0, float("-inf")

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        is_last = progress.generation >= progress.generations
        pause = 0.1 if self.is_live else _QUIET_SECONDS
        if now - self.shown < pause and not is_last:
            return
        self.shown = now
        text = describe(progress)
        if self.is_live:
            click.echo("\r" + text.ljust(self.width), err=True, nl=False)
            self.width = len(text)
        else:
            click.echo(text, err=True)

    def close(self) -> None:
        if self.is_live and self.width:
            click.echo(err=True)


def describe(progress: Progress) -> str:
    """The progress line of a generation."""
    tried = max(1, progress.tried)
    rules = ", ".join(f"{n / tried:.0%} {rule}" for rule, n in progress.rejected.most_common(2))
    left = "-" if progress.seconds_left is None else _clock(progress.seconds_left)
    return (
        f"generation {progress.generation}/{progress.generations}"
        f"  train {progress.train:.3f}  valid {progress.valid:.3f}"
        f"  size {progress.best.complexity}"
        f"  rejected {progress.rejected.total() / tried:.0%}{f' ({rules})' if rules else ''}"
        f"  repeats {progress.repeats / tried:.0%}  {progress.per_second:.0f}/s  left {left}"
    )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"


def _note_passed_over(better: dict[str, Any] | None) -> None:
    """Say so if formulas that do not repeat rank train and valid much better than the winner."""
    if better is not None and better["rho"] - better["rho_chosen"] > _MUCH:
        output.note(
            f"note: {better['formula']} ranks train and valid much better ({better['rho']:.3f}"
            f" against {better['rho_chosen']:.3f}), but its scores repeat at"
            f" {better['stability']:.3f} only; --stable and --choose valid allow such formulas"
        )


def _print_held_out(found: dict[str, Any] | None) -> None:
    if found is None:
        return
    best = found["best_column"]
    rows = [
        {"beam search on each split": "formula", "rho test": found["rho"]},
        {"beam search on each split": "best single column", "rho test": found["column_rho"]},
    ]
    title = f"medians over {found['splits']} splits, the formula ahead in {found['ahead']}"
    click.echo()
    output.print_rows(rows, "table", title=title)
    click.echo(f"best single column on all rows: {best['column']}, {best['rho_on_all_rows']:.3f}")


def show(outcome: Outcome, request: Any) -> None:
    """Print the winner on every part of every table, the verdict, and the next best formulas."""
    from lpzero.judgement.counters import BEST_COUNT

    result, form = outcome.result, "table"
    best = result["best"]
    click.echo(f"best formula, chosen by --choose {result['chosen_on']}: {best['formula']}\n")
    for table in result["tables"]:
        name = table["name"]
        rows = [
            {"best on": part, **judged_columns(line)} for part, line in best["judged"][name].items()
        ]
        count = result["count"]
        if count is not None:
            judged = count["judged"][name]["test"]
            rows.append({"best on": f"test: {BEST_COUNT}", **judged_columns(judged)})
        counters = [line for line in result["counters"] if line["table"] == name]
        rows += [
            {"best on": f"test: {line['proxy']}", **judged_columns(line["judged"]["test"])}
            for line in counters
        ]
        title = f"{name}: {table['target']}, fitness on {table['n_fitness']} architectures"
        output.print_rows(rows, form, title=title)
        click.echo()
    print_verdict(result)
    rows = [
        {
            "formula": line["formula"],
            "size": line["complexity"],
            "front": line["front"],
            **{f"rho {part}": value for part, value in line["rho"].items()},
        }
        for line in result["top"]
    ]
    output.print_rows(rows, form)
    _print_held_out(result.get("held_out"))
    _note_passed_over(result["passed_over"])
    stopped = f" (stopped by {result['stopped']})" if result["stopped"] else ""
    click.echo(
        f"\n{result['generations']:,} generations{stopped}, {result['evaluated']:,} formulas"
        f" evaluated, {sum(result['rejected'].values()):,} rejected, {result['repeats']:,} repeats,"
        f" {result['seconds']:.1f} s; everything is in {output.printable(result['out'])}"
    )
