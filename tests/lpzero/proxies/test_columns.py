"""Columns as proxies: a table's own, ranks, and proxies as columns of campaigns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lpzero.errors import InputError
from lpzero.judgement.correlation import spearman
from lpzero.judgement.counters import score as count
from lpzero.judgement.ranks import rank as ranks
from lpzero.proxies import Context
from lpzero.proxies.formula import FormulaProxy
from lpzero.proxies.lookup import column_proxy
from lpzero.proxies.ranking import ProxyColumns, chosen_on, rank, rank_columns
from lpzero.sketches.sketch import SketchOptions
from primitives.parser import parse
from spaces.tables.column_table import make_column_table
from tests.lpzero.small_campaign import table

LATENCY = np.random.default_rng(3).normal(size=40)
TABLE = replace(table(), extra={"Latency (ms)": LATENCY})


def formula(text: str) -> FormulaProxy:
    return FormulaProxy(text, parse(text))


def test_a_formula_may_name_a_column_of_the_table_it_is_ranked_on() -> None:
    (row,) = rank(TABLE, [formula("mul(depth, latency_ms)")])
    assert row["rho"] == spearman(count("depth", TABLE) * LATENCY, TABLE.targets)
    with pytest.raises(InputError, match="has a column 'latency_ms', and no counter or proxy"):
        rank(table(), [formula("mul(depth, latency_ms)")])


def test_a_column_of_the_table_is_not_looked_up_as_a_proxy_that_was_chosen_somewhere() -> None:
    assert chosen_on(formula("mul(depth, latency_ms)"), TABLE) == {}
    assert "autoformer-c100" in chosen_on(formula("mul(depth, auto-prox)"), TABLE)


def test_ranks_of_columns_are_ranks_among_the_rows() -> None:
    (row,) = rank(TABLE, [formula("sub(rank-of-depth, rank-of-latency_ms)")])
    scores = ranks(count("depth", TABLE)) / 40 - ranks(LATENCY) / 40
    assert row["rho"] == pytest.approx(spearman(scores, TABLE.targets), abs=1e-12)


def test_scores_of_proxies_are_columns_by_their_names() -> None:
    found = ProxyColumns(Context())(TABLE, ("depth", "sept"), SketchOptions())
    assert list(found) == ["depth", "sept"]
    assert np.array_equal(found["depth"], count("depth", TABLE))


def test_columns_of_a_table_without_networks_are_ranked_with_formulas_of_them() -> None:
    names = [str(i) for i in range(40)]
    columns = {"params": LATENCY.tolist(), "b": (LATENCY**2).tolist()}
    given = make_column_table("made-up", names, LATENCY.tolist(), columns, "target")
    rows = rank_columns(given, [column_proxy(t, given) for t in ("params", "-b", "mul(b, b)")])
    assert rows[0]["proxy"] == "params_column"
    assert rows[0]["rho"] == pytest.approx(1.0)
    assert rows[0]["rho_given_params"] is None
    assert {"train", "valid", "test"} <= rows[0].keys()
    with pytest.raises(InputError, match="needs networks, and table made-up has none"):
        column_proxy("sum(l1(W))", given)
