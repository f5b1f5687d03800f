"""Transfer between tables: the rho of each table's best formula on every other table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.report.chart import Axis, Cells, Chart, Panel
from lpzero.report.figures import HOLDS, FigureKind, Material


@dataclass(frozen=True, eq=False)
class Transfer:
    """rho[i, j] (n, n): the formula chosen for table i on the test rows of table j."""

    tables: tuple[str, ...]
    formulas: tuple[str, ...]
    rho: FloatArray


def of_campaign(top: Sequence[Mapping[str, Any]]) -> Transfer:
    """The transfer between the tables of one campaign, from its `top` lines.

    For each table the formula that is best on its training rows is used. The campaign kept these
    formulas for all tables together; `transfer` compares formulas chosen on one table each.
    """
    lines = [line["rho_by_table"] for line in top if "rho_by_table" in line]
    if not lines or len(lines[0]) < 2:
        raise InputError("transfer needs a campaign on at least two tables")
    tables = tuple(lines[0])
    chosen = [max(range(len(lines)), key=lambda i: lines[i][name]["train"]) for name in tables]
    formulas = [str([line for line in top if "rho_by_table" in line][i]["formula"]) for i in chosen]
    rho = [[lines[i][other]["test"] for other in tables] for i in chosen]
    return transfer(tables, formulas, rho)


def transfer(
    tables: Sequence[str], formulas: Sequence[str], rho: Sequence[Sequence[float]]
) -> Transfer:
    """The data of the figure: tables, the formula chosen on each, and rho of i on j."""
    matrix = np.array(rho, dtype=np.float64)
    if matrix.shape != (len(tables), len(tables)) or len(formulas) != len(tables):
        raise InputError(f"{len(tables)} tables and a matrix of shape {matrix.shape} do not fit")
    return Transfer(tuple(tables), tuple(formulas), matrix)


def chart(data: Transfer, caption: str) -> Chart:
    """A row per formula, a column per table."""
    pairs = zip(data.tables, data.formulas, strict=True)
    lines = "; ".join(f"{table}: {formula}" for table, formula in pairs)
    told = [
        [
            f"best of {table} on {other} {value:.3f}"
            for other, value in zip(data.tables, row, strict=True)
        ]
        for table, row in zip(data.tables, data.rho, strict=True)
    ]
    hover = [
        [
            f"{formula}\nthe best of {table}, tested on {other}: ρ {value:.3f}"
            for other, value in zip(data.tables, row, strict=True)
        ]
        for table, formula, row in zip(data.tables, data.formulas, data.rho, strict=True)
    ]
    limits = min(0.0, float(data.rho.min())), 1.0
    return Chart(
        name="transfer",
        caption=f"{caption} {lines}.",
        words=f"Matrix of rho: {'; '.join(text for row in told for text in row)}.",
        panels=[
            Panel(
                series=[Cells(values=data.rho, hover=hover, limits=limits, measure="ρ")],
                x=Axis(title="tested on (test rows)", names=data.tables),
                y=Axis(title="best formula of", names=data.tables),
            )
        ],
    )


def _charts(material: Material) -> Iterator[Chart]:
    run = material.run
    if material.transfer is not None:
        yield chart(material.transfer, "The winner of each run on the test rows of every table.")
    elif run.result is not None and len(run.tables) > 1:
        caption = (
            "Of the reported formulas the best on each table's training rows, tested on every"
            " table."
        )
        yield chart(of_campaign(run.result["top"]), caption)


FIGURE = FigureKind(60, HOLDS, _charts)
