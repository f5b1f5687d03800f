"""Formulas for display: as mathematics, ready to be copied; the hall of fame; the verdict.

The verdict compares the winner with all counters, on every part of each table.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lpzero.judgement.measures import RHO, RHO_GIVEN_PARAMS, RHO_WITHIN
from lpzero.judgement.rivals import headline
from lpzero.judgement.table import PARTS
from lpzero.report.figures import rivals
from lpzero.report.markup import (
    NOTHING,
    Cell,
    Child,
    Markup,
    element,
    joined,
    number,
    table,
    with_interval,
)
from lpzero.runs.formula_run import FormulaRun
from primitives.errors import PrimitiveError
from primitives.latex import to_latex
from primitives.mathml import to_mathml
from primitives.parser import parse

_FORMS = {"text": "text", "latex": "LaTeX", "json": "JSON"}
_NAME = "hall"  # the address of the hall of fame


def shown(text: str) -> Markup:
    """The formula as mathematics and as text; as text alone if this version cannot read it."""
    code = element("code", text)
    try:
        rendered = Markup(to_mathml(parse(text), with_name=False))
    except PrimitiveError:
        return element("span", code, class_="formula")
    return element("span", rendered, code, class_="formula")


def record(formula: str, facts: Mapping[str, Any]) -> str:
    """What can be copied of a formula, as a JSON text: itself, its LaTeX, and facts about it."""
    try:
        latex = to_latex(parse(formula))
    except PrimitiveError:  # another version wrote it
        latex = formula
    return json.dumps({"formula": formula, "latex": latex, **facts}, ensure_ascii=False)


def buttons(word: str = "Copy as") -> list[Markup]:
    """A button per form."""
    return [
        element("button", f"{word} {shown}", type="button", data_copy=form)
        for form, shown in _FORMS.items()
    ]


def copy_control(formula: str, facts: Mapping[str, Any]) -> Markup:
    """The buttons for one formula."""
    return element(
        "div",
        *buttons(),
        element("output", ""),
        class_="control",
        data_copied=record(formula, facts),
        hidden=True,  # until the script that implements it runs
    )


def hall_of_fame(run: FormulaRun) -> Markup:
    """The formulas kept, best on train first; valid and test where they were reported."""
    if not run.hall:
        return element("p", "No formula was scored.")
    # Rows of a campaign have measures on each table and a lineage; exhaustive runs have neither.
    tables = [t["name"] for t in run.tables if f"{t['name']} rho" in run.hall[0]]
    header: list[Child | Cell] = ["formula", "size", "fitness", "ρ valid", "ρ test"]
    for name in tables:
        of = f", {name}" if len(tables) > 1 else ""
        header += [f"ρ fitness rows{of}", f"given parameters{of}", f"within groups{of}"]
    if tables:
        header += ["front", "generation", "made by"]
    reported, grouped = _reported(run), _grouped(run)
    rows = [_row(row, tables, reported, grouped) for row in run.hall]
    records = [_record(row, reported) for row in run.hall]
    note = "valid and test are evaluated for the reported formulas only, after the search"
    caption = f"{len(rows)} formulas, best on {run.fitness_rows} first; {note}"
    made = table(caption, [header], rows, True, _NAME, records)
    return element("div", element("h3", "Hall of fame"), _controls(), made)


def _controls() -> Markup:
    """What the script offers: a filter, all rows, copying of the rows that are shown."""
    return element(
        "div",
        element("label", "Show only formulas with", for_="filter"),
        element("input", id="filter", type="search", autocomplete="off", spellcheck="false"),
        element("button", "Show all", type="button", data_all=True),
        *buttons("Copy rows as"),
        element("output", "", for_="filter", id="filtered"),
        class_="control",
        data_controls=_NAME,
        hidden=True,  # until the script that implements it runs
    )


def _record(row: Mapping[str, Any], reported: Mapping[str, Mapping[str, Any]]) -> str:
    text = str(row["formula"])
    facts = {"complexity": row["complexity"], "fitness": row["fitness"]}
    rho = reported.get(text, {}).get("rho", {})
    return record(text, facts | {f"rho_{part}": value for part, value in rho.items()})


def _reported(run: FormulaRun) -> dict[str, Mapping[str, Any]]:
    """The reported formulas' lines of the result, by formula."""
    if run.result is None:
        return {}
    return {line["formula"]: line for line in run.result["top"]}


def _test(line: Mapping[str, Any]) -> Cell:
    """The lowest rho over the tables on the test rows, with its interval."""
    judged = line.get("judged") or {}
    parts = [by_part["test"] for by_part in judged.values() if "test" in by_part]
    lowest = min(parts, key=lambda part: float(part["rho"]), default=None)
    if lowest is None:
        return number(line.get("rho", {}).get("test"))
    return with_interval(lowest["rho"], lowest["rho_ci"])


def _grouped(run: FormulaRun) -> set[str]:
    """Tables whose training rows have groups of equal depth and width; all without a winner."""
    names = {str(entry["name"]) for entry in run.tables}
    if run.best is None:
        return names
    return {name for name in names if run.judged(name)["train"]["n_within"]}


def _row(
    row: Mapping[str, Any],
    tables: list[str],
    reported: Mapping[str, Mapping[str, Any]],
    grouped: set[str],
) -> list[Child | Cell]:
    text = str(row["formula"])
    cells: list[Child | Cell] = [
        Cell(shown(text), text),
        number(row["complexity"]),
        number(row["fitness"]),
    ]
    line = reported.get(text, {})
    cells += [number(line.get("rho", {}).get("valid")), _test(line)]
    for name in tables:
        cells += [number(row.get(f"{name} {key}")) for key in (RHO, RHO_GIVEN_PARAMS)]
        cells.append(number(row.get(f"{name} {RHO_WITHIN}") if name in grouped else None))
    if tables:
        front = "yes" if row.get("front") else "no"
        cells += [front, number(row.get("generation")), str(row.get("operator", NOTHING))]
    return cells


_NAMES = {"train": "train", "valid": "valid", "test": "test", "all": "whole table"}
_IN_SAMPLE = " (in sample for the winner)"


def summary(run: FormulaRun) -> Markup:
    """The verdict on each table, and the winner as mathematics."""
    if run.result is None or run.best is None:
        return element("p", "There is no winner yet: see the remarks above.")
    best = run.best
    sign = "as written" if best["sign"] > 0 else "negated"
    chosen = run.result.get("chosen_on", "train")
    facts = {"complexity": best["complexity"], "sign": best["sign"], "rho": dict(best["rho"])}
    names = [str(entry["name"]) for entry in run.tables]
    return element(
        "div",
        *(element("p", text, class_="headline") for text in _headlines(run, names)),
        element("p", shown(best["formula"]), class_="winner"),
        copy_control(str(best["formula"]), facts),
        element(
            "p",
            f"{best['complexity']} nodes, sign {'+' if best['sign'] > 0 else '−'} ({sign}, fitted"
            f" on train so that larger means better), chosen by --choose {chosen}.",
            class_="note",
        ),
        *(element("p", *_verdict(run, name), class_="verdict") for name in names),
    )


def _headlines(run: FormulaRun, tables: Sequence[str]) -> Iterator[str]:
    """What the test rows of each table say, in one short sentence."""
    lines = {} if run.result is None else run.result.get("differences", ())
    for name in tables:
        test = run.judged(name)["test"]
        first = next((line for line in lines if line["table"] == name), None)
        said = (
            ""
            if first is None
            else " "
            + headline(
                test, str(first["against"]), str(first["outcome"]), bool(first.get("is_column"))
            )
        )
        yield f"{name}: ρ {number(test['rho']).shown} on {test['n']} test rows.{said}"


def comparison(run: FormulaRun, ranking: Sequence[Mapping[str, Any]] | None = None) -> Markup:
    """Every rival on the test rows of each table, with the paired difference."""
    return joined(
        *(
            _rivals(data)
            for entry in run.tables
            if (data := rivals.of_run(run, str(entry["name"]), ranking)) is not None
        )
    )


def _rivals(data: rivals.Rivals) -> Markup:
    header = ["proxy", "kind", "ρ on test", "winner − this", "draws above 0", "outcome"]
    rows: list[list[Child | Cell]] = []
    for rival in data.rows:
        difference = rival.difference or {}
        share = difference.get("share_above")
        outcome = rival.outcome
        css = {"ahead": "ahead", "not ahead": "behind"}.get(outcome or "")
        rows.append(
            [
                rival.proxy,
                rival.kind,
                with_interval(rival.rho, rival.rho_ci),
                with_interval(difference.get("rho"), difference.get("rho_ci")),
                number(None) if share is None else Cell(f"{share:.0%}", share, True),
                NOTHING if outcome is None else element("span", outcome, class_=css),
            ]
        )
    caption = f"{data.table}: the winner and its rivals on {data.n} test rows"
    made = table(caption, [header], rows, sortable=True)
    return element(
        "details", element("summary", f"All {len(rows)} as a table, with differences"), made
    )


def section(run: FormulaRun) -> Markup:
    """All measures of the winner and the counters on each table."""
    if run.result is None or run.best is None:
        return Markup("")
    count = None
    if run.count is not None:
        count = element("p", f"The best count: {_count_text(run.count)}.")
    return element(
        "details",
        element("summary", "Every measure on train, valid, test and the whole table"),
        count,
        *(_table(run, str(entry["name"])) for entry in run.tables),
        _NOTE,
    )


_NOTE = element(
    "p",
    "ρ is Spearman's, τ is Kendall's τ-b; brackets hold bootstrap 95% intervals, those of"
    " differences from the same resamples for both. “Ties broken” is the expected ρ when"
    " ties of the scores are broken at random, as a search must. “Given"
    " parameters” is the partial ρ given log parameters, “within groups” the mean ρ inside"
    " groups of equal depth and width with at least five architectures (– where there are"
    " none), “top 10%” the share of the best tenth by score that is in the best tenth by"
    " target. The winner was chosen on train and valid rows, so only its test figures are"
    " out of sample. Counters were not chosen on anything; the one in the verdict is the"
    " best on train.",
    class_="note",
)


def _verdict(run: FormulaRun, name: str) -> Iterator[Child]:
    """What the test rows say: the winner's rho, then the verdict that the result holds."""
    winner = run.judged(name)["test"]
    yield element("strong", f"{name}: ")
    yield f"on the test rows the winner reaches ρ {interval(winner)}. "
    text = run.verdict(name)
    if text is None:
        yield "Its result was written without a verdict: run the same command again to add one."
    else:
        yield text
    given = winner.get("rho_given_params")
    if given is not None:
        yield f" Given the parameters, ρ is {number(given).shown}."


def _count_text(count: Mapping[str, Any]) -> str:
    by_table = count.get("formula_by_table")
    if by_table is None:
        return str(count["formula"])
    return ", ".join(f"{formula} on {table}" for table, formula in by_table.items())


def interval(line: Mapping[str, Any], key: str = "rho") -> str:
    """A number of a line with its interval, in words."""
    low, high = (number(float(edge)).shown for edge in line[f"{key}_ci"])
    return f"{number(line[key]).shown} [{low}, {high}]"


def _table(run: FormulaRun, name: str) -> Markup:
    winner = run.judged(name)
    sizes = {part: winner[part]["n"] for part in PARTS if part in winner}
    groups: list[Child | Cell] = [Cell("")]
    for part, n in sizes.items():
        sample = _IN_SAMPLE if winner[part].get("in_sample") else ""
        groups.append(Cell(f"{_NAMES[part]}, n = {n}{sample}", span=2))
    last = ("ρ, ties broken", "ρ given parameters", "ρ within groups", "top 10%")
    groups += [Cell(name, span=2) for name in last]
    columns: list[Child | Cell] = [
        "proxy",
        *(["ρ", "τ"] * len(sizes)),
        *(["test", "whole"] * len(last)),
    ]
    rows = [_measures("the winner", winner, sizes)]
    if run.count is not None:
        rows.append(_measures("the best count", run.count["judged"].get(name, {}), sizes))
    rows += [_measures(line["proxy"], line.get("judged", {}), sizes) for line in run.counters(name)]
    caption = f"{name}: the winner and the counters"
    return table(caption, [groups, columns], rows, sortable=True)


def _measures(
    name: str, judged: Mapping[str, Mapping[str, Any]], parts: Mapping[str, int]
) -> list[Child | Cell]:
    cells: list[Child | Cell] = [name]
    for part in parts:
        line = judged.get(part, {})
        cells.append(with_interval(line.get("rho"), line.get("rho_ci")))
        cells.append(with_interval(line.get("tau"), line.get("tau_ci")))
    for key in ("rho_untied", "rho_given_params", "rho_within", "top_precision"):
        for part in ("test", "all"):
            cells.append(number(judged.get(part, {}).get(key)))
    return cells
