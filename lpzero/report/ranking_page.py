"""The page of a ranking: which proxy ranks the table best, and how far above counting it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lpzero.errors import InputError
from lpzero.judgement import counters
from lpzero.judgement.bootstrap import paired_difference
from lpzero.judgement.table import LEAST_ARCHS
from lpzero.proxies.ranking import RankingRun
from lpzero.report.chart import Chart
from lpzero.report.figures import FOUND, HOLDS, ranking, scores
from lpzero.report.markup import (
    NOTHING,
    Cell,
    Child,
    Markup,
    element,
    number,
    pairs,
    table,
    with_interval,
)
from lpzero.report.page import Content, Section, reproduction, versions
from lpzero.runs.formula_run import FormulaRun
from lpzero.runs.run import Run

_MILLI = 1000
Row = Mapping[str, Any]


def content(run: RankingRun, *others: Any) -> Content:
    """What the page of a ranking says."""
    name = str(run.table["name"])
    return Content(
        f"{name}: ranking of {len(run.rows)} proxies",
        run.remarks,
        [
            Section(FOUND, "Which proxy ranks best?", _found(run), "Result"),
            Section(HOLDS, "How does the best rank?", _best(run), "The best"),
            reproduction(run, pairs("What the numbers depend on", _provenance(run))),
        ],
    )


def _found(run: RankingRun) -> list[Markup | Chart | None]:
    if not run.rows:
        return [element("p", "There is no result: see the remarks above.")]
    name, first = str(run.table["name"]), run.rows[0]
    counted = [row for row in run.rows if row["proxy"] in counters.names()]
    said = f"{name}: {first['proxy']} is first of {len(run.rows)} with ρ {_around(first)}."
    beside = None
    if counted and counted[0] is not first:
        beside = f"The best counter is {counted[0]['proxy']} with ρ {_around(counted[0])}."
    figure = ranking.chart(
        ranking.ranking(run.rows),
        f"Every proxy on all {first['n']} rows of {name}. Nothing was chosen here but the"
        " sign that each proxy declares; a proxy that was chosen on this table is marked in the"
        " table below.",
    )
    return [
        element("p", said, class_="headline"),
        None if beside is None else element("p", beside),
        figure,
        _table(run),
    ]


def _proxy(row: Row) -> Cell:
    shown = row["proxy"] + (" (in sample)" if row.get("in_sample") else "")
    return Cell(element("code", shown), str(row["proxy"]))


def _milliseconds(row: Row) -> Cell:
    cost = row.get("seconds")
    return number(None if cost is None else cost * _MILLI, 1)


# What tables of proxies show, by the header of the column, from a row of `lpzero rank`.
COLUMNS: dict[str, Callable[[Row], Child | Cell]] = {
    "proxy": _proxy,
    "ρ": lambda row: with_interval(row.get("rho"), row.get("rho_ci")),
    "τ": lambda row: with_interval(row.get("tau"), row.get("tau_ci")),
    "ρ test": lambda row: number(row.get("test", {}).get("rho")),
    "given parameters": lambda row: number(row.get("rho_given_params")),
    "within groups": lambda row: number(row.get("rho_within")),
    "pairs in order": lambda row: number(row.get("pairs_within")),
    "untied": lambda row: number(row.get("rho_untied")),
    "top 10%": lambda row: number(row.get("top_precision")),
    "ms": _milliseconds,
    "paper": lambda row: row.get("paper") or NOTHING,
}
_SHOWN = (
    "proxy",
    "ρ",
    "τ",
    "ρ test",
    "given parameters",
    "within groups",
    "top 10%",
    "ms",
    "paper",
)


def proxies_table(
    caption: str,
    rows: Sequence[Row],
    columns: Mapping[str, Callable[[Row], Child | Cell]],
    name: str | None = None,
) -> Markup:
    """A sortable table of proxies with these columns."""
    cells = [[cell(row) for cell in columns.values()] for row in rows]
    return table(caption, [list(columns)], cells, sortable=True, name=name)


def _table(run: RankingRun) -> Markup:
    caption = f"{len(run.rows)} proxies, best first"
    return proxies_table(caption, run.rows, {name: COLUMNS[name] for name in _SHOWN})


def _best(run: RankingRun) -> list[Markup | Chart | None]:
    """Score against target and rank against rank of the best proxy."""
    if run.scores is None:
        return [element("p", "The scores of single architectures were not saved.")]
    name = str(run.table["name"])
    column = run.scores["tables"][name]
    kept = [i for i, score in enumerate(column["score"]) if score is not None]
    if len(kept) < 2:
        return [element("p", "The best proxy has hardly any score.")]
    about = {key: [values[i] for i in kept] for key, values in scores.about(column).items()}
    data = scores.scores(
        str(run.scores["formula"]),
        name,
        str(run.table["target"]),
        [column["score"][i] for i in kept],
        [column["target"][i] for i in kept],
        [column["part"][i] for i in kept],
        about,
    )
    return [
        scores.scatter(
            data, "scores", f"Score of {data.proxy} against the target, one point per architecture."
        ),
        scores.rank_panels(
            data, "ranks", f"Rank by {data.proxy} against the true rank; 1 is the best."
        ),
    ]


def _around(row: Mapping[str, Any]) -> str:
    low, high = (number(float(edge)).shown for edge in row["rho_ci"])
    return f"{number(row['rho']).shown} [{low}, {high}]"


def _provenance(run: RankingRun) -> dict[str, Child]:
    values = versions(run)
    for key in ("seed", "split_seed", "loss"):
        values[key.replace("_", " ")] = str(run.request[key])
    values[f"digest of {run.table['name']}"] = element("code", str(run.table["digest"]))
    return values


def compared(ranking: RankingRun, run: Run) -> list[dict[str, Any]]:
    """The rows of a ranking, with `difference` where both have scores of the same test rows.

    Raise InputError if the ranking is of a table that the run is not about.
    """
    rows = [dict(row) for row in ranking.rows]
    if not isinstance(run, FormulaRun):
        return rows
    name = str(ranking.table["name"])
    digests = {str(table["name"]): table["digest"] for table in run.tables}
    if digests.get(name) != ranking.table["digest"]:
        raise InputError(
            f"{ranking.folder} ranks {name}, which is not the table of {run.folder}, or has changed"
        )
    if run.scores is None or ranking.scores is None:
        return rows
    winner, ranked = run.scores["tables"][name], ranking.scores["tables"][name]
    if winner["part"] != ranked["part"]:
        raise InputError(
            f"{ranking.folder} and {run.folder} split {name} differently: use one --split-seed"
        )
    is_test = np.array(winner["part"]) == "test"
    targets, own = (np.array(winner[key], dtype=np.float64) for key in ("target", "score"))
    for row in rows:
        scores = np.array(ranked["scores"][row["proxy"]], dtype=np.float64)  # NaN for None
        kept = is_test & np.isfinite(scores)
        if kept.sum() >= LEAST_ARCHS:
            difference = paired_difference(own[kept], scores[kept], targets[kept])
            row["difference"] = difference.to_json()
    return rows
