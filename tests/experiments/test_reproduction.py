"""A paper's table again: which rows, which differences, and files that can be read back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments.reproduction import markdown, reproduce, thin, write
from lpzero.errors import InputError
from lpzero.proxies import Context
from lpzero.proxies.published import printed_in
from lpzero.proxies.ranking import Ranking
from tests.lpzero.proxies.test_ranking import TABLE


@pytest.mark.slow
def test_ours_stand_beside_the_printed(tmp_path: Path) -> None:
    table = replace(TABLE, name="gpt2-wt103")
    context = Context(folder=tmp_path / "cache")
    rows = reproduce(table, "ETAS Table 4", Ranking(context), ("depth",))
    assert {row["proxy"] for row in rows} == {*printed_in("gpt2-wt103", "ETAS Table 4"), "depth"}
    assert rows[0]["proxy"] == "ntsr"
    assert rows[0]["rho_difference"] == pytest.approx(rows[0]["rho"] - 0.98)
    assert (rows[-1]["proxy"], rows[-1]["rho_difference"]) == ("depth", None)
    page = write(tmp_path, "page", rows, "A title").read_text()
    assert page.startswith("# A title\n\n| proxy | n | rho printed | rho |")
    assert page.count("\n|") == len(rows) + 2
    assert json.loads((tmp_path / "page.json").read_text())[0]["proxy"] == "ntsr"
    assert (tmp_path / "page.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("dataset", "rho", "tau"),
    [("c100", 0.86, 0.71), ("flowers", 0.90, 0.78), ("chaoyang", 0.51, 0.30)],
)
def test_each_dataset_of_etas_table_3_has_its_own_columns(
    dataset: str, rho: float, tau: float
) -> None:
    found = printed_in(f"autoformer-{dataset}-kd", "ETAS Table 3")
    assert found["ntsr"][1:] == (rho, tau)
    assert len(found) == 12
    assert all(figure.rho is not None and figure.tau is not None for figure in found.values())


def test_a_source_that_prints_nothing_is_an_error() -> None:
    with pytest.raises(InputError, match="prints nothing for table flexibert; known: LPZero"):
        printed_in("flexibert", "ETAS Table 4")


def test_a_thin_table_keeps_both_ends() -> None:
    few = thin(TABLE, 4)
    assert len(few) == len(few.ids) == len(few.targets) == 4
    assert {few.targets.min(), few.targets.max()} == {TABLE.targets.min(), TABLE.targets.max()}
    places = [TABLE.ids.index(name) for name in few.ids]
    assert [TABLE.archs[i] for i in places] == list(few.archs)
    assert np.array_equal(TABLE.targets[places], few.targets)
    assert thin(TABLE, None) is TABLE
    assert thin(TABLE, 100) is TABLE


def test_markdown_by_hand() -> None:
    rows = [{"proxy": "a", "rho": 0.5, "rho_ci": [0.25, 1.0]}, {"proxy": "b", "rho": None}]
    assert markdown(rows, ("proxy", "rho", "rho_ci")).splitlines()[2:] == [
        "| a | 0.500 | 0.250, 1.000 |",
        "| b | - | - |",
    ]
