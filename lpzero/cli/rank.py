"""`lpzero rank TABLE`: how well every proxy ranks a table, compared with the counters."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lpzero.cli import output
from lpzero.cli.interruption import stopped_with
from lpzero.statistics.definitions import OURS
from lpzero.statistics.losses import LOSSES

if TYPE_CHECKING:
    from lpzero.proxies import Proxy
    from spaces.tables import ColumnTable, Table

_MILLI = 1000


@click.command()
@click.argument("table")
@click.option(
    "--proxy",
    "texts",
    multiple=True,
    metavar="NAME|FORMULA|FILE",
    help="A proxy, rank-mean(A, B), a formula, an exported file or a run's directory; repeatable."
    "  [default: all that apply, but for -released and what runs on more inputs: v-pca, w-pca,"
    " swap, az-]",
)
@click.option(
    "--released", is_flag=True, help="Without --proxy: also rank the authors' released recipes."
)
@click.option(
    "--upstream-dims",
    is_flag=True,
    help="Build every FlexiBERT model with hidden 256 and FFN 1024, as published.",
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="The number of weight seeds to compare.",
)
@click.option(
    "--batches",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    help="The number of batches to compare.",
)
@click.option(
    "--loss",
    type=click.Choice(LOSSES),
    default="auto",
    show_default=True,
    help="The loss to differentiate; auto is next-token for language models, else cotangent.",
)
@click.option(
    "--split-seed",
    type=int,
    default=0,
    show_default=True,
    help="The seed of the train/valid/test split.",
)
@click.option(
    "--exact", is_flag=True, help="Also score formulas on whole tensors, and correlate both scores."
)
@click.option(
    "--chunk",
    type=click.IntRange(min=1),
    help="The number of sequences per pass; fewer need less memory.  [default: all]",
)
@click.option("--out", type=click.Path(file_okay=False), help="Save the ranking and its page here.")
@output.no_lock_option
@output.batch_options
@output.definitions_option
@output.file_options
@output.running_options
@output.seed_option
@click.pass_context
def rank(context: click.Context, /, **given: Any) -> None:
    """Correlate proxies with the targets of TABLE, best first; results are cached.

    A table without networks, by name or as a file (--target, --task), has its columns ranked.
    """
    from lpzero.discover.table_sources import TableSources, has_no_networks
    from lpzero.proxies import Context, find
    from lpzero.proxies.ranking import Ranking, ranked_by_default
    from lpzero.proxies.ranking import rank_with_scores as compare
    from lpzero.sketches.store import default_folder
    from spaces.tables import load_any

    space = "flexibert-upstream" if given["upstream_dims"] else given["space"]
    start = time.monotonic()
    is_of_columns = has_no_networks(given["table"], space)  # its columns are proxies by name, too
    proxies = [] if is_of_columns else [find(text) for text in given["texts"]]
    sources = TableSources(
        lambda name, space: load_any(name, given["data"], space), output.reading(given)
    )
    table = sources.load(given["table"], space)
    if table.space is None:
        _rank_columns(table, given)
        return
    proxies = proxies or ranked_by_default(table.space, given["released"])
    run = Context(
        given["seed"],
        given["seed"],
        given["loss"],
        given["device"],
        given["chunk"],
        Path(given["cache"]).expanduser() if given["cache"] else default_folder(),
        output.workers(given),
        label=given["table"],
        batch=output.chosen_batch(given),
        definitions=given["definitions"],
    )
    is_shown = given["form"] == "table" and given["out"] is None
    ranking = Ranking(
        run, given["seeds"], given["batches"], given["split_seed"], given["exact"], is_shown
    )
    with stopped_with(context):
        rows, scores = compare(table, proxies, ranking)
    page = _saved(table, given, space, rows, scores, time.monotonic() - start)
    output.note(_seen_test_rows(table, proxies, given["split_seed"]))
    if given["form"] == "json":
        output.print_json(rows)
        return
    _print(table, rows, ranking)
    output.note([] if page is None else [f"report: {page}"])


def _rank_columns(table: ColumnTable, given: dict[str, Any]) -> None:
    """Rank the columns of a table without networks, or the formulas of them that are given."""
    from lpzero.proxies.columns import column_proxy, rank_columns

    proxies = [column_proxy(text, table) for text in given["texts"]]
    start = time.monotonic()
    rows = rank_columns(table, proxies, given["split_seed"])
    page = _saved(table, given, None, rows, {}, time.monotonic() - start)
    output.note(f"note: {remark}" for remark in table.remarks)
    output.note(_seen_test_rows(table, proxies, given["split_seed"]))
    if given["form"] == "json":
        output.print_json(rows)
        return
    title = f"{table.name}: {table.target}, {len(table.columns)} columns, no networks"
    output.print_rows([_shown(row) for row in rows], "table", title=title)
    output.note([] if page is None else [f"report: {page}"])


def _saved(
    table: Table | ColumnTable,
    given: dict[str, Any],
    space: str | None,
    rows: list[dict[str, Any]],
    scores: dict[str, Any],
    seconds: float,
) -> Path | None:
    """Write the ranking and its page to --out, if it is given, and return the page."""
    if given["out"] is None:
        return None
    from lpzero.proxies.ranking_record import ranking_config, result_of
    from lpzero.report import write
    from lpzero.runs.directory import RunDirectory
    from lpzero.runs.run import open_run

    batch = output.chosen_batch(given)
    names: tuple[str, ...] = (
        "seed",
        "split_seed",
        "seeds",
        "batches",
        "loss",
        "exact",
        "chunk",
        "released",
    )
    names += () if given["definitions"] == OURS else ("definitions",)
    options = {name: given[name] for name in names}
    options |= {"asked": given["table"], "space": space, "proxies": list(given["texts"])}
    options |= {"batch": None if batch is None else batch.to_json()}
    folder, config = Path(given["out"]), ranking_config(table, options)
    result, sheet = result_of(table, given["split_seed"], rows, scores)
    with RunDirectory(folder, config, True, lock=not given["no_lock"]) as directory:
        directory.write_result(result, seconds, sheet)
    return write(open_run(folder)).page


def _seen_test_rows(
    table: Table | ColumnTable, proxies: Sequence[Proxy], split_seed: int
) -> Iterator[str]:
    """A remark for each proxy chosen on another split, which has seen test rows of this one."""
    from lpzero.proxies.ranking import chosen_on

    for proxy in proxies:
        seed = chosen_on(proxy).get(table.name)
        if seed not in (None, split_seed):
            yield (
                f"note: {proxy.name} was chosen on split {seed} of {table.name}, so it has seen"
                f" test rows of split {split_seed}; use --split-seed {seed}"
            )


def _print(table: Table, rows: list[dict[str, Any]], ranking: Any) -> None:
    from lpzero.judgement import counters
    from lpzero.proxies import get
    from lpzero.proxies.ranking import rank as compare

    ceiling = "" if table.ceiling is None else f", noise ceiling {table.ceiling:.3f}"
    failed = f", {table.failed} failed trainings left out" if table.failed else ""
    title = f"{table.name}: {table.target}, space {table.space.name}{ceiling}{failed}"
    output.print_rows([_shown(row) for row in rows], "table", title=title)
    named = {row["proxy"] for row in rows}
    others = [get(name) for name in counters.names() if name not in named]
    if others:
        counted = [_shown(row) for row in compare(table, others, replace(ranking, is_brief=True))]
        output.print_rows(counted, "table", title="for comparison, the counters")
    flawed = [row for row in rows if row["flaw"] or row["missing"]]
    output.note(
        f"{row['proxy']}: {row['flaw'] or 'scores'}, {row['missing']} of {len(table)} missing"
        for row in flawed
    )


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """The columns shown in a terminal; JSON has the rest."""
    from lpzero.judgement.table import SPLIT_PARTS

    shown = {"proxy": row["proxy"] + (" (in sample)" if row["in_sample"] else "")}
    judged = ("n", "rho", "rho_untied", "rho_ci", "tau", "rho_given_params")
    shown |= {key: row[key] for key in judged}
    shown |= {"rho_within": row["rho_within"], "top 10%": row["top_precision"]}
    shown |= {f"rho {part}": row[part]["rho"] for part in SPLIT_PARTS if part in row}
    for kind in ("seeds", "batches"):
        if f"rho_{kind}_std" in row:
            mean, spread = row[f"rho_{kind}_mean"], row[f"rho_{kind}_std"]
            shown[kind] = f"{mean:.3f} ± {spread:.3f}"
    if "alike" in row:
        shown |= {"rho exact": row["rho_exact"], "alike": row["alike"]}
    cost = row["seconds"]
    shown["ms"] = None if cost is None else round(cost * _MILLI, 1)
    printed = [f"{figure['source']}: {_number(figure)}" for figure in row["published"]]
    return {**shown, "published": "; ".join(printed) or None}


def _number(figure: dict[str, Any]) -> str:
    return f"tau {figure['tau']:.3f}" if figure["rho"] is None else f"{figure['rho']:.3f}"
