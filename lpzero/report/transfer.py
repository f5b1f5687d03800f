"""The winners of several runs on each other's tables: the only part of a report that runs networks.

Sketches that are not in the cache are built; the tables must be present.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lpzero.errors import InputError
from lpzero.judgement.table import TableJudge
from lpzero.report.figures.transfer import Transfer, transfer
from lpzero.runs.formula_run import FormulaRun
from lpzero.statistics.definitions import OURS
from primitives.parser import parse
from spaces.minibatch import Minibatch

if TYPE_CHECKING:
    from lpzero.parallel import Workers
    from spaces.tables import Table


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
    from lpzero.sketches.store import default_folder
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
            folder=Path(cache).expanduser() if cache else default_folder(),
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
