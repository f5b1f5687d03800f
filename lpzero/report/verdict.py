"""The result: the winner compared with all counters, on every part of each table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from lpzero.judgement.table import PARTS
from lpzero.report.markup import Child, Markup, element
from lpzero.report.mathematics import shown
from lpzero.report.tables import Cell, number, table, with_interval
from lpzero.runs.formula_run import FormulaRun

_NAMES = {"train": "train", "valid": "valid", "test": "test", "all": "whole table"}
_IN_SAMPLE = " (in sample for the winner)"


def section(run: FormulaRun) -> Markup:
    """The winner, how it compares with the best counter, and all measures on each table."""
    if run.result is None or run.best is None:
        return element("p", "There is no winner yet: see the remarks above.")
    best = run.best
    sign = "as written" if best["sign"] > 0 else "negated"
    chosen = run.result.get("chosen_on", "train")
    parts: list[Child] = [
        element("p", shown(best["formula"]), class_="winner"),
        element(
            "p",
            f"{best['complexity']} nodes, sign {'+' if best['sign'] > 0 else '−'} ({sign}, fitted"
            f" on train so that larger means better), chosen on {chosen}.",
        ),
    ]
    for entry in run.tables:
        name = str(entry["name"])
        parts.append(element("p", *_verdict(run, name), class_="verdict"))
        parts.append(_table(run, name))
    parts.append(
        element(
            "p",
            "ρ is Spearman's, τ is Kendall's τ-b; brackets hold bootstrap 95% intervals. “Given"
            " parameters” is the partial ρ given log parameters, “within groups” the mean ρ inside"
            " groups of equal depth and width with at least five architectures (– where there are"
            " none), “top 10%” the share of the best tenth by score that is in the best tenth by"
            " target. The winner was chosen on train and valid rows, so only its test figures are"
            " out of sample; counters were not chosen on anything.",
            class_="note",
        )
    )
    return element("div", *parts)


def _verdict(run: FormulaRun, name: str) -> Iterator[Child]:
    """The comparison on the test rows, in a few sentences."""
    winner, best = run.judged(name)["test"], _best_counter(run, name)
    yield element("strong", f"{name}: ")
    yield f"on the test rows the winner reaches ρ {_interval(winner)}"
    if best is None:
        yield "."
        return
    counter = best["judged"]["test"]
    yield f"; the best counter, {best['proxy']}, reaches {_interval(counter)}. "
    if winner["rho"] <= counter["rho"]:
        yield element("strong", "The winner does not beat the best counter.")
    elif winner["rho_ci"][0] <= counter["rho_ci"][1]:
        yield "The winner is ahead, but the intervals overlap."
    else:
        yield "The winner is ahead, and the intervals do not overlap."
    given = winner.get("rho_given_params")
    if given is not None:
        yield f" Given the parameters, ρ is {number(given).shown}"
        within = winner.get("rho_within")
        yield "." if within is None else f"; within groups, {number(within).shown}."
    ceiling = run.summary(name).get("ceiling")
    if ceiling is not None:
        yield f" The noise ceiling, ρ between independent trainings, is {number(ceiling).shown}."


def _best_counter(run: FormulaRun, name: str) -> Mapping[str, Any] | None:
    lines = [line for line in run.counters(name) if "judged" in line]
    return max(lines, key=lambda line: line["judged"]["test"]["rho"], default=None)


def _interval(line: Mapping[str, Any]) -> str:
    low, high = (number(float(edge)).shown for edge in line["rho_ci"])
    return f"{number(line['rho']).shown} [{low}, {high}]"


def _table(run: FormulaRun, name: str) -> Markup:
    winner = run.judged(name)
    sizes = {part: winner[part]["n"] for part in PARTS if part in winner}
    groups: list[Child | Cell] = [Cell("")]
    for part, n in sizes.items():
        sample = _IN_SAMPLE if winner[part].get("in_sample") else ""
        groups.append(Cell(f"{_NAMES[part]}, n = {n}{sample}", span=2))
    groups += [Cell(name, span=2) for name in ("ρ given parameters", "ρ within groups", "top 10%")]
    columns: list[Child | Cell] = ["proxy", *(["ρ", "τ"] * len(sizes)), *(["test", "whole"] * 3)]
    rows = [_row("the winner", winner, sizes)]
    rows += [_row(line["proxy"], line.get("judged", {}), sizes) for line in run.counters(name)]
    caption = f"{name}: the winner and the counters"
    return table(caption, [groups, columns], rows, sortable=True)


def _row(
    name: str, judged: Mapping[str, Mapping[str, Any]], parts: Mapping[str, int]
) -> list[Child | Cell]:
    cells: list[Child | Cell] = [name]
    for part in parts:
        line = judged.get(part, {})
        cells.append(with_interval(line.get("rho"), line.get("rho_ci")))
        cells.append(with_interval(line.get("tau"), line.get("tau_ci")))
    for key in ("rho_given_params", "rho_within", "top_precision"):
        for part in ("test", "all"):
            cells.append(number(judged.get(part, {}).get(key)))
    return cells
