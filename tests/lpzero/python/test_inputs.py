"""Data, spaces and proxies as objects: what the Python functions make of them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lpzero
import spaces
from lpzero.errors import InputError
from lpzero.proxies import find
from lpzero.python.inputs import proxy_text, space_name, table_of
from spaces.errors import TableError
from spaces.tables import load
from tests.spaces.own.small_space import SPACE

pandas = pytest.importorskip("pandas")


def numbers(n: int = 40) -> Any:
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.lognormal(size=(n, 3)), columns=["a", "b", "c"])
    frame["acc"] = np.log(frame["a"]) - frame["b"]
    return frame


def test_a_frame_is_a_table_of_columns_or_of_architectures() -> None:
    table = lpzero.load_table(numbers(), target="acc")
    assert (list(table.columns), table.target, len(table)) == (["a", "b", "c"], "acc", 40)
    worse = lpzero.load_table(numbers(), target="acc", smaller_is_better=True)
    np.testing.assert_array_equal(worse.targets, -table.targets)
    archs = [SPACE.sample(random.Random(seed)) for seed in range(8)]
    rows = [{**SPACE.to_json(arch), "acc": float(i)} for i, arch in enumerate(dict.fromkeys(archs))]
    own = lpzero.load_table(pandas.DataFrame(rows), space=SPACE, target="acc")
    assert own.space == SPACE
    pairs = lpzero.load_table(list(zip(own.archs, own.targets, strict=True)), space=SPACE)
    assert pairs.digest == own.digest
    as_fields = [
        (SPACE.to_json(arch), target) for arch, target in zip(own.archs, own.targets, strict=True)
    ]
    assert lpzero.load_table(as_fields, space=SPACE).digest == own.digest
    assert table_of(own) is own
    assert len(repr(own)) < 100


def test_a_frame_of_another_library_is_read_by_the_interchange_protocol() -> None:
    arrow = pytest.importorskip("pyarrow")

    class Other:  # as a library that is not pandas
        def __init__(self, frame: Any) -> None:
            self.frame = arrow.table(frame.to_dict("list"))

        def __dataframe__(self, nan_as_null: bool = False, allow_copy: bool = True) -> Any:
            return self.frame.__dataframe__(nan_as_null, allow_copy)

    table = lpzero.load_table(Other(numbers()), target="acc")
    assert table.digest == lpzero.load_table(numbers(), target="acc").digest


def test_missing_values_are_said(caplog: pytest.LogCaptureFixture) -> None:
    frame = numbers()
    frame.loc[:8, "b"] = np.nan
    table = lpzero.load_table(frame, target="acc")
    assert "column b is left out, 9 rows have no number" in caplog.text
    assert "column b is left out" in repr(table)


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (numbers(), {}, "no target is named: give target=, one of a, b, c, acc"),
        (numbers(), {"target": "accuracy"}, "no column 'accuracy'"),
        ([({}, 1.0)], {}, "give space="),
        (7, {}, "the data are a int, expected a table's name, a file"),
    ],
)
def test_what_is_no_table_is_refused_in_one_line(data: Any, options: Any, message: str) -> None:
    with pytest.raises((InputError, TableError), match=message) as raised:
        lpzero.load_table(data, **options)
    assert "\n" not in str(raised.value)
    assert len(str(raised.value)) < 200


def test_a_space_is_known_by_its_name_once_it_was_given(tmp_path: Path) -> None:
    assert space_name("nano-gpt2") == space_name(spaces.NANO_GPT2) == "nano-gpt2"
    name = space_name(SPACE)
    assert name is not None
    assert spaces.get(name) == SPACE
    with pytest.raises(InputError, match="space is a int, expected a name"):
        space_name(7)  # type: ignore[arg-type]


def block_count(network: Any) -> float:
    """the number of blocks"""
    return float(len(network.blocks))


def test_a_proxy_is_a_name_a_formula_an_object_or_a_function() -> None:
    text = "sum(l1(W))"
    assert proxy_text(lpzero.formula(text)) == text
    assert proxy_text(Path("best.json")) == "best.json"
    assert find(proxy_text(block_count)).definition == "the number of blocks"
    ranked = lpzero.rank("nano-gpt2", [block_count, "depth"])
    assert len(set(ranked.column("rho"))) == 1

    def snip(network: Any) -> float:
        return 0.0

    with pytest.raises(InputError, match="there is a proxy snip already"):
        proxy_text(snip)


def test_a_search_takes_a_space_a_table_and_a_bound() -> None:
    table = load("nano-gpt2")
    few = table.only(range(30))
    found = lpzero.search(
        table.space, "parameters", "random", samples=10, table=few, max_parameters=600_000
    )
    assert found["best"]["target"] is not None
    assert found.parameters <= 600_000
    assert found.arch == found.best_["arch"]
    # The runner-up is the second best that was observed, the place is counted among the 30 rows.
    targets = sorted((row["target"] for row in found.history_ if row["target"]), reverse=True)
    second = found.runner_up_
    assert second is not None
    assert [found.best_["target"], second["target"]] == targets[:2]
    better = int((few.targets > targets[0]).sum())
    assert found["place"] == {"table": few.name, "place": better + 1, "n": 30}
    assert f"place {better + 1} among the 30 rows of {few.name}" in repr(found)
    assert f"runner-up: target {targets[1]:.4g}, {second['parameters']:,} parameters" in repr(found)
