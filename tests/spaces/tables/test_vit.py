"""The vision tables: rows of small made-up files, and how broken or hostile ones are answered."""

from __future__ import annotations

import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from spaces import tables
from spaces.errors import TableError
from spaces.tables import vit

COLUMNS = [key for key, _ in vit.DATASETS.values()]


def accuracies(index: int) -> dict[str, float]:
    return {key: 50.0 + 5 * place + index for place, key in enumerate(COLUMNS)}


def autoformer_record(index: int) -> dict[str, Any]:
    arch = {
        "hidden_dim": 216,
        "mlp_ratio": [3.5] * 11 + [4.0],
        "depth": 12,
        "num_heads": [3] * 11 + [4],
    }
    return {"arch": arch, **accuracies(index), "imagenet_super_acc": 70.0 + index}


def pit_record(index: int) -> dict[str, Any]:
    arch = {"base_dim": 24, "mlp_ratio": 6, "depth": [2, 8, 4], "num_heads": [2, 2, 8]}
    return {"arch": arch, **accuracies(index)}


def write(root: Path, family: str, records: Any) -> Path:
    path = root / "vit" / f"gt_{family}.pth"
    path.parent.mkdir(parents=True, exist_ok=True)
    torch.save(records, path)
    return path


def test_autoformer_rows_become_architectures(tmp_path: Path) -> None:
    write(tmp_path, "autoformer", [autoformer_record(0), autoformer_record(3)])
    table = tables.load("autoformer-flowers-kd", tmp_path)
    assert table.ids == ("0", "1")
    assert table.targets.tolist() == [65.0, 68.0]
    assert table.archs[0].hidden == 216
    assert [layer.ratio for layer in table.archs[0].layers[-2:]] == [3.5, 4.0]
    assert [layer.heads for layer in table.archs[0].layers[-2:]] == [3, 4]
    assert table.extra["imagenet"].tolist() == [70.0, 73.0]
    assert "flowers-kd" not in table.extra


def test_pit_rows_become_architectures(tmp_path: Path) -> None:
    write(tmp_path, "pit", [pit_record(0), pit_record(1)])
    table = tables.load("pit-c100", tmp_path)
    assert table.targets.tolist() == [50.0, 51.0]
    [first, _] = table.archs
    assert (first.base_dim, first.ratio, first.depths, first.heads) == (24, 6, (2, 8, 4), (2, 2, 8))
    assert set(table.extra) == set(vit.DATASETS) - {"c100"}


def test_every_table_reads_its_own_column(tmp_path: Path) -> None:
    write(tmp_path, "pit", [pit_record(0)])
    found = [tables.load(f"pit-{name}", tmp_path).targets[0] for name in vit.DATASETS]
    assert found == [50.0, 55.0, 60.0, 65.0, 70.0, 75.0]


@pytest.mark.parametrize("n", [1, 2, 7])
def test_rows_are_counted_without_reading_them(tmp_path: Path, n: int) -> None:
    path = write(tmp_path, "pit", [pit_record(i) for i in range(n)])
    assert vit.count(path) == n
    found = {entry.name: entry for entry in tables.describe(tmp_path)}
    assert (found["pit-c100-kd"].n, found["pit-c100-kd"].present) == (n, True)
    missing = found["autoformer-c100-kd"]
    assert (missing.n, missing.present, missing.licence) == (100, False, "Apache-2.0")


def test_a_missing_table_prints_the_fetch_command(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=f"lpzero tables fetch pit-flowers --data {tmp_path}$"):
        tables.load("pit-flowers", tmp_path)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda r: r.pop("c100_kd_acc"), "row 1: the field c100_kd_acc is missing"),
        (lambda r: r.update(c100_kd_acc="good"), "c100_kd_acc = 'good', expected a number"),
        (lambda r: r.update(c100_kd_acc=float("nan")), "c100_kd_acc = nan, expected a finite"),
        (lambda r: r.update(chaoyang_kd_acc=101.0), "= 101.0, expected a percentage"),
        (lambda r: r.pop("arch"), "row 1: the field arch is missing"),
        (lambda r: r["arch"].update(depth=13), "depth = 13 with 12 mlp_ratio and 12 num_heads"),
        (lambda r: r["arch"].update(hidden_dim=100), "hidden = 100 is outside space autoformer"),
        (lambda r: r["arch"].update(num_heads=[5] * 12), r"layers\[0\].heads = 5 is outside"),
        (lambda r: r["arch"].update(mlp_ratio=4.0), "mlp_ratio = 4.0, expected a list"),
    ],
)
def test_a_broken_row_is_named(
    tmp_path: Path, damage: Callable[[dict[str, Any]], Any], message: str
) -> None:
    records = [autoformer_record(0), autoformer_record(1)]
    damage(records[1])
    path = write(tmp_path, "autoformer", records)
    with pytest.raises(TableError, match=message) as caught:
        tables.load("autoformer-c100-kd", tmp_path)
    assert str(caught.value).startswith(f"{path}: row 1")
    assert f"fetch autoformer-c100-kd --data {tmp_path} --force" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_heads": [8, 4, 4]}, r"heads\[1\] = 4 is outside space pit: use a multiple of the 8"),
        ({"num_heads": [2, 4]}, "number of heads = 2 is outside space pit"),
        ({"depth": [2, 8, 5]}, r"depths\[2\] = 5 is outside space pit: use one of 2, 4, 6"),
        ({"depth": [2, "8", 4]}, "depths\\[1\\] = '8' is outside space pit"),
        ({"mlp_ratio": 4.0}, "mlp_ratio = 4.0, expected an integer"),
    ],
)
def test_a_wrong_pit_architecture_is_named(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    record = pit_record(0)
    record["arch"] |= change
    write(tmp_path, "pit", [record])
    with pytest.raises(TableError, match=message):
        tables.load("pit-c100", tmp_path)


@pytest.mark.parametrize("content", [{}, [], "text", None, torch.ones(3)])
def test_another_value_is_refused(tmp_path: Path, content: Any) -> None:
    write(tmp_path, "pit", content)
    with pytest.raises(TableError, match="expected a list of architectures"):
        tables.load("pit-c100", tmp_path)


@pytest.mark.parametrize("keep", [0, 10, 200, -30])
def test_a_truncated_file_is_one_line(tmp_path: Path, keep: int) -> None:
    path = write(tmp_path, "pit", [pit_record(i) for i in range(5)])
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(TableError, match=f"^{path}: ") as caught:
        tables.load("pit-c100", tmp_path)
    assert "\n" not in str(caught.value)
    found = {entry.name: entry for entry in tables.describe(tmp_path)}
    assert not found["pit-c100"].present


class Hostile:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (os.environ["LPZERO_TEST_PLACE"],)


@pytest.mark.parametrize("kind", ["archive", "bare pickle"])
def test_a_file_cannot_run_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    place = tmp_path / "made by the file"
    monkeypatch.setenv("LPZERO_TEST_PLACE", str(place))
    path = write(tmp_path, "pit", [pit_record(0)])
    payload = pickle.dumps([Hostile()], protocol=2)
    if kind == "archive":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("archive/data.pkl", payload)
            archive.writestr("archive/version", "3\n")
    else:
        path.write_bytes(payload)
    with pytest.raises(TableError, match=f"^{path}: ") as caught:
        tables.load("pit-c100", tmp_path)
    assert "\n" not in str(caught.value)
    tables.describe(tmp_path)
    assert not place.exists()
