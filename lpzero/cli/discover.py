"""`lpzero discover TABLE --out DIR`: a campaign, from a table to the best formula found."""

from __future__ import annotations

import shlex
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from lpzero.cli import output
from lpzero.cli.interruption import CODE, handling, stopped_with
from lpzero.cli.settings_options import given_settings, settings_options
from lpzero.cli.verdict import permutations_option, print_verdict
from lpzero.discover.settings import PRESETS, Settings
from lpzero.options import options

if TYPE_CHECKING:
    from lpzero.discover.campaign import Progress
    from lpzero.trackers.tracker import Tracker

_MUCH = 0.05  # in rho
_QUIET_SECONDS = 2.0  # between lines where they do not overwrite each other


@click.command()
@click.argument("tables", nargs=-1, metavar="TABLE...")
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    help="The campaign's directory.  [default: a new one in runs]",
)
@click.option("--resume", is_flag=True, help="Continue the campaign in --out, if there is one.")
@click.option(
    "--preset",
    type=click.Choice(list(PRESETS)),
    help="The settings to start from; other options override them. paper is Algorithm 1 of LPZero."
    "  [default: default]",
)
@settings_options(Settings, PRESETS)
@output.file_options
@click.option(
    "--forward-only", is_flag=True, help="Exclude the statistics that need gradients, G and J."
)
@click.option("--random", "is_random", is_flag=True, help="Same as --method random.")
@click.option(
    "--time-limit",
    type=click.FloatRange(min=0, min_open=True),
    help="Stop after this many seconds; --resume continues.  [default: no limit]",
)
@click.option(
    "--split-seed", type=int, help="The seed of the train/valid/test split.  [default: 0]"
)
@click.option(
    "--sketch-seed", type=int, help="The seed of untrained networks and batches.  [default: 0]"
)
@click.option(
    "--upstream-dims",
    is_flag=True,
    help="Build every FlexiBERT model with hidden 256 and FFN 1024, as published.",
)
@click.option(
    "--splits",
    type=click.IntRange(min=0),
    help="A table without networks: also search on this many splits, and print the medians over"
    " their test rows.  [default: 20 for at most 2,000 rows, else 0]",
)
@permutations_option
@click.option(
    "--track",
    multiple=True,
    metavar="TOOL:FOLDER",
    help="Write every generation for another tool, tensorboard or mlflow; repeatable.",
)
@click.option("--quiet", is_flag=True, help="Show no progress.")
@output.no_lock_option
@output.batch_options
@output.definitions_option
@output.running_options
@click.pass_context
def discover(context: click.Context, /, **given: Any) -> None:
    """Search for the formula that best ranks the architectures of TABLE.

    Fitness is measured on the training rows only. The valid rows help to choose the winner at the
    end (--choose), and the test rows are read once, for the report. Give several tables to search
    for one formula that ranks all of them.

    TABLE may be a file of your own: CSV, JSON lines or Parquet, a row per architecture of --space,
    with a --target. Without networks (--columns-only, or a zero-cost file of NASLib and its --task)
    formulas combine the columns of the file.
    """
    from lpzero.discover.discovery import Discovery

    start = time.perf_counter()
    if given["out"] is None:
        given["out"] = _new_folder(given)
    quiet, reading = given["quiet"], output.reading(given)
    _check_files(given)
    show = _GenerationLine(quiet)
    stopping = _Stop()
    with (
        _trackers(given["track"]) as trackers,
        handling((signal.SIGINT, signal.SIGTERM), stopping),
        stopped_with(context, "--resume"),
    ):
        found = Discovery(
            list(given["tables"]) or None,
            preset=given["preset"],
            out=given["out"],
            resume=given["resume"],
            data=given["data"],
            space="flexibert-upstream" if given["upstream_dims"] else given["space"],
            cache=given["cache"],
            device=given["device"],
            jobs=output.workers(given),
            split_seed=given["split_seed"],
            sketch_seed=given["sketch_seed"],
            batch=output.chosen_batch(given),
            definitions=_definitions(context, given),
            reading=reading,
            proxy_scores=_ProxyScores(given),
            time_limit=given["time_limit"],
            permutations=given["permutations"],
            callbacks=[stopping.after_generation, *([] if quiet else [show]), *trackers],
            progress=not quiet,
            lock=not given["no_lock"],
            **_settings(context, given),
        )
        found.search()
        stopping.is_evolving = False
        show.close()
        output.note(f"note: {remark}" for remark in (*found.remarks_, *found.table_remarks))
        if stopping.is_asked:
            output.note(f"stopped and saved; continue with: {_resume_command(given)}")
            context.exit(CODE)
        result = {**found.judge().result_, "out": given["out"]}
        result |= _held_out(found, given)
    result["seconds"] = round(time.perf_counter() - start, 3)
    _print(result, given)


def _definitions(context: click.Context, given: dict[str, Any]) -> str | None:
    """What was asked for; None if it was not, so that a resumed campaign keeps its own."""
    is_default = context.get_parameter_source("definitions") is ParameterSource.DEFAULT
    return None if is_default else str(given["definitions"])


@contextmanager
def _trackers(given: Sequence[str]) -> Iterator[list[Tracker]]:
    """The trackers of --track, closed at the end."""
    from lpzero.trackers.tracker import tracker

    with ExitStack() as stack:
        yield [stack.enter_context(closing(tracker(text))) for text in given]


def _new_folder(given: dict[str, Any]) -> str:
    """A directory of its own in `runs`, named after the table, that is not there yet."""
    from spaces.tables.row_files import plain

    if given["resume"] or not given["tables"]:
        raise click.UsageError("no --out given; give a directory for the campaign")
    stem = "-".join(plain(Path(name).stem) for name in given["tables"])
    stem += f"-{plain(given['task'])}" if given["task"] else ""
    for number in count(1):
        folder = Path("runs", stem if number == 1 else f"{stem}-{number}")
        if not folder.exists():
            break
    output.note(f"note: the campaign is stored in {folder}; --out names another directory")
    return str(folder)


def _held_out(found: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Medians over splits, of a table without networks."""
    from lpzero.discover.held_out import MOST_ROWS, SPLITS, held_out

    table = found.tables[0]
    if len(found.tables) > 1 or table.space is not None:
        if given["splits"]:
            raise click.UsageError("--splits is for one table without networks")
        return {}
    splits = given["splits"]
    if splits is None:
        splits = SPLITS if len(table) <= MOST_ROWS else 0
    label = None if given["quiet"] else "splits"
    if not splits:
        return {}
    return {"held_out": held_out(table, found.settings, splits, output.workers(given), label)}


def _check_files(given: dict[str, Any]) -> None:
    """Raise UsageError if a file of rows is given, and neither a space nor that it has none."""
    from spaces.tables.row_files import ENDINGS

    for name in given["tables"]:
        is_of_rows = name.lower().endswith(ENDINGS)
        if is_of_rows and not given["columns_only"] and given["space"] is None:
            raise click.UsageError(
                f"{name} names no space, so there are no networks: give --space my_module:SPACE, or"
                " --columns-only to combine its columns"
            )


class _ProxyScores:
    """The scores of the proxies of --terms-from; torch is imported when there are some."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given

    def __call__(self, table: Any, names: Any, options: Any) -> Any:
        from lpzero.proxies import Context
        from lpzero.proxies.columns import ProxyColumns
        from lpzero.sketches.store import default_folder

        given = self.given
        context = Context(
            device=given["device"],
            folder=Path(given["cache"]).expanduser() if given["cache"] else default_folder(),
            workers=output.workers(given),
            label=None if given["quiet"] else table.name,
        )
        return ProxyColumns(context)(table, names, options)


def _settings(context: click.Context, given: dict[str, Any]) -> dict[str, Any]:
    """The fields of the settings that were given."""
    from primitives.statistics import gradient_statistics

    changes = given_settings(context, options(Settings), given)
    if given["forward_only"]:
        allowed = changes.get("statistics", PRESETS["default"].statistics)
        changes["statistics"] = tuple(s for s in allowed if s not in gradient_statistics())
    if given["is_random"]:
        if changes.get("method", "random") != "random":
            raise click.UsageError(f"--random and --method {changes['method']}: give only one")
        changes["method"] = "random"
    return changes


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


def _resume_command(given: dict[str, Any]) -> str:
    from lpzero import plugins

    words = ["lpzero", "discover", "--out", str(given["out"]), "--resume", *plugins.arguments()]
    for name in ("data", "cache"):
        if given[name]:
            words += [f"--{name}", str(given[name])]
    words += [word for text in given["track"] for word in ("--track", text)]
    return shlex.join(words)


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


def _print(result: dict[str, Any], given: dict[str, Any]) -> None:
    form = given["form"]
    if form == "json":
        output.print_json(result)
        return
    from lpzero.judgement.counters import BEST_COUNT

    best = result["best"]
    click.echo(f"best formula, chosen by --choose {result['chosen_on']}: {best['formula']}\n")
    for table in result["tables"]:
        name = table["name"]
        rows = [
            {"best on": part, **output.judged_columns(line)}
            for part, line in best["judged"][name].items()
        ]
        count = result["count"]
        if count is not None:
            judged = count["judged"][name]["test"]
            rows.append({"best on": f"test: {BEST_COUNT}", **output.judged_columns(judged)})
        counters = [line for line in result["counters"] if line["table"] == name]
        rows += [
            {"best on": f"test: {line['proxy']}", **output.judged_columns(line["judged"]["test"])}
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
