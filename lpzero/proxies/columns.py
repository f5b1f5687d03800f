"""Scores of registered proxies as columns of formulas, and columns of tables as proxies.

A campaign combines proxies by name through `proxy_scores`; on a table without networks its own
columns, and formulas of them, are ranked by `rank_columns`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.judgement.table import ALL, TableJudge
from lpzero.proxies.base import Proxy
from lpzero.proxies.formula import FormulaProxy
from lpzero.proxies.lookup import from_file
from lpzero.proxies.measurements import Context, Measurements
from lpzero.proxies.ranking import prefetch
from lpzero.proxies.registry import get
from lpzero.scores.columns import as_ranks, select
from lpzero.scores.values import Values
from lpzero.sketches.sketch import SketchOptions
from primitives.errors import FormulaError
from primitives.formula import Column, Formula
from primitives.parser import parse
from primitives.rejection import Rejected
from spaces.tables import split
from spaces.tables.splits import MIN_ROWS

if TYPE_CHECKING:
    from spaces.tables import ColumnTable, Table

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ProxyColumns:
    """Scores of proxies by name in this context; its seeds are those of the options asked for."""

    context: Context

    def __call__(
        self, table: Table, names: Sequence[str], options: SketchOptions
    ) -> dict[str, FloatArray]:
        """The scores (n,) of the table's architectures under each proxy, computed or cached."""
        proxies = [_column(name, table) for name in names]
        seeds = replace(self.context, seed=options.seed, batch_seed=options.batch_seed)
        measurements = Measurements(seeds)
        prefetch(table, proxies, measurements)
        return {p.name: p.score(table.space, table.archs, measurements) for p in proxies}


def _column(name: str, table: Table) -> Proxy:
    proxy = get(name)
    try:
        Column(name)
    except FormulaError as error:
        raise InputError(f"proxy {name} cannot be a term: {error}") from None
    if not proxy.applies_to(table.space):
        raise InputError(f"proxy {name} cannot score space {table.space.name}; leave it out")
    return proxy


def column_proxy(text: str, table: ColumnTable) -> FormulaProxy:
    """The column, the formula of columns, or the one in a file or a run's directory."""
    names = select(table.columns, list(table.columns), table.name)
    if text in names or text in table.columns:
        (name,) = select(table.columns, [text], table.name)
        return FormulaProxy(name, Formula.of_base(Column(name)))
    if "(" not in text and not text.startswith("-") and not os.path.exists(text):
        select(table.columns, [text], table.name)  # says which columns there are
    found = from_formula(text) if not os.path.exists(text) else from_file(text)
    if not isinstance(found, FormulaProxy) or found.formula.terms:
        raise InputError(
            f"{found.name} needs networks, and table {table.name} has none; give a column or a"
            " formula of columns"
        )
    return found


def from_formula(text: str) -> FormulaProxy:
    """The formula as a proxy that is called by its text."""
    formula = parse(text)
    return FormulaProxy(str(formula), formula)


def rank_columns(
    table: ColumnTable, proxies: Sequence[FormulaProxy] = (), split_seed: int = 0
) -> list[Row]:
    """A row per formula, or per column if none is given, the one with the highest rho first."""
    columns = select(table.columns, list(table.columns), table.name)
    everything = columns | as_ranks(columns)
    asked = list(proxies) or [FormulaProxy(name, Formula.of_base(Column(name))) for name in columns]
    parts = split(table, split_seed) if len(table) >= MIN_ROWS else None
    judged = TableJudge(table, parts, with_test=True)
    rows = []
    for proxy in asked:
        found = Values(columns=everything).score(proxy.formula)
        if isinstance(found, Rejected):
            raise InputError(f"{proxy.name} cannot be scored on table {table.name}: {found.reason}")
        by_part = {part: one.to_json() for part, one in judged.judge(found).items()}
        rows.append(
            {
                "proxy": proxy.name,
                **by_part.pop(ALL),
                "missing": int((~np.isfinite(found)).sum()),
                "in_sample": table.name in dict(proxy.chosen_on),
                **by_part,
                "seconds": None,
                "direction": proxy.direction,
                "needs": "columns",
                "paper": proxy.paper,
                "definition": proxy.definition,
                "published": [],
            }
        )
    return sorted(rows, key=lambda row: -row["rho"])
