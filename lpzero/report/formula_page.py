"""The page of a campaign or an exhaustive run: five questions, each a section.

What was found, whether it holds, what else there is, what was searched and rejected, and how to
reproduce it.
"""

from __future__ import annotations

import json
import shlex
from typing import Any

from lpzero.judgement.table import SPLIT_PARTS
from lpzero.report.chart import Chart
from lpzero.report.figures import FOUND, HOLDS, OTHERS, SEARCHED, Material, charts, front
from lpzero.report.formulas import (
    comparison,
    copy_control,
    hall_of_fame,
    interval,
    section,
    shown,
    summary,
)
from lpzero.report.markup import NOTHING, Cell, Child, Markup, element, joined, number, pairs, table
from lpzero.report.page import Content, Section, reproduction, versions
from lpzero.runs.formula_run import FormulaRun
from primitives.pruning import RULES


def content(run: FormulaRun, *others: Any) -> Content:
    """What the page says; equal runs give equal content."""
    material = Material(run, *others)
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
                    summary(run),
                    *drawn[FOUND],
                    comparison(run, material.ranking),
                    section(run),
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
                [*drawn[SEARCHED], _rejections(run), _searched(run)],
                "Search",
            ),
            reproduction(run, _provenance(run)),
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


# What is fitted to the same rows and is not a formula.
_FITTED = (
    (
        "predictor",
        "predictor: the best guess, the mean of the formula's and a Gaussian process's scores",
    ),
    ("reference", "a Gaussian process on features of the architectures, without any formula"),
)


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
    levels = (run.result or {}).get("levels")
    if levels is not None:
        expected = levels["expected"]
        values["expected before the test rows were read"] = (
            f"ρ {number(expected['rho']).shown} ± {number(expected['error']).shown} by"
            f" cross-validation of level {levels['chosen']}; {number(expected['fit']).shown} on the"
            " rows it was fitted to"
        )
        if expected["warning"] is not None:
            values["warning"] = str(expected["warning"])
    for name, words in _FITTED:
        fitted = (run.result or {}).get(name)
        if fitted is not None:
            values[words] = (
                f"ρ {interval(fitted['judged'][table]['test'], 'rho')}; expected"
                f" {number(fitted['expected']['rho']).shown} ±"
                f" {number(fitted['expected']['error']).shown} by cross-validation"
            )
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


# Reasons of rejections by other than a pruning rule.
_OTHER_REASONS = {
    "constant-score": "every architecture has the same score",
    "non-finite": "the score of an architecture is not finite",
    "duplicate": "the same as another formula up to sign",
}


def _searched(run: FormulaRun) -> Markup:
    """Tables, counts, the size of the space, settings."""
    counts: dict[str, Child] = {name: f"{n:,}" for name, n in run.counts.items()}
    counts["rejected"] = f"{sum(run.rejected.values()):,}"
    result = run.result or {}
    if "generations" in result:
        counts["generations"] = f"{result['generations']:,}"
    if result.get("stopped"):
        counts["stopped by"] = str(result["stopped"])
    return element(
        "div",
        _tables(run),
        element(
            "div",
            pairs("Formulas", {**counts, **_space(run)}),
            pairs("Settings", {key: _plain(value) for key, value in run.settings.items()}),
            class_="beside",
        ),
        element(
            "p",
            "Formulas whose scores are constant or not finite were evaluated and then rejected,"
            " so they count as both.",
            class_="note",
        ),
    )


def _tables(run: FormulaRun) -> Markup:
    header = ["table", "space", "target (larger is better)", "train", "valid", "test"]
    header += ["rows of the fitness", "noise ceiling", "licence"]
    rows = []
    for entry in run.tables:
        summary = run.summary(entry["name"])
        n = summary.get("n", {})
        cells: list[Child | Cell] = [entry["name"], entry["space"], entry["target"]]
        cells += [number(n.get(part)) for part in SPLIT_PARTS]
        cells += [number(summary.get("n_fitness", n.get("train"))), number(summary.get("ceiling"))]
        rows.append([*cells, summary.get("licence", NOTHING)])
    return table("Tables", [header], rows)


def _space(run: FormulaRun) -> dict[str, Child]:
    """The size of the space of formulas, if it can be counted."""
    size = run.space_size()
    if size is None:
        return {"the whole space": "not counted: it is not the paper's space"}
    return {
        "the whole space": f"{size.before:,} for each of sum and mean over blocks",
        "left after pruning": f"{size.kept:,} for each",
        "distinct up to sign": f"{size.distinct:,} for each",
    }


def _rejections(run: FormulaRun) -> Markup:
    """A row per rule that rejected something, with its reason."""
    if not run.rejected:
        return element("p", "Nothing was rejected.")
    total = sum(run.rejected.values())
    rows: list[list[Child | Cell]] = []
    for name, count in sorted(run.rejected.items(), key=lambda item: (-item[1], item[0])):
        rule = RULES.get(name)
        reason = rule.reason if rule else _OTHER_REASONS.get(name, NOTHING)
        example = element("code", rule.example) if rule else NOTHING
        rows.append([name, number(count), number(100 * count / total, 1), reason, example])
    header = ["rule", "formulas", "%", "reason", "example"]
    return table("Rejected formulas by rule", [header], rows, sortable=True)


def _provenance(run: FormulaRun) -> Markup:
    """Versions, seeds and digests that the numbers may depend on."""
    values = versions(run)
    if "seed" in run.settings:
        values["seed of the search"] = str(run.settings["seed"])
    values["configuration"] = element("code", run.config.hash)
    values["seed of the split"] = str(run.request["split_seed"])
    sketch = run.request["sketch"]
    values["statistics"] = ", ".join(f"{key} {value}" for key, value in sketch.items())
    for entry in run.tables:
        values[f"digest of {entry['name']}"] = element("code", str(entry["digest"]))
        ceiling = run.summary(entry["name"]).get("ceiling")
        values[f"noise ceiling of {entry['name']}"] = (
            "unknown: no architecture was trained twice"
            if ceiling is None
            else f"{ceiling:.3f} (rho between independent trainings)"
        )
    return pairs("What the numbers depend on", values)


def _plain(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(str, value)) or NOTHING
    return NOTHING if value is None else value if isinstance(value, str) else json.dumps(value)
