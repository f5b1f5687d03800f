"""Tables of columns: reading files, what is left out, refusals in one line, splits."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spaces.errors import TableError
from spaces.tables import ColumnTable, load, load_any, split
from spaces.tables import row_files as files
from spaces.tables.column_files import read_columns
from spaces.tables.column_table import make_column_table
from spaces.tables.readers import ReadOptions

ACCURACY = ReadOptions(target="accuracy")


def written(folder: Path, text: str, name: str = "My metrics.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def naslib(folder: Path, rows: dict[str, Any], **tasks: Any) -> Path:
    return written(folder, json.dumps({"cifar10": rows, **tasks}), "zc_some.json")


def test_a_csv_file_is_a_table_of_columns(tmp_path: Path) -> None:
    text = "\ufeffid,Grad Norm,flops,accuracy\na,1,2e3,0.5\nb,-2,5,0.25\n\nc,3.5,7,1\n"
    table = read_columns(written(tmp_path, text), ACCURACY)
    assert (table.name, table.ids, table.target) == ("my-metrics", ("a", "b", "c"), "accuracy")
    assert table.targets.tolist() == [0.5, 0.25, 1.0]
    assert {k: v.tolist() for k, v in table.columns.items()} == {
        "Grad Norm": [1, -2, 3.5],
        "flops": [2000, 5, 7],
    }
    assert table.remarks == ()


def test_a_small_target_is_negated_and_lines_are_ids_without_a_column_of_them(
    tmp_path: Path,
) -> None:
    path = written(tmp_path, "loss,x\n3,1\n2,5\n")
    table = read_columns(path, ReadOptions(target="loss", smaller_is_better=True))
    assert (table.ids, table.target) == (("2", "3"), "minus loss")
    assert table.targets.tolist() == [-3, -2]


def test_rows_without_a_target_and_columns_with_gaps_are_left_out_with_a_count(
    tmp_path: Path,
) -> None:
    text = "id,gap,flat,x,accuracy\na,1,7,1,0.5\nb,nan,7,2,\nc,,7,3,0.75\nd,2,7,4,inf\ne,4,7,5,1\n"
    table = read_columns(written(tmp_path, text), ACCURACY)
    assert table.ids == ("a", "c", "e")
    assert list(table.columns) == ["x"]
    assert table.remarks == (
        "my-metrics: 2 rows without a accuracy are left out",
        "my-metrics: column gap is left out, 1 rows have no number",
        "my-metrics: column flat is left out, it is the same in every row",
    )


@pytest.mark.parametrize(
    ("text", "reading", "message"),
    [
        ("id,x\na,1\n", ACCURACY, "there is no column 'accuracy' (--target); the file has: id, x"),
        ("id,x,accuracy\na,1,1\n", ReadOptions(), "no target is named; use --target COLUMN"),
        ("id,x,accuracy\na,1,1\nb,fast,2\n", ACCURACY, "line 3, column x: 'fast' is not a number"),
        ("id,x,accuracy\na,1,1\nb,2,2\na,3,3\n", ACCURACY, "line 4, column id: 'a' is also the id"),
        ("id,x,accuracy\na,1,1\nb,2\n", ACCURACY, "line 3: 2 fields, expected 3"),
        ("id,x,x,accuracy\na,1,1,1\n", ACCURACY, "line 1: the heading 'x' is empty or not unique"),
        ("id,x,accuracy\na,1,5\nb,2,5\n", ACCURACY, "accuracy is 5 in every row"),
        ("id,x,accuracy\na,,1\nb,2,2\n", ACCURACY, "no column has a number in every row"),
        ("id,x,accuracy\na,1,\n", ACCURACY, "no row has a target"),
        ("id,x,accuracy\n", ACCURACY, "there are no rows below the headings"),
        ("id,accuracy\na,1\nb,2\n", ACCURACY, "there is no column beside accuracy"),
        ("", ACCURACY, "there are no rows below the headings"),
        (
            "x,accuracy\n1,1\n",
            ReadOptions("accuracy", task="cifar10"),
            "a task is for NASLib's JSON",
        ),
        ("x,accuracy\n1,1\n", ReadOptions("accuracy", ids="arch"), "no column 'arch' (--id)"),
    ],
)
def test_bad_csv_is_refused_in_one_line(
    text: str, reading: ReadOptions, message: str, tmp_path: Path
) -> None:
    with pytest.raises(TableError) as refused:
        read_columns(written(tmp_path, text), reading)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_files_that_are_too_large_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, "x,accuracy\n" + "1,2\n" * 20)
    monkeypatch.setattr(files, "MOST_ROWS", 19)
    with pytest.raises(TableError, match="more than 19 rows"):
        read_columns(path, ACCURACY)
    monkeypatch.setattr(files, "MOST_BYTES", 10)
    with pytest.raises(TableError, match="at most 10 are read"):
        read_columns(path, ACCURACY)
    with pytest.raises(TableError, match="cannot be read"):
        read_columns(tmp_path / "none.csv", ACCURACY)


def test_a_zero_cost_file_of_naslib_is_a_table_of_its_proxies(tmp_path: Path) -> None:
    rows = {
        f"arch{i}": {
            "idx": str(i),
            "val_accuracy": 90.0 + i,
            "params": {"score": 2.0 * i, "time": 1.0},
            "snip": {"score": -float(i), "time": 1.0},
            "epe": {"score": math.nan if i == 2 else float(i), "time": 1.0},
        }
        for i in range(4)
    }
    path = naslib(tmp_path, rows, svhn={})
    with pytest.raises(TableError, match="2 tasks; choose one with --task: cifar10, svhn"):
        read_columns(path, ReadOptions())
    with pytest.raises(TableError, match="no task 'imagenet'; the file has: cifar10, svhn"):
        read_columns(path, ReadOptions(task="imagenet"))
    table = read_columns(path, ReadOptions(task="cifar10"))
    assert (table.name, table.target) == ("zc-some-cifar10", "val_accuracy")
    assert table.columns["params"].tolist() == [0, 2, 4, 6]
    assert list(table.columns) == ["params", "snip"]
    assert "column epe is left out" in table.remarks[0]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"a": {"val_accuracy": 1}}, "there is no column beside val_accuracy"),
        ({"a": {"snip": {"score": 1}}}, "there is no 'val_accuracy' (--target)"),
        ({"a": {"val_accuracy": "high", "snip": {"score": 1}}}, "expected a number"),
        ({"a": {"val_accuracy": 1, "snip": {"time": 1}}}, "snip has no score"),
        ({"a": [1, 2]}, "expected an object: task, architecture, proxy, score"),
        ([1], "expected an object: task, architecture, proxy, score"),
    ],
)
def test_other_json_is_refused_in_one_line(rows: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(TableError) as refused:
        read_columns(naslib(tmp_path, rows), ReadOptions())
    assert message in str(refused.value)


def test_rows_that_agree_in_every_column_stay_in_one_part() -> None:
    rng = np.random.default_rng(0)
    cells = rng.normal(size=(40, 2)).repeat(3, axis=0)
    table = make_column_table(
        "cells",
        [str(i) for i in range(120)],
        rng.normal(size=120).tolist(),
        {"a": cells[:, 0].tolist(), "b": cells[:, 1].tolist()},
        "target",
    )
    parts = split(table, 3)
    found = {row: part for part in ("train", "valid") for row in getattr(parts, part)}
    assert [found.get(3 * i) for i in range(40)] == [found.get(3 * i + 2) for i in range(40)]
    assert (len(parts.train), len(parts.valid), len(parts.open_test())) == (60, 24, 36)
    hidden = parts.hide_test(table)
    assert np.isnan(hidden.targets).sum() == 36
    assert np.isfinite(hidden.columns["a"]).all()


def test_the_published_columns_have_their_rows_and_no_corrupt_column(real_data: Path) -> None:
    table = load_any("rnn-columns", real_data)
    assert isinstance(table, ColumnTable)
    assert len(table) == 8794
    assert "Jacobian Covariance" not in table.columns
    assert len(set(table.twins())) == 2734  # cells; most were trained three times
    assert len(load_any("rnn-parameters", real_data)) == 10032
    assert len(load_any("nasbench301-columns", real_data)) == 725
    with pytest.raises(TableError, match="has columns and no networks"):
        load("rnn-columns", real_data)


def test_few_missing_numbers_are_medians_if_asked_for_and_said(tmp_path: Path) -> None:
    lines = ["accuracy,size,speed", *(f"{i},{i % 7},{i * i}" for i in range(30))]
    lines[3] = "2,,4"
    path = tmp_path / "holes.csv"
    path.write_text("\n".join(lines))
    plain = read_columns(path, ReadOptions(target="accuracy"))
    assert len(plain) == 29
    assert "1 rows that lack a number in some column are left out" in plain.remarks[0]
    filled = read_columns(path, ReadOptions(target="accuracy", impute=True))
    assert len(filled) == 30
    assert filled.columns["size"][2] == np.median(plain.columns["size"])
    assert np.flatnonzero(filled.columns["size_missing"]).tolist() == [2]
    assert "size: 1 missing numbers are its median 3, size_missing is 1 there" in filled.remarks[0]


def test_columns_with_many_holes_are_not_filled(tmp_path: Path) -> None:
    holes = [math.nan if i % 4 == 0 else float(i) for i in range(40)]
    made = make_column_table(
        "t", list(map(str, range(40))), range(40), {"a": holes, "b": range(40)}, "y", impute=True
    )
    assert list(made.columns) == ["b"]


def test_texts_are_columns_of_0_and_1_if_asked_for(tmp_path: Path) -> None:
    lines = [
        "arch,accuracy,op,size",
        *(f"n{i},{i},{('conv', 'pool', '')[i % 3]},{i}" for i in range(12)),
    ]
    path = tmp_path / "texts.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(TableError, match="--categories"):
        read_columns(path, ReadOptions(target="accuracy"))
    found = read_columns(path, ReadOptions(target="accuracy", categories=True))
    assert list(found.columns) == ["op conv", "op pool", "size"]
    assert found.columns["op pool"].tolist() == [0, 1, 0] * 4


def test_only_what_is_asked_for_is_stored_of_how_a_file_is_read() -> None:
    assert ReadOptions("y").to_json() == {
        "target": "y", "smaller_is_better": False, "ids": None, "task": None
    }  # fmt: skip
    assert ReadOptions("y", impute=True).to_json()["impute"] is True
