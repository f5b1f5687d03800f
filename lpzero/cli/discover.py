"""`lpzero discover TABLE --out DIR`: a campaign, from a table to the best formula found."""

from __future__ import annotations

import shlex
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from lpzero.cli import output

if TYPE_CHECKING:
    from lpzero.discover.campaign import Progress

_QUIET_SECONDS = 2.0  # between lines where they do not replace each other


def _settings_options(command: Any) -> Any:
    """Options that are fields of the settings: None where the preset decides."""
    integer, share = click.IntRange(min=0), click.FloatRange(0, 1)
    for name, kind, text in reversed(
        [
            ("--generations", integer, "Generations after the first population."),
            ("--population", click.IntRange(min=2), "Formulas that survive a generation."),
            ("--offspring", click.IntRange(min=1), "New formulas evaluated per generation."),
            ("--unaries", integer, "The most unary operations in a row."),
            ("--depth", integer, "Binary operations on the way down; 1 is the paper's form."),
            ("--statistics", str, "Which of A J G H W S may appear, as in AHWS."),
            ("--objective", str, "rho, partial, within, or several with commas: a front."),
            ("--across", click.Choice(["min", "pareto"]), "Several tables: the worst, or a front."),
            ("--archs", click.IntRange(min=10), "Training rows the fitness is measured on."),
            ("--crossover", share, "How often two parents are crossed."),
            ("--mutation", share, "How often a child is mutated."),
            ("--choose", click.Choice(["train", "valid"]), "What picks the winner of the front."),
            ("--seed", int, "The seed of the search."),
        ]
    ):
        command = click.option(name, type=kind, help=text)(command)
    return command


@click.command()
@click.argument("tables", nargs=-1, metavar="TABLE...")
@click.option("--out", type=click.Path(file_okay=False), help="The campaign's directory.")
@click.option("--resume", is_flag=True, help="Go on with the campaign in --out, if there is one.")
@click.option(
    "--preset",
    type=click.Choice(["default", "paper"]),
    help="paper is Algorithm 1 of LPZero; default looks for a front.  [default: default]",
)
@_settings_options
@click.option("--start", multiple=True, metavar="FORMULA", help="Begin with it; repeatable.")
@click.option("--forward-only", is_flag=True, help="No gradients: leave out G and J.")
@click.option("--same-statistic", is_flag=True, help="A statistic may meet itself.")
@click.option("--rules", type=click.Choice(["on", "off"]), help="Pruning; off for comparisons.")
@click.option("--random", "is_random", is_flag=True, help="Random search with the same budget.")
@click.option("--time-limit", type=click.FloatRange(min=0, min_open=True), help="Seconds.")
@click.option("--split-seed", type=int, help="Which train, valid and test rows.  [default: 0]")
@click.option("--upstream-dims", is_flag=True, help="FlexiBERT as published: one size for all.")
@click.option("--quiet", is_flag=True, help="No progress.")
@output.running_options
@click.pass_context
def discover(context: click.Context, /, **given: Any) -> None:
    """Search for the formula that best ranks the architectures of TABLE.

    Selection sees the training rows alone; valid rows choose among the final front; test rows
    are read once, for the report. Several tables are searched at once.
    """
    from lpzero.discover.discovery import Discovery

    start = time.perf_counter()
    if given["out"] is None:
        raise click.UsageError("no --out given; name a directory for the campaign")
    quiet = given["quiet"]
    show = _Line(quiet)
    with _stoppable() as asked_to_stop:
        found = Discovery(
            list(given["tables"]) or None,
            preset=given["preset"],
            out=given["out"],
            resume=given["resume"],
            data=given["data"],
            space="flexibert-upstream" if given["upstream_dims"] else None,
            cache=given["cache"],
            device=given["device"],
            jobs=given["jobs"],
            split_seed=given["split_seed"],
            time_limit=given["time_limit"],
            callbacks=[lambda progress: bool(asked_to_stop), *([] if quiet else [show])],
            progress=not quiet,
            **_settings(context, given),
        )
        found.search()
    show.close()
    output.note(f"note: {remark}" for remark in found.remarks_)
    if asked_to_stop:
        output.note(f"stopped and saved; go on with: {_resume_command(given)}")
        context.exit(output.INTERRUPTED)
    result = {**found.report().result_, "out": given["out"]}
    result["seconds"] = round(time.perf_counter() - start, 3)
    _print(result, given)


def _settings(context: click.Context, given: dict[str, Any]) -> dict[str, Any]:
    """The fields of the settings that were asked for."""
    from primitives.pruning import DEFAULT_RULES
    from primitives.statistics import STATISTICS, gradient_statistics

    same = ("generations", "population", "offspring", "unaries", "depth", "across", "archs",
            "crossover", "mutation", "choose", "seed")  # fmt: skip
    changes = {name: given[name] for name in same if given[name] is not None}
    if given["statistics"] is not None:
        changes["statistics"] = tuple(given["statistics"].replace(",", "").replace(" ", ""))
    if given["forward_only"]:
        allowed = changes.get("statistics", tuple(STATISTICS))
        changes["statistics"] = tuple(s for s in allowed if s not in gradient_statistics())
    if given["objective"] is not None:
        changes["objectives"] = tuple(given["objective"].split(","))
    if given["start"]:
        changes["start"] = tuple(given["start"])
    if given["rules"] is not None:
        changes["rules"] = () if given["rules"] == "off" else tuple(sorted(DEFAULT_RULES))
    if given["is_random"]:
        changes["method"] = "random"
    if context.get_parameter_source("same_statistic") is ParameterSource.COMMANDLINE:
        changes["same_statistic"] = True
    return changes


@contextmanager
def _stoppable() -> Iterator[list[bool]]:
    """A list that is filled by the first Ctrl-C; a second one interrupts at once."""
    asked: list[bool] = []

    def stop(number: int, frame: Any) -> None:
        if asked:
            raise KeyboardInterrupt
        asked.append(True)
        output.note("\nfinishing the generation; press again to stop at once")

    if threading.current_thread() is not threading.main_thread():
        yield asked  # signals go to the main thread, whose business they are
        return
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


class _Line:
    """One line per generation on stderr, in place on a terminal, now and then elsewhere."""

    def __init__(self, quiet: bool) -> None:
        self.quiet, self.is_live = quiet, sys.stderr.isatty()
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
    """The line of a generation."""
    tried = max(1, progress.tried)
    rules = ", ".join(f"{n / tried:.0%} {rule}" for rule, n in progress.rejected.most_common(2))
    left = "-" if progress.seconds_left is None else _clock(progress.seconds_left)
    return (
        f"generation {progress.generation}/{progress.generations}"
        f"  train {progress.best.fitness[0]:.3f}  valid {progress.valid:.3f}"
        f"  size {progress.best.complexity}"
        f"  rejected {progress.rejected.total() / tried:.0%}{f' ({rules})' if rules else ''}"
        f"  repeats {progress.repeats / tried:.0%}  {progress.per_second:.0f}/s  left {left}"
    )


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}:{rest:02d}"


def _resume_command(given: dict[str, Any]) -> str:
    words = ["lpzero", "discover", "--out", str(given["out"]), "--resume"]
    for name in ("data", "cache"):
        if given[name]:
            words += [f"--{name}", str(given[name])]
    return shlex.join(words)


def _print(result: dict[str, Any], given: dict[str, Any]) -> None:
    form = given["form"]
    if form == "json":
        output.print_json(result)
        return
    best = result["best"]
    click.echo(f"best formula, chosen on {result['chosen_on']}: {best['formula']}\n")
    for table in result["tables"]:
        name = table["name"]
        rows = [{"best on": part, **_shown(line)} for part, line in best["judged"][name].items()]
        beside = [line for line in result["counters"] if line["table"] == name]
        rows += [
            {"best on": f"test: {line['proxy']}", **_shown(line["judged"]["test"])}
            for line in beside
        ]
        title = f"{name}: {table['target']}, fitness on {table['n_fitness']} architectures"
        output.print_rows(rows, form, title=title)
        click.echo()
    rows = [
        {"formula": line["formula"], "size": line["complexity"], "front": line["front"],
         **{f"rho {part}": value for part, value in line["rho"].items()}}
        for line in result["top"]
    ]  # fmt: skip
    output.print_rows(rows, form)
    stopped = f" (stopped by {result['stopped']})" if result["stopped"] else ""
    click.echo(
        f"\n{result['generations']:,} generations{stopped}, {result['evaluated']:,} formulas"
        f" evaluated, {sum(result['rejected'].values()):,} rejected, {result['repeats']:,} repeats,"
        f" {result['seconds']:.1f} s; everything is in {result['out']}"
    )


def _shown(judged: dict[str, Any]) -> dict[str, Any]:
    shown = ("n", "rho", "rho_ci", "tau", "tau_ci", "rho_given_params", "rho_within")
    return {key: judged[key] for key in (*shown, "top_precision")}
