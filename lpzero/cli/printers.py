"""What verbs print in a terminal: `show_NAME(outcome, request)` for each that is not plain rows."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import click

from lpzero.cli import output
from lpzero.verbs import Outcome
from lpzero.verbs.counters import judged_columns

_MUCH = 0.05  # in rho
_MILLI = 1000
Fields = Mapping[str, Any]


def show_discover(outcome: Outcome, request: Any) -> None:
    """Print the winner on every part of every table, the verdict, and the next best formulas."""
    from lpzero.judgement.counters import BEST_COUNT

    result, form = outcome.result, "table"
    best = result["best"]
    click.echo(f"best formula, chosen by --choose {result['chosen_on']}: {best['formula']}")
    _print_levels(result.get("levels"))
    click.echo()
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
    if result.get("learning") is not None:
        click.echo(f"\nlearning curve: {result['learning']['sentence']}")
    _note_passed_over(result["passed_over"])
    stopped = f" (stopped by {result['stopped']})" if result["stopped"] else ""
    click.echo(
        f"\n{result['generations']:,} generations{stopped}, {result['evaluated']:,} formulas"
        f" evaluated, {sum(result['rejected'].values()):,} rejected, {result['repeats']:,} repeats,"
        f" {result['seconds']:.1f} s; everything is in {output.printable(result['out'])}"
    )


def _print_levels(levels: dict[str, Any] | None) -> None:
    """Say which level was taken, what its rho on new rows should be, and what is doubtful."""
    if levels is None:
        return
    expected = levels["expected"]
    rhos = ", ".join(f"{line['level']} {line['rho']:.3f}" for line in levels["lines"])
    click.echo(f"level: {levels['chosen']}; the cross-validated rho of each:\n  {rhos}")
    click.echo(
        f"expected on new rows: rho {expected['rho']:.3f} ± {expected['error']:.3f}"
        f" (train and valid, fitted: {expected['fit']:.3f})"
    )
    if expected["warning"] is not None:
        output.note(f"warning: {expected['warning']}")


def _note_passed_over(better: dict[str, Any] | None) -> None:
    """Say so if formulas that do not repeat rank train and valid much better than the winner."""
    if better is not None and better["rho"] - better["rho_chosen"] > _MUCH:
        output.note(
            f"note: {better['formula']} ranks train and valid much better ({better['rho']:.3f}"
            f" against {better['rho_chosen']:.3f}), but its scores repeat at"
            f" {better['stability']:.3f} only; --stable and --choose valid allow such formulas"
        )


def _print_held_out(medians: dict[str, Any] | None) -> None:
    if medians is None:
        return
    best = medians["best_column"]
    rows = [
        {"beam search on each split": "formula", "rho test": medians["rho"]},
        {"beam search on each split": "best single column", "rho test": medians["column_rho"]},
    ]
    title = f"medians over {medians['splits']} splits, the formula ahead in {medians['ahead']}"
    click.echo()
    output.print_rows(rows, "table", title=title)
    click.echo(f"best single column on all rows: {best['column']}, {best['rho_on_all_rows']:.3f}")


def show_exhaust(outcome: Outcome, request: Any) -> None:
    """Print the best formulas, the counters, the winner on every part and the verdict."""
    from lpzero.judgement.counters import BEST_COUNT

    result, form = outcome.result, "table"
    [table] = result["tables"]
    head = (
        f"{table['name']}: {table['target']}, space {table['space']}, chosen on"
        f" {table['n']['train']} architectures, tested on {table['n']['test']}"
    )
    rows = [_rho_row("formula", line["formula"], line["rho"]) for line in result["top"]]
    output.print_rows(rows, form, title=head)
    click.echo()
    beside = [] if result["count"] is None else [{"proxy": BEST_COUNT, **result["count"]}]
    beside += result["counters"]
    rows = [_rho_row("counter", line["proxy"], line["rho"]) for line in beside]
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


def _rho_row(kind: str, name: str, rho: dict[str, float]) -> dict[str, Any]:
    return {kind: name, **{f"rho {part}": value for part, value in rho.items()}}


def print_verdict(result: Fields) -> None:
    """Write the best count of a result, if it has one, and its verdict to stdout."""
    count = result["count"]
    if count is not None:
        by_table = count.get("formula_by_table", {"": count["formula"]})
        for table, formula in by_table.items():
            click.echo(f"best count{f' on {table}' if table else ''}: {formula}")
        click.echo()
    if result["best"] is None:
        return
    names = [table["name"] for table in result["tables"]]
    for name in names:
        click.echo((f"{name}: " if len(names) > 1 else "") + _headline(result, name))
    output.print_rows([_against(line, len(names) > 1) for line in result["differences"]], "table")
    click.echo()
    rows = [
        {**({"table": name} if len(names) > 1 else {}), "fact": fact, "value": value}
        for name in names
        for fact, value in _facts(result, name)
    ]
    output.print_rows(rows, "table")
    click.echo()


def _headline(result: Fields, table: str) -> str:
    from lpzero.judgement.rivals import headline

    first = next(line for line in result["differences"] if line["table"] == table)
    test = result["best"]["judged"][table]["test"]
    return headline(test, first["against"], first["outcome"], first["is_column"])


def _against(line: Fields, with_table: bool) -> dict[str, Any]:
    from lpzero.judgement.rivals import rival_name

    return {
        **({"table": line["table"]} if with_table else {}),
        "against": rival_name(line["against"], line["is_column"]),
        "n": line["n"],
        "difference": line["rho"],
        "difference ci": line["rho_ci"],
        "draws above 0": f"{line['share_above']:.0%}",
        "outcome": line["outcome"],
    }


def _facts(result: Fields, table: str) -> Iterator[tuple[str, str]]:
    from lpzero.judgement.rivals import within_claim

    test = result["best"]["judged"][table]["test"]
    within, n = test["rho_within"], test["n_within"]
    yield (
        "rho within groups of equal depth and width on test",
        "no group is large enough"
        if within is None
        else f"{output.cell(within)} on {n} rows: {within_claim(within, n)}",
    )
    stability = result["stability"]
    if stability is not None and stability["table"] == table:
        yield (
            f"rank correlation with scores of other weights and batches (n = {stability['n']})",
            f"median {stability['median']:.4f}, least {stability['least']:.4f}",
        )
    for floor in result["floor"]:
        if floor["table"] == table:
            yield (
                f"the search on permuted targets ({floor['permutations']} times)",
                f"fits {output.cell(floor['fit'])} {output.cell(floor['fit_ci'])},"
                f" tests at {output.cell(floor['test'])} {output.cell(floor['test_ci'])}",
            )


def show_rank(outcome: Outcome, request: Any) -> None:
    """Print a row per proxy, and the counters for comparison."""
    table, page = outcome.about["table"], outcome.about["page"]
    if table.space is None:
        title = f"{table.name}: {table.target}, {len(table.columns)} columns, no networks"
        output.print_rows([_proxy_row(row) for row in outcome.result], "table", title=title)
    else:
        _print_ranking(table, outcome.result, outcome.about["ranking"])
    output.note([] if page is None else [f"report: {page}"])


def _print_ranking(table: Any, rows: list[dict[str, Any]], ranking: Any) -> None:
    from lpzero.judgement import counters
    from lpzero.proxies import get
    from lpzero.proxies.ranking import rank as compare

    ceiling = "" if table.ceiling is None else f", noise ceiling {table.ceiling:.3f}"
    failed = f", {table.failed} failed trainings left out" if table.failed else ""
    title = f"{table.name}: {table.target}, space {table.space.name}{ceiling}{failed}"
    output.print_rows([_proxy_row(row) for row in rows], "table", title=title)
    named = {row["proxy"] for row in rows}
    others = [get(name) for name in counters.names() if name not in named]
    if others:
        counted = [
            _proxy_row(row) for row in compare(table, others, replace(ranking, is_brief=True))
        ]
        output.print_rows(counted, "table", title="for comparison, the counters")
    flawed = [row for row in rows if row["flaw"] or row["missing"]]
    output.note(
        f"{row['proxy']}: {row['flaw'] or 'scores'}, {row['missing']} of {len(table)} missing"
        for row in flawed
    )


def _proxy_row(row: dict[str, Any]) -> dict[str, Any]:
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
    printed = [f"{figure['source']}: {_figure(figure)}" for figure in row["published"]]
    return {**shown, "published": "; ".join(printed) or None}


def _figure(figure: dict[str, Any]) -> str:
    return f"tau {figure['tau']:.3f}" if figure["rho"] is None else f"{figure['rho']:.3f}"


def show_search(outcome: Outcome, request: Any) -> None:
    """Print the best architecture, or the table of a comparison."""
    if request.compare:
        print_comparison(outcome.result, request.out)
        return
    _print_search(outcome.result)
    if outcome.about["footprint"] is not None:
        click.echo(str(outcome.about["footprint"]))


def _print_search(result: dict[str, Any]) -> None:
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


def show_train(outcome: Outcome, request: Any) -> None:
    """Print where the table is, or how good the networks are with the supernet's weights."""
    result = outcome.result
    if request.supernet:
        _print_networks(result)
    else:
        click.echo(output.printable(f"{result['table']} ({result['seconds']:.0f} s)"))


def _print_networks(result: dict[str, Any]) -> None:
    rows = [
        {
            "parameters": row["parameters"],
            "flops": row["flops"],
            "valid": row["valid"],
            "test": row["test"],
            "95%": "{:.3f} to {:.3f}".format(*row["test_ci"]),
        }
        for row in result["networks"]
    ]
    which = "preferred" if result["is_preferred"] else "some"
    title = f"{result['target']} of {which} networks with the supernet's weights"
    output.print_rows(rows, "table", title)
    click.echo(output.printable(f"\n{result['directory']} ({result['seconds']:.0f} s)"))
