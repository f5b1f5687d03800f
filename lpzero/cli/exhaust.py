"""`lpzero exhaust TABLE`: every formula of the paper's space, best first."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from lpzero.cli import output
from lpzero.cli.interruption import stopped_with
from lpzero.cli.settings_options import given_settings, settings_options
from lpzero.cli.verdict import permutations_option, print_verdict
from lpzero.exhaust import ExhaustSettings, Query
from lpzero.options import options
from lpzero.sketches.sketch import SketchOptions
from lpzero.statistics.definitions import OURS
from primitives.statistics import gradient_statistics

_UPSTREAM = "flexibert-upstream"


@click.command()
@click.argument("table")
@settings_options(ExhaustSettings)
@click.option(
    "--split-seed",
    type=int,
    default=0,
    show_default=True,
    help="The seed of the train/valid/test split.",
)
@click.option(
    "--upstream-dims",
    is_flag=True,
    help="Build every FlexiBERT model with hidden 256 and FFN 1024, as published.",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False),
    help="The run's directory.  [default: runs/exhaust-TABLE-...]",
)
@settings_options(Query)
@click.option(
    "--forward-only", is_flag=True, help="Same as --without GJ: no statistics that need gradients."
)
@permutations_option
@output.file_options
@output.batch_options
@output.definitions_option
@output.running_options
@output.no_lock_option
@output.seed_option
@click.pass_context
def exhaust(context: click.Context, /, **given: Any) -> None:
    """Judge every formula of the paper's space on TABLE: chosen on train, reported on test.

    An interrupted run continues with the same command. Once a run is finished, the same command
    with other filters (--by, --using, --forward-only, ...) only reads its measures. With --terms 2
    the filters are --by and --top, with --unaries 2 as well --top alone.
    """
    from lpzero.scores.floor import check_permutations

    start = time.perf_counter()
    check_permutations(given["permutations"])
    asked = ExhaustSettings(
        **given_settings(context, options(ExhaustSettings), given),
        workers=output.workers(given),
        progress=True,
        lock=not given["no_lock"],
    )
    query = Query(**given_settings(context, options(Query), given))
    if given["forward_only"]:
        query = replace(query, without=tuple(sorted({*query.without, *gradient_statistics()})))
    with stopped_with(context):
        result = _result(given, asked, query)
    result["seconds"] = round(time.perf_counter() - start, 3)
    _print(result, given["form"])


def _result(given: dict[str, Any], asked: ExhaustSettings, query: Query) -> dict[str, Any]:
    from lpzero import exhaust as engine
    from lpzero.exhaust.report import floors
    from lpzero.exhaust.run import exhaustive_config
    from lpzero.runs.directory import RunDirectory
    from lpzero.scores.best_count import best_count
    from lpzero.sketches.builder import Builder, sketches
    from lpzero.sketches.store import Store, default_folder
    from spaces.tables import split

    start = time.perf_counter()
    table = output.load_table(given, _UPSTREAM if given["upstream_dims"] else None)
    seed, batch = given["seed"], output.chosen_batch(given)
    definitions = given["definitions"]
    sketch = SketchOptions(seed=seed, batch_seed=seed, batch=batch, definitions=definitions)
    store = Store(Path(given["cache"]).expanduser() if given["cache"] else default_folder())
    builder = Builder(sketch, store, asked.workers, given["device"], label="sketches", is_lazy=True)
    found = sketches(table, builder)
    other = replace(sketch, seed=sketch.seed + 1, batch_seed=sketch.batch_seed + 1)
    repeated = sketches(table, replace(builder, options=other, label="sketches, other seed"))
    parts = split(table, given["split_seed"])
    folder = Path(given["out"] or _default_folder(given, asked, table.name))
    run = engine.exhaust(table, found, parts, folder, asked, sketch)
    count = best_count(table, parts.train)
    result = engine.report(table, parts, found, run, asked, query, count, repeated)
    result |= {
        "permutations": given["permutations"],
        "floor": floors(table, parts, run[0], given["permutations"], asked),
    }
    sheet = engine.scores(table, parts, found, run[1], result, asked.workers)
    seconds = time.perf_counter() - start
    config = exhaustive_config(table, parts, asked, sketch)
    with RunDirectory(folder, config, True, lock=asked.lock) as directory:
        directory.write_result(result, seconds, sheet)
    return {**result, "out": str(folder)}


def _default_folder(given: dict[str, Any], asked: ExhaustSettings, table: str) -> Path:
    name = f"exhaust-{table}"
    name += "-upstream" if given["upstream_dims"] else ""
    name += f"-{asked.unaries}"
    name += "-terms2" if asked.terms == 2 else ""
    name += "-same" if asked.same_statistic else ""
    name += f"-batch{given['batch']}" if given["batch"] else ""
    name += f"-length{given['length']}" if given["length"] else ""
    name += f"-{Path(given['corpus']).stem}" if given["corpus"] else ""
    name += f"-{Path(given['tokenizer']).stem}" if given["tokenizer"] else ""
    name += "" if given["definitions"] == OURS else f"-{given['definitions']}"
    name += f"-split{given['split_seed']}"
    return Path("runs", name + (f"-seed{given['seed']}" if given["seed"] else ""))


def _print(result: dict[str, Any], form: str) -> None:
    if form == "json":
        output.print_json(result)
        return
    from lpzero.judgement.counters import BEST_COUNT

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
        rows = [{"best on": part, **output.judged_columns(line)} for part, line in judged.items()]
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
