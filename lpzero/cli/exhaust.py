"""`lpzero exhaust TABLE`: every formula of the paper's space, best first."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lpzero.cli import output
from lpzero.parallel import Workers
from lpzero.sketches.sketch import SketchOptions
from primitives.statistics import STATISTICS, gradient_statistics

if TYPE_CHECKING:
    from lpzero.exhaust import Exhaustion, Query

_UNITS = {"": 1 << 30, "G": 1 << 30, "GB": 1 << 30, "M": 1 << 20, "MB": 1 << 20}
_UPSTREAM = "flexibert-upstream"


class MemorySize(click.ParamType[int]):
    """An amount of memory in bytes, given as 4GB, 512MB or 4 (gigabytes)."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        if isinstance(value, int):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Z]*)", str(value).strip().upper())
        if found is None or found[2] not in _UNITS or not float(found[1]):
            self.fail(f"{value!r} is no amount of memory; write 4GB or 512MB", param, ctx)
        return int(float(found[1]) * _UNITS[found[2]])


@click.command()
@click.argument("table")
@click.option(
    "--unaries",
    type=click.IntRange(1, 2),
    default=1,
    show_default=True,
    help="Operations per chain.",
)
@click.option("--same-statistic", is_flag=True, help="Pair each statistic with itself, too.")
@click.option(
    "--split-seed", type=int, default=0, show_default=True, help="Which train, valid and test rows."
)
@click.option(
    "--upstream-dims",
    is_flag=True,
    help="Build FlexiBERT with hidden 256 and FFN 1024 throughout, as was published.",
)
@click.option(
    "--memory",
    type=MemorySize(),
    default="4GB",
    show_default=True,
    help="What the search may take, all processes together.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    help="The run's directory; runs/exhaust-... if not given.",
)
@click.option(
    "--reduction", type=click.Choice(["sum", "mean"]), help="Only formulas that reduce blocks so."
)
@click.option(
    "--operation",
    type=click.Choice(["add", "sub", "mul", "matmul", "one-sided"]),
    help="Only formulas of this operation.",
)
@click.option(
    "--using", type=click.Choice(list(STATISTICS)), help="Only formulas of this statistic."
)
@click.option("--forward-only", is_flag=True, help="Only formulas that need no gradient.")
@click.option(
    "--by",
    type=click.Choice(["rho", "given-params", "within"]),
    default="rho",
    show_default=True,
    help="What on the training rows makes a formula best.",
)
@click.option(
    "--top",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="How many formulas to show.",
)
@output.running_options
@output.seed_option
@click.pass_context
def exhaust(context: click.Context, /, **given: Any) -> None:
    """Judge every formula of the paper's space on TABLE: chosen on train, reported on test.

    A second call with the same directory computes nothing and may ask for something else (--by,
    --using, --forward-only ...); an interrupted one goes on.
    """  # fmt: skip
    from lpzero.exhaust import Exhaustion, Query

    start = time.perf_counter()
    asked = Exhaustion(
        given["unaries"], given["same_statistic"], given["memory"], Workers(given["jobs"]), True
    )
    without = gradient_statistics() if given["forward_only"] else ()
    query = Query(given["by"], given["reduction"], given["operation"], given["using"], without,
                  given["top"])  # fmt: skip
    try:
        result = _result(given, asked, query)
    except KeyboardInterrupt:
        output.note("stopped; what is done is kept, the same command goes on")
        context.exit(output.INTERRUPTED)
    result["seconds"] = round(time.perf_counter() - start, 3)
    _print(result, given["form"])


def _result(given: dict[str, Any], asked: Exhaustion, query: Query) -> dict[str, Any]:
    from lpzero import exhaust as engine
    from lpzero.exhaust.results import keep
    from lpzero.sketches.builder import Builder, sketches
    from lpzero.sketches.store import Store, default_folder
    from spaces.tables import load, split

    table = load(given["table"], given["data"], _UPSTREAM if given["upstream_dims"] else None)
    options = SketchOptions(seed=given["seed"], batch_seed=given["seed"])
    store = Store(Path(given["cache"]).expanduser() if given["cache"] else default_folder())
    builder = Builder(options, store, asked.workers, given["device"], label="sketches")
    found = sketches(table, builder)
    parts = split(table, given["split_seed"])
    folder = Path(given["out"] or _default_folder(given))
    run = engine.exhaust(table, found, parts, folder, asked, options)
    result = engine.report(table, parts, found, run, asked, query, given["seed"])
    sheet = engine.scores(table, parts, found, run[1], result)
    keep(folder, result, sheet)
    return {**result, "out": str(folder)}


def _default_folder(given: dict[str, Any]) -> Path:
    name = f"exhaust-{given['table']}"
    name += "-upstream" if given["upstream_dims"] else ""
    name += f"-{given['unaries']}"
    name += "-same" if given["same_statistic"] else ""
    name += f"-split{given['split_seed']}"
    return Path("runs", name + (f"-seed{given['seed']}" if given["seed"] else ""))


def _print(result: dict[str, Any], form: str) -> None:
    if form == "json":
        output.print_json(result)
        return
    head = (
        f"{result['table']}: {result['target']}, space {result['space']}, chosen on"
        f" {result['n']['train']} architectures, tested on {result['n']['test']}"
    )
    rows = [_row("formula", line["formula"], line["rho"]) for line in result["top"]]
    output.print_rows(rows, form, title=head)
    click.echo()
    rows = [_row("counter", line["proxy"], line["rho"]) for line in result["counters"]]
    output.print_rows(rows, form)
    best = result["best"]
    click.echo()
    if best is not None:
        rows = [{"best on": part, **_shown(judged)} for part, judged in best["judged"].items()]
        output.print_rows(rows, form)
        click.echo()
    click.echo(
        f"{result['evaluated']:,} formulas evaluated, {sum(result['rejected'].values()):,}"
        f" rejected, {result['seconds']:.1f} s; all measures are in {result['out']}"
    )


def _row(kind: str, name: str, rho: dict[str, float]) -> dict[str, Any]:
    return {kind: name, **{f"rho {part}": value for part, value in rho.items()}}


def _shown(judged: dict[str, Any]) -> dict[str, Any]:
    shown = ("n", "rho", "rho_ci", "tau", "tau_ci", "rho_given_params", "rho_within")
    return {key: judged[key] for key in (*shown, "top_precision")}
