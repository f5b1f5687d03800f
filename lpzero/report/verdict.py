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


def summary(run: FormulaRun) -> Markup:
    """The winner as mathematics, and the verdict on each table."""
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
            f" on train so that larger means better), chosen by --choose {chosen}.",
        ),
    ]
    if run.count is not None:
        parts.append(element("p", f"The best count: {_count_text(run.count)}."))
    verdicts = [
        element("p", *_verdict(run, str(entry["name"])), class_="verdict") for entry in run.tables
    ]
    return element("div", *verdicts, *parts)


def section(run: FormulaRun) -> Markup:
    """All measures of the winner and the counters on each table."""
    if run.result is None or run.best is None:
        return Markup("")
    return element(
        "div",
        *(_table(run, str(entry["name"])) for entry in run.tables),
        element(
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
        ),
    )


def _verdict(run: FormulaRun, name: str) -> Iterator[Child]:
    """What the test rows say: the winner's rho, then the verdict that the result holds."""
    winner = run.judged(name)["test"]
    yield element("strong", f"{name}: ")
    yield f"on the test rows the winner reaches ρ {_interval(winner)}. "
    text = run.verdict(name)
    if text is None:
        yield "Its result was written without a verdict: run the same command again to add one."
    else:
        yield element("strong", text)
    given = winner.get("rho_given_params")
    if given is not None:
        yield f" Given the parameters, ρ is {number(given).shown}."
    floor = run.floor(name)
    if floor is not None:
        yield (
            f" On permuted targets ({floor['permutations']} times) the same search of products fits"
            f" ρ {_interval(floor, 'fit')}, its floor, and tests at ρ {_interval(floor, 'test')}."
        )
    ceiling = run.summary(name).get("ceiling")
    if ceiling is not None:
        yield f" The noise ceiling, ρ between independent trainings, is {number(ceiling).shown}."


def _count_text(count: Mapping[str, Any]) -> str:
    by_table = count.get("formula_by_table")
    if by_table is None:
        return str(count["formula"])
    return ", ".join(f"{formula} on {table}" for table, formula in by_table.items())


def _interval(line: Mapping[str, Any], key: str = "rho") -> str:
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
    rows = [_row("the winner", winner, sizes)]
    if run.count is not None:
        rows.append(_row("the best count", run.count["judged"].get(name, {}), sizes))
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
    for key in ("rho_untied", "rho_given_params", "rho_within", "top_precision"):
        for part in ("test", "all"):
            cells.append(number(judged.get(part, {}).get(key)))
    return cells
