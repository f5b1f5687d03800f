"""Formulas for display: as mathematics, ready to be copied, and the hall of fame as a table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lpzero.judgement.measures import RHO, RHO_GIVEN_PARAMS, RHO_WITHIN
from lpzero.report.markup import NOTHING, Cell, Child, Markup, element, number, table, with_interval
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
