"""Which numbers an export holds, from a run in which every number differs."""

from __future__ import annotations

import csv
import io
from typing import Any

from lpzero.export import csv_form, latex_form
from lpzero.export.source import RunRecords
from tests.lpzero.numbered_run import TABLES, numbered_run

RUN = numbered_run()
RECORDS = RunRecords(RUN)


def test_the_winner_has_the_figures_of_each_table_and_part() -> None:
    winner = RECORDS.chosen()
    assert winner is not None
    assert [figures.table for figures in winner.provenance.figures] == list(TABLES)
    for figures in winner.provenance.figures:
        judged = RUN.judged(figures.table)
        parts = ("train", "valid", "test")
        assert figures.rho == {part: judged[part]["rho"] for part in parts}
        assert figures.rho_ci == {part: tuple(judged[part]["rho_ci"]) for part in parts}
        given = {part: judged[part]["rho_given_params"] for part in parts}
        assert figures.rho_given_params == given
        assert figures.n == {"train": 20, "valid": 8, "test": 12}
    assert (winner.provenance.id, winner.provenance.seed) == (5, 3)
    assert winner.provenance.chosen_on == "valid"


def test_a_formula_that_was_not_reported_has_its_measures_on_train() -> None:
    row, one = RUN.hall[2], RECORDS.hall()[2]
    for figures in one.provenance.figures:
        assert figures.rho == {"train": row[f"{figures.table} rho"]}
        given = row[f"{figures.table} rho_given_params"]
        assert figures.rho_given_params == {"train": given}
        assert figures.rho_ci == {}
        assert figures.n == {"train": 19}


def cell(value: float) -> str:
    return f"${value:.3f}$"


def interval(line: Any) -> str:
    low, high = line["rho_ci"]
    return f"{cell(line['rho'])} [{cell(low)}, {cell(high)}]"


def test_a_latex_row_has_train_valid_test_with_its_interval_and_rho_given_parameters() -> None:
    text = latex_form.table(RECORDS.hall()[:2], RECORDS.counters())
    for name in TABLES:
        judged = RUN.judged(name)
        cells = [
            cell(judged["train"]["rho"]),
            cell(judged["valid"]["rho"]),
            interval(judged["test"]),
            cell(judged["test"]["rho_given_params"]),
        ]
        assert " & ".join(cells) + r" \\" in text
        parameters, depth = RUN.counters(name)
        for line, given in ((parameters, "--"), (depth, None)):
            test = line["judged"]["test"]
            low, high = test["rho_ci"]
            shown = [
                *(cell(line["rho"][part]) for part in ("train", "valid")),
                f"{cell(line['rho']['test'])} [{cell(low)}, {cell(high)}]",
                given or cell(test["rho_given_params"]),
            ]
            assert f"{{{line['proxy']}}} \\\\*\n & " + " & ".join(shown) + r" \\" in text


def test_a_csv_row_has_each_parts_numbers() -> None:
    winner = RECORDS.chosen()
    assert winner is not None
    rows = list(csv.DictReader(io.StringIO(csv_form.write([winner]))))
    assert [row["table"] for row in rows] == list(TABLES)
    for row in rows:
        judged = RUN.judged(row["table"])
        for part in ("train", "valid", "test"):
            low, high = judged[part]["rho_ci"]
            assert float(row[f"rho_{part}"]) == judged[part]["rho"]
            assert (float(row[f"rho_{part}_low"]), float(row[f"rho_{part}_high"])) == (low, high)
            given = judged[part]["rho_given_params"]
            assert float(row[f"rho_{part}_given_params"]) == given
