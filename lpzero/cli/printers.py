"""What verbs print in a terminal: `show_NAME(outcome, request)` for each that is not plain rows."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from lpzero.cli import output
from lpzero.judgement.counters import BEST_COUNT
from lpzero.verbs import Outcome
from lpzero.verbs.counters import judged_columns
from spaces.tables.source import NO_SPACE

_MUCH = 0.05  # in rho
_MILLI = 1000
_BEST_MEANS = 10
Fields = Mapping[str, Any]


def show_discover(outcome: Outcome, request: Any) -> None:
    """Print the verdict, the formula, its figures and what to do next; wide, also its rivals."""
    result = outcome.result
    is_brief = output.width() is not None
    _print_headlines(result)
    told = f"formula (chosen by --choose {result['chosen_on']}): {result['best']['formula']}"
    output.say(told, indent="  ")
    output.say()
    output.print_rows(
        [row for table in result["tables"] for row in _parts(result, table["name"])], "table"
    )
    output.say()
    _print_expectation(result)
    if not is_brief:
        _print_rivals(result)
    _print_held_out(result.get("held_out"))
    _note_passed_over(result["passed_over"])
    stopped = f" (stopped by {result['stopped']})" if result["stopped"] else ""
    output.say(
        f"{result['generations']:,} generations{stopped}, {result['evaluated']:,} formulas"
        f" evaluated, {sum(result['rejected'].values()):,} rejected, {result['repeats']:,} repeats,"
        f" {result['seconds']:.1f} s; everything is in {result['out']}"
    )
    _print_next(result)


def _of_table(result: Fields, table: Fields) -> str:
    return f"{table['name']}: " if len(result["tables"]) > 1 else ""


def _parts(result: Fields, table: str) -> Iterator[dict[str, Any]]:
    """The winner on each part of a table, beside the rival that the verdict is about."""
    name, sign = _rival(result, table)
    if name == BEST_COUNT:
        rival = result["count"]["judged"][table]
    else:
        [rival] = [
            line["judged"]
            for line in result["counters"]
            if (line["table"], line["proxy"]) == (table, name)
        ]
    for part, judged in result["best"]["judged"][table].items():
        yield {
            **({"table": table} if len(result["tables"]) > 1 else {}),
            "part": part,
            "n": judged["n"],
            "rho": judged["rho"],
            "interval": judged["rho_ci"],
            "best rival": f"{sign * rival[part]['rho']:.3f}, {'' if sign > 0 else '-'}{name}",
        }


def _rival(result: Fields, table: str) -> tuple[str, int]:
    """The name of the first rival, and its sign: less of it may be better."""
    first = next(line for line in result["differences"] if line["table"] == table)
    name = str(first["against"])
    is_counter = any(line["proxy"] == name for line in result["counters"])
    is_negated = name.startswith("-") and not is_counter
    return (name[1:], -1) if is_negated else (name, 1)


def _print_expectation(result: Fields) -> None:
    """Say what rho to expect on new rows, and what more rows would bring."""
    levels, learning = result.get("levels"), result.get("learning")
    if levels is not None:
        expected = levels["expected"]
        output.say(
            f"expected on new {_left_out(levels)}: rho {expected['rho']:.3f} ±"
            f" {expected['error']:.3f} (level: {levels['chosen']})"
        )
        for line in levels.get("tables_left_out", ()):
            counter = line["counter"]  # none without networks
            beside = "" if counter is None else f", {counter} {line['counter_rho']:.3f}"
            output.say(f"  {line['table']} left out: rho {line['rho']:.3f}{beside}")
        if expected["warning"] is not None:
            output.note(f"warning: {expected['warning']}")
    _print_predictor(result)
    if learning is not None:
        output.say(learning["sentence"])


def _left_out(levels: Fields) -> str:
    """What was left out in turn to choose the level."""
    return "tables" if "tables_left_out" in levels else "rows"


def _print_predictor(result: Fields) -> None:
    """Say what the predictor beside the formula reaches: the best guess, but not a formula."""
    predictor = result.get("predictor")
    if predictor is not None:
        [judged] = predictor["judged"].values()
        low, high = judged["test"]["rho_ci"]
        expected = predictor["expected"]
        output.say(
            f"predictor (best guess, not a formula): test rho {judged['test']['rho']:.3f}"
            f" [{low:.3f}, {high:.3f}]"
        )
        output.say(f"  expected {expected['rho']:.3f} ± {expected['error']:.3f}")


def _print_rivals(result: Fields) -> None:
    """Print every counter on test, the differences, the facts and the next best formulas."""
    for line in (result.get("levels") or {"lines": ()})["lines"]:
        output.say(f"level {line['level']}: cross-validated rho {line['rho']:.3f}")
    output.say()
    for table in result["tables"]:
        name = table["name"]
        best = result["best"]["judged"][name].items()
        rows = [{"best on": part, **judged_columns(line)} for part, line in best]
        count = result["count"]
        if count is not None:
            judged = count["judged"][name]["test"]
            rows.append({"best on": f"test: {BEST_COUNT}", **judged_columns(judged)})
        rows += [
            {"best on": f"test: {line['proxy']}", **judged_columns(line["judged"]["test"])}
            for line in result["counters"]
            if line["table"] == name
        ]
        title = f"{name}: {table['target']}, fitness on {table['n_fitness']} architectures"
        output.print_rows(rows, "table", title=title)
        output.say()
    print_verdict(result)
    rows = [
        {
            "formula": line["formula"],
            **{f"rho {part}": value for part, value in line["rho"].items()},
            "size": line["complexity"],
            "front": line["front"],
        }
        for line in result["top"]
    ]
    output.print_rows(rows, "table")
    output.say()


def _print_next(result: Fields) -> None:
    """Print two commands that continue from the result."""
    out, space = shlex.quote(result["out"]), result["tables"][0]["space"]
    has_networks = space not in (None, NO_SPACE)
    use = f"search {space} --proxy {out}" if has_networks else f"export {out} --to python"
    output.say(f"next: lpzero report {out}")
    output.say(f"      lpzero {use}")


def _note_passed_over(better: dict[str, Any] | None) -> None:
    """Say so if formulas that do not repeat rank train and valid much better than the winner."""
    if better is not None and better["rho"] - better["rho_chosen"] > _MUCH:
        output.note(
            f"note: {better['formula']} ranks train and valid much better ({better['rho']:.3f}"
            f" against {better['rho_chosen']:.3f}), but its scores repeat at"
            f" {better['stability']:.3f} only; --stable and --choose valid allow such formulas"
        )


_HELD_OUT = {
    "formula": "rho",
    "best single column": "column_rho",
    "ridge on the columns' logarithms": "ridge_rho",
    "predictor (Gaussian process and formula)": "predictor_rho",
}


def _print_held_out(medians: dict[str, Any] | None) -> None:
    if medians is None:
        return
    best = medians["best_column"]
    rows = [
        {"fitted on each split": name, "rho test": medians[key]}
        for name, key in _HELD_OUT.items()
        if key in medians
    ]
    title = f"medians over {medians['splits']} splits, the formula ahead in {medians['ahead']}"
    output.say()
    output.print_rows(rows, "table", title=title)
    output.say(f"best single column on all rows: {best['column']}, {best['rho_on_all_rows']:.3f}")


def show_exhaust(outcome: Outcome, request: Any) -> None:
    """Print the verdict, the best formulas, the counters, and the winner on every part."""
    result, form = outcome.result, "table"
    [table] = result["tables"]
    best = result["best"]
    if best is not None:
        _print_headlines(result)
        output.say()
    head = (
        f"{table['name']}: {table['target']}, space {table['space']}, chosen on"
        f" {table['n']['train']} architectures, tested on {table['n']['test']}"
    )
    rows = [_rho_row("formula", line["formula"], line["rho"]) for line in result["top"]]
    output.print_rows(rows, form, title=head)
    output.say()
    beside = [] if result["count"] is None else [{"proxy": BEST_COUNT, **result["count"]}]
    beside += result["counters"]
    rows = [_rho_row("counter", line["proxy"], line["rho"]) for line in beside]
    output.print_rows(rows, form)
    output.say()
    if best is not None:
        judged = best["judged"][table["name"]]
        rows = [{"best on": part, **judged_columns(line)} for part, line in judged.items()]
        output.print_rows(rows, form)
        output.say()
    print_verdict(result)
    output.say(
        f"{result['evaluated']:,} formulas evaluated{_screened(result)},"
        f" {sum(result['rejected'].values()):,} rejected, {result['seconds']:.1f} s; the measures"
        f" are in {result['out']}"
    )
    output.say(f"next: lpzero report {shlex.quote(result['out'])}")


def _screened(result: dict[str, Any]) -> str:
    if result["ranked"] == result["evaluated"]:
        return ""
    return f" in closed form, the best {result['ranked']:,} of them ranked exactly"


def _rho_row(kind: str, name: str, rho: dict[str, float]) -> dict[str, Any]:
    return {kind: name, **{f"rho {part}": value for part, value in rho.items()}}


def print_verdict(result: Fields) -> None:
    """Print the best count of a result, if it has one, and what the winner is compared with."""
    count = result["count"]
    if count is not None:
        by_table = count.get("formula_by_table", {"": count["formula"]})
        for table, formula in by_table.items():
            output.say(f"best count{f' on {table}' if table else ''}: {formula}")
        output.say()
    if result["best"] is None:
        return
    several = len(result["tables"]) > 1
    output.print_rows([_against(line, several) for line in result["differences"]], "table")
    output.say()
    for table in result["tables"]:
        for fact in _facts(result, table["name"]):
            output.say(_of_table(result, table) + fact)
    output.say()


def _print_headlines(result: Fields) -> None:
    """Say in a sentence what the winner beats on each table."""
    from lpzero.judgement.rivals import headline

    for table in result["tables"]:
        first = next(line for line in result["differences"] if line["table"] == table["name"])
        test = result["best"]["judged"][table["name"]]["test"]
        told = headline(test, first["against"], first["outcome"], first["is_column"])
        output.say(_of_table(result, table) + told)


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


def _facts(result: Fields, table: str) -> Iterator[str]:
    from lpzero.judgement.rivals import within_claim

    test = result["best"]["judged"][table]["test"]
    within, n = test["rho_within"], test["n_within"]
    yield "rho within groups of equal depth and width on test: " + (
        "no group is large enough"
        if within is None
        else f"{output.cell(within)} on {n} rows: {within_claim(within, n)}"
    )
    stability = result["stability"]
    if stability is not None and stability["table"] == table:
        yield (
            f"rank correlation with scores of other weights and batches (n = {stability['n']}):"
            f" median {stability['median']:.4f}, least {stability['least']:.4f}"
        )
    for floor in result["floor"]:
        if floor["table"] == table:
            yield (
                f"the search on permuted targets ({floor['permutations']} times):"
                f" fits {output.cell(floor['fit'])} {output.cell(floor['fit_ci'])},"
                f" tests at {output.cell(floor['test'])} {output.cell(floor['test_ci'])}"
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
    others = [get(name) for name in counters.defined(table.space) if name not in named]
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
    shown |= {key: row[key] for key in ("n", "rho", "rho_ci")}
    for kind in ("seeds", "batches"):
        if f"rho_{kind}_std" in row:
            mean, spread = row[f"rho_{kind}_mean"], row[f"rho_{kind}_std"]
            shown[kind] = f"{mean:.3f} ± {spread:.3f}"
    if "alike" in row:
        shown |= {"rho exact": row["rho_exact"], "alike": row["alike"]}
    shown |= {key: row[key] for key in ("tau", "rho_given_params")}
    cost = row["seconds"]
    shown["ms"] = None if cost is None else round(cost * _MILLI, 1)
    shown |= {f"rho {part}": row[part]["rho"] for part in SPLIT_PARTS if part in row}
    shown |= {"top 10%": row["top_precision"], "rho_within": row["rho_within"]}
    shown["pairs_within"] = row["pairs_within"]
    shown["rho_untied"] = row["rho_untied"]
    printed = [f"{figure['source']}: {_figure(figure)}" for figure in row["published"]]
    return {**shown, "published": "; ".join(printed) or None}


def _figure(figure: dict[str, Any]) -> str:
    return f"tau {figure['tau']:.3f}" if figure["rho"] is None else f"{figure['rho']:.3f}"


def show_leaderboard(outcome: Outcome, request: Any) -> None:
    """Print the cells and the best proxy of each table, and the best mean ranks."""
    from lpzero.proxies.leaderboard import FITTED

    result, rows = outcome.result, []
    proxies = {e["proxy"] for e in result["proxies"] if e["family"] != FITTED}
    for entry in result["tables"]:
        cells = [cell for cell in result["cells"] if cell["table"] == entry["name"]]
        scored = [c for c in cells if c["n"] and not c["in_sample"] and c["proxy"] in proxies]
        best = max(scored, key=lambda cell: cell["rho"], default=None)
        row = {"table": entry["name"], "rows": entry["n"]}
        row |= {s: sum(cell["state"] == s for cell in cells) for s in result["states"]}
        row |= {"rho": None if best is None else best["rho"]}
        rows.append(row | {"best": None if best is None else best["proxy"]})
    output.print_rows(rows, "table", title="cells of each table, and its best proxy out of sample")
    for means in result["mean_ranks"]:
        title = (
            f"\nmean ranks of {len(means['rows'])} proxies, {means['over']}: critical difference"
            f" {means['critical_difference']:.1f}"
        )
        output.print_rows(means["rows"][:_BEST_MEANS], "table", title=title)
    output.say()
    output.say(f"page: {outcome.about['page']}")
    output.say(f"JSON: {outcome.about['json']}")


def show_search(outcome: Outcome, request: Any) -> None:
    """Print the best architecture, or the table of a comparison."""
    if request.compare:
        print_comparison(outcome.result, request.out)
        return
    _print_search(outcome.result)
    if outcome.about["footprint"] is not None:
        output.say(str(outcome.about["footprint"]))


def _print_search(result: dict[str, Any]) -> None:
    """Print the best architecture, its size and cost, and the steps at which it changes."""
    from lpzero.search.answers import sentences

    best = dict(result["best"])
    output.say(json.dumps(best.pop("arch")))
    output.say()
    outside = best.pop("outside_table", [])
    of = result["evaluator"]
    # Scores of formulas may be a millionth or a million.
    of_any_size = ("score", "best") if of["evaluator"] == "proxy" else ("score",)
    title = f"{result['loop']} with {result['proxy']}"
    output.print_rows([best], "table", title, of_any_size)
    output.say()
    shown = ("step", "scored", "evaluations", "score", "target", "best", "alike")
    trace, before = [], object()
    for entry in result["trace"]:
        if entry["best"] != before:
            trace.append({key: entry[key] for key in shown if key in entry})
        before = entry["best"]
    output.print_rows(trace, "table", "steps at which the best changes", of_any_size)
    if "front" in result:
        rows = [{**entry, "arch": json.dumps(entry["arch"])} for entry in result["front"]]
        output.say()
        output.print_rows(rows, "table", "the front of target against cost")
    error = f", cross-validated rmse {of['rmse']:.4g}, rho {of['rho']:.3f}" if "rmse" in of else ""
    source = f" of {of['table']}" if "table" in of else ""
    evaluated = f"{result['evaluations']:,} evaluated by {of['evaluator']}{source}{error}"
    if of["evaluator"] == "proxy":
        evaluated = "none evaluated, only the proxy was used"
    output.say(f"\n{result['scored']:,} scored, {evaluated}, {result['seconds']:.1f} s")
    for sentence in (*sentences(result), *result.get("remarks", ())):
        output.say(sentence)
    if outside:
        output.say(
            f"outside the surrogate's table: {', '.join(outside)}; the target is extrapolated"
        )


def print_comparison(result: dict[str, Any], out: str | None) -> None:
    """Print the table of arms, and where the curves are."""
    threshold, example = result["threshold"], result["evaluator"]
    limit = "" if threshold is None else f"; the best 1% start at {threshold:.6g}"
    output.print_rows(result["rows"], "table", title=f"{example['target']}{limit}")
    if out is not None:
        output.say(f"\ncurves and every run are in {out}")
        output.say(f"a page of them: lpzero report {shlex.quote(out)}")


def show_train(outcome: Outcome, request: Any) -> None:
    """Print where the table is, or how good the networks are with the supernet's weights."""
    result = outcome.result
    if request.supernet:
        _print_networks(result)
    else:
        output.say(f"{result['table']} ({result['seconds']:.0f} s)")


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
    output.say(f"\n{result['directory']} ({result['seconds']:.0f} s)")
