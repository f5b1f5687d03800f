"""The result: the winner compared with all counters, on every part of each table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lpzero.judgement.table import PARTS
from lpzero.judgement.verdict import headline
from lpzero.report.figures import rivals
from lpzero.report.formulas import copy_control, shown
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
