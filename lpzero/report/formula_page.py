"""The page of a campaign or an exhaustive run: five questions, each a section."""

from __future__ import annotations

import shlex

from lpzero.report import provenance, verdict
from lpzero.report.chart import Chart
from lpzero.report.figures import FOUND, HOLDS, OTHERS, SEARCHED, Material, charts, front
from lpzero.report.formulas import copy_control, hall_of_fame, shown
from lpzero.report.markup import Child, Markup, element, joined, number, pairs
from lpzero.report.sections import Content, Section
from lpzero.report.verdict import interval
from lpzero.runs.formula_run import FormulaRun


def content(material: Material) -> Content:
    """What the page says; equal runs give equal content."""
    run = material.run
    names = ", ".join(str(table["name"]) for table in run.tables)
    drawn = {name: list(charts(material, name)) for name in (FOUND, HOLDS, OTHERS, SEARCHED)}
    return Content(
        f"{names}: {run.kind}",
        run.remarks,
        [
            Section(
                FOUND,
                "Did it find something?",
                [
                    verdict.summary(run),
                    *drawn[FOUND],
                    verdict.comparison(run, material.ranking),
                    verdict.section(run),
                ],
                "Result",
            ),
            Section(HOLDS, "Does it hold?", [*_holds(run, drawn[HOLDS])], "Holds?"),
            Section(
                OTHERS,
                "What else?",
                [*drawn[OTHERS], _simplest(run), hall_of_fame(run)],
                "Hall of fame",
            ),
            Section(
                SEARCHED,
                "How was it searched?",
                [*drawn[SEARCHED], provenance.rejections(run), provenance.searched(run)],
                "Search",
            ),
            Section(
                "reproduce",
                "Reproduce",
                [provenance.reproduce(run), provenance.provenance(run)],
            ),
        ],
    )


def _holds(run: FormulaRun, drawn: list[Chart]) -> list[Markup | Chart]:
    if run.result is None or run.best is None:
        return [element("p", "Nothing was tested yet: the test rows are read at the end.")]
    checks = [_checks(run, str(entry["name"])) for entry in run.tables]
    if run.scores is None:
        missing = (
            "Score against target is not drawn: the directory has no scores.json. Run the same"
            " command again (a campaign with --resume) to write it."
        )
        return [element("p", missing), *drawn, *checks]
    return [*drawn, *checks]


def _checks(run: FormulaRun, table: str) -> Markup:
    """What else was measured of the winner on a table, beyond its rho on the test rows."""
    test = run.judged(table)["test"]
    values: dict[str, Child] = {}
    given = test.get("rho_given_params")
    values["given the parameters"] = (
        "not known: the rows have no sizes" if given is None else f"ρ {number(given).shown}"
    )
    within = test.get("rho_within")
    values["within groups of equal depth and width"] = (
        "not known: no group has enough test rows"
        if within is None
        else f"ρ {number(within).shown} on {test['n_within']} rows"
    )
    values["other weights and other batches"] = _repeated(run, table)
    floor = run.floor(table)
    if floor is not None:
        values["the same search on permuted targets"] = (
            f"{floor['permutations']} times: fits ρ {interval(floor, 'fit')}, its floor, and tests"
            f" at ρ {interval(floor, 'test')}"
        )
    ceiling = run.summary(table).get("ceiling")
    values["noise ceiling"] = (
        "not known: no architecture was trained twice"
        if ceiling is None
        else f"ρ {number(ceiling).shown} between independent trainings"
    )
    if len(run.tables) == 1:
        where = shlex.quote(str(run.folder))
        values["other tables"] = joined(
            "measured by ", element("code", f"lpzero report {where} --beside OTHER --transfer")
        )
    return pairs(f"{table}: other checks, on test rows where not said otherwise", values)


def _repeated(run: FormulaRun, table: str) -> str:
    stability = (run.result or {}).get("stability")
    if stability is None or stability["table"] != table:
        return "not measured for this table"
    return (
        f"{stability['n']} more: its scores repeat at a rank correlation of"
        f" {number(stability['median']).shown} (median), at least"
        f" {number(stability['least']).shown}"
    )


def _simplest(run: FormulaRun) -> Markup | None:
    """The smallest formula whose fitness is inside the winner's interval, if it is another."""
    data = front.of_run(run)
    if data is None or data.simplest is None or data.chosen is None:
        return None
    simplest = data.simplest
    return element(
        "div",
        element(
            "p",
            f"A simpler formula is inside the winner's interval: {simplest.complexity} nodes with"
            f" fitness {number(simplest.fitness).shown}, against {data.chosen.complexity} nodes"
            f" with {number(data.chosen.fitness).shown}.",
        ),
        element("p", shown(simplest.formula), class_="winner"),
        copy_control(
            simplest.formula, {"complexity": simplest.complexity, "fitness": simplest.fitness}
        ),
    )
