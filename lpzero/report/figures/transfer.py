"""Transfer between tables: the rho of each table's best formula on every other table.

`measure` is the only part of a report that runs networks: sketches that are not in the cache are
built, and the tables must be present.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lpzero.errors import InputError
from lpzero.judgement.table import TableJudge
from lpzero.runs.formula_run import FormulaRun
from lpzero.statistics import OURS
from primitives.parser import parse
from spaces.minibatch import Minibatch

if TYPE_CHECKING:
    from lpzero.parallel import Workers
    from spaces.tables import Table

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.report.chart import Axis, Cells, Chart, Panel
from lpzero.report.figures import HOLDS, FigureKind, Material


@dataclass(frozen=True, eq=False)
class Transfer:
    """rho[i, j] (n, n): the formula chosen for table i on the `rows` of table j.

    `chosen` says how a formula belongs to its table.
    """

    tables: tuple[str, ...]
    formulas: tuple[str, ...]
    rho: FloatArray
    chosen: str = "best of"
    rows: str = "test"


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


def of_tables_left_out(lines: Sequence[Mapping[str, Any]]) -> Transfer:
    """The transfer to tables left out: a line for the formula chosen without each of them."""
    tables = tuple(line["table"] for line in lines)
    rho = np.array([[line["rho_by_table"][name] for name in tables] for line in lines])
    formulas = tuple(line["formula"] for line in lines)
    return Transfer(tables, formulas, rho, "chosen without", "train and valid")


def transfer(
    tables: Sequence[str], formulas: Sequence[str], rho: Sequence[Sequence[float]]
) -> Transfer:
    """The data of the figure: tables, the formula chosen on each, and rho of i on j."""
    matrix = np.array(rho, dtype=np.float64)
    if matrix.shape != (len(tables), len(tables)) or len(formulas) != len(tables):
        raise InputError(f"{len(tables)} tables and a matrix of shape {matrix.shape} do not fit")
    return Transfer(tuple(tables), tuple(formulas), matrix)


def measure(
    runs: Sequence[FormulaRun],
    data: str | Path | None = None,
    cache: str | Path | None = None,
    device: str = "cpu",
    workers: Workers | None = None,
) -> Transfer:
    """Rho of each run's winner on the test rows of every run's table, with its fitted sign."""
    from lpzero.parallel import Workers
    from lpzero.proxies import Context, Measurements
    from lpzero.proxies.formula import FormulaProxy
    from lpzero.sketches.store import cache_folder
    from spaces.tables import split

    formulas = [_winner(run) for run in runs]
    names = [str(run.tables[0]["name"]) for run in runs]
    if len(names) < 2 or len(set(names)) < len(names):
        raise InputError(f"transfer needs runs on two or more different tables, not {names}")
    tables = [_table(run, data) for run in runs]
    rho: list[list[float]] = [[] for _ in runs]
    for run, table in zip(runs, tables, strict=True):
        if run.settings.get("whole_table"):
            raise InputError(f"{run.folder} has fitness rows of the whole table: no test rows here")
        sketch = run.request["sketch"]
        context = Context(
            int(sketch["seed"]),
            int(sketch["batch_seed"]),
            str(sketch["loss"]),
            device,
            folder=cache_folder(cache),
            workers=workers or Workers(),
            label=table.name,
            batch=Minibatch.from_json(sketch["batch"]) if "batch" in sketch else None,
            definitions=str(sketch.get("definitions", OURS)),
        )
        parts = split(table, int(run.request["split_seed"]))
        judged = TableJudge(table, parts, with_test=True)
        measurements = Measurements(context)
        for row, text in zip(rho, formulas, strict=True):
            proxy = FormulaProxy(text, parse(text))
            scores = proxy.score(table.space, table.archs, measurements)
            row.append(judged.rho(scores, "test"))
    return transfer(names, formulas, rho)


def _winner(run: FormulaRun) -> str:
    if len(run.tables) != 1 or run.best is None:
        raise InputError(f"{run.folder} has no winner on a single table: transfer needs one")
    return str(run.best["formula"])


def _table(run: FormulaRun, data: str | Path | None) -> Table:
    from spaces.tables import load

    entry = run.tables[0]
    table = load(str(entry["name"]), data, str(entry["space"]))
    if table.digest != entry["digest"]:
        raise InputError(
            f"table {table.name} has changed since the run in {run.folder}: restore the old one"
        )
    return table


def chart(data: Transfer, caption: str) -> Chart:
    """A row per formula, a column per table."""
    pairs = zip(data.tables, data.formulas, strict=True)
    lines = "; ".join(f"{table}: {formula}" for table, formula in pairs)
    told = [
        [
            f"{data.chosen} {table} on {other} {value:.3f}"
            for other, value in zip(data.tables, row, strict=True)
        ]
        for table, row in zip(data.tables, data.rho, strict=True)
    ]
    hover = [
        [
            f"{formula}\n{data.chosen} {table}, tested on {other}: ρ {value:.3f}"
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
                x=Axis(title=f"tested on ({data.rows} rows)", names=data.tables),
                y=Axis(title=f"formula {data.chosen}", names=data.tables),
            )
        ],
    )


def _charts(material: Material) -> Iterator[Chart]:
    run = material.run
    if material.transfer is not None:
        yield chart(material.transfer, "The winner of each run on the test rows of every table.")
    elif run.result is None or len(run.tables) < 2:
        return
    elif lines := (run.result.get("levels") or {}).get("tables_left_out"):
        beside = "; ".join(
            f"{line['table']}: {line['counter']} {line['counter_rho']:.3f}"
            for line in lines
            if line["counter"] is not None
        )
        caption = (
            "What the level finds without each table, tested on every table: on the diagonal are"
            f" tables that had no part in the choice. Their best counters: {beside}."
        )
        yield chart(of_tables_left_out(lines), caption)
    else:
        caption = (
            "Of the reported formulas the best on each table's training rows, tested on every"
            " table."
        )
        yield chart(of_campaign(run.result["top"]), caption)


FIGURE = FigureKind(60, HOLDS, _charts)
