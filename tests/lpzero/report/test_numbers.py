"""Which numbers the page shows, from a run in which every number differs."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

import pytest

from lpzero.report import formulas
from lpzero.report.markup import number
from lpzero.search.comparison import curve_rows
from tests.lpzero.numbered_run import TABLES, numbered_run

RUN = numbered_run()
PARTS = ("train", "valid", "test", "all")


def rows(markup: str) -> list[list[str]]:
    """The cells of every row of every table, as text."""
    found = []
    for row in re.findall(r"<tr[^>]*>(.*?)</tr>", markup, re.S):
        cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.S)
        found.append([unescape(re.sub(r"<[^>]*>", "", cell)).replace("−", "-") for cell in cells])
    return found


def around(line: dict[str, Any], name: str = "rho") -> str:
    low, high = line[f"{name}_ci"]
    return f"{line[name]:.3f} [{low:.3f}, {high:.3f}]"


def judged_cells(judged: Any) -> list[str]:
    """The cells that a judged proxy has: rho and tau of each part, then four measures."""
    cells = [around(judged[part], name) for part in PARTS for name in ("rho", "tau")]
    last = ("rho_untied", "rho_given_params", "rho_within", "top_precision")
    return cells + [f"{judged[part][name]:.3f}" for name in last for part in ("test", "all")]


def test_every_proxy_has_its_own_numbers_under_their_headings() -> None:
    found = rows(formulas.section(RUN))
    for table in TABLES:
        assert ["the winner", *judged_cells(RUN.judged(table))] in found
        for line in RUN.counters(table):
            assert [line["proxy"], *judged_cells(line["judged"])] in found
    headings = [row for row in found if row and row[0] == ""]
    assert headings[0][1:5] == [
        "train, n = 20 (in sample for the winner)",
        "valid, n = 8 (in sample for the winner)",
        "test, n = 12",
        "whole table, n = 40 (in sample for the winner)",
    ]
    assert headings[0][5:] == ["ρ, ties broken", "ρ given parameters", "ρ within groups", "top 10%"]


@pytest.mark.parametrize(("sign", "shown"), [(1, "sign + (as written"), (-1, "sign − (negated")])
def test_the_sentence_on_the_winner_is_of_the_test_rows(sign: int, shown: str) -> None:
    text = unescape(re.sub(r"<[^>]*>", "", formulas.summary(numbered_run(sign))))
    assert shown in text
    for table in TABLES:
        test = RUN.judged(table)["test"]
        sentence = f"{table}: on the test rows the winner reaches ρ {around(test)}. "
        assert sentence + f"The verdict on {table}." in text
        assert f"Given the parameters, ρ is {test['rho_given_params']:.3f}." in text


def test_the_hall_shows_measures_in_their_columns_and_the_lowest_test_rho() -> None:
    header, *found = rows(formulas.hall_of_fame(RUN))
    assert header[5:8] == ["ρ fitness rows, one", "given parameters, one", "within groups, one"]
    assert len(found) == 3
    lines = {line["formula"]: line for line in RUN.result["top"]}  # type: ignore[index]
    for row, cells in zip(RUN.hall, found, strict=True):
        measures = ("rho", "rho_given_params", "rho_within")
        expected = [row["fitness"], *(row[f"{t} {m}"] for t in TABLES for m in measures)]
        assert [cells[2], *cells[5:11]] == [f"{value:.3f}" for value in expected]
        line = lines.get(row["formula"])
        if line is None:
            assert cells[3:5] == ["–", "–"]
            continue
        lowest = min((line["judged"][table]["test"] for table in TABLES), key=lambda t: t["rho"])
        assert cells[3:5] == [f"{line['rho']['valid']:.3f}", around(lowest)]
        tests = [line["judged"][table]["test"]["rho"] for table in TABLES]
        assert tests[0] != tests[1]
    assert [cells[11] for cells in found] == ["yes", "no", "no"]


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.5, "0.500"), (-0.25, "−0.250"), (12345.678, "12,345.7"), (-12345.678, "−12,345.7"),
     (None, "–"), (1234, "1,234")],
)  # fmt: skip
def test_a_number_is_printed_with_its_sign(value: Any, shown: str) -> None:
    assert number(value).shown == shown


def test_a_curve_starts_at_one_evaluation_and_ends_with_the_longest_run() -> None:
    def run(*targets: float) -> dict[str, Any]:
        trace = [{"evaluations": i, "target": t} for i, t in enumerate(targets, 1)]
        return {"evaluations": len(targets), "trace": trace}

    found = curve_rows({"arm": [run(1.0, 3.0), run(2.0, 1.0, 5.0)]})
    shown = [(row["evaluations"], row["mean"]) for row in found]
    assert shown == [(1, 1.5), (2, 2.5), (3, 4.0)]
