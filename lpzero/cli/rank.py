"""What `lpzero rank` prints: the proxies beside the counters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from lpzero.cli import output
from lpzero.verbs import Outcome

_MILLI = 1000


def show(outcome: Outcome, request: Any) -> None:
    """Print a row per proxy, and the counters for comparison."""
    table, page = outcome.about["table"], outcome.about["page"]
    if table.space is None:
        title = f"{table.name}: {table.target}, {len(table.columns)} columns, no networks"
        output.print_rows([_shown(row) for row in outcome.result], "table", title=title)
    else:
        _print(table, outcome.result, outcome.about["ranking"])
    output.note([] if page is None else [f"report: {page}"])


def _print(table: Any, rows: list[dict[str, Any]], ranking: Any) -> None:
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
