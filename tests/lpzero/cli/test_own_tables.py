"""Tables of the user's on the command line: one line for each thing that can be wrong."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from scipy.stats import spearmanr

import lpzero
from lpzero.cli.main import run
from spaces.tables import load_any, names
from tests.spaces.own.small_space import SPACE

HEAD = "layers,width,activation,heads,ffn,accuracy\n"
ROWS = [
    '1,8,relu,[2],[16],0.51',
    '1,16,relu,[2],[16],0.55',
    '2,8,tanh,"[2, 4]","[16, 24]",0.61',
    '2,16,relu,4 2,16;24,0.64',
]  # fmt: skip
ADDRESS = "tests.spaces.own.small_space:SPACE"


def written(folder: Path, text: str, name: str = "results.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("head", "row", "message"),
    [
        ("layers,width,activation,heads,accuracy\n", "1,8,relu,[2],1", "no column 'ffn', a field"),
        (HEAD, "1,wide,relu,[2],[16],0.5", "line 6, column width: 'wide' is not a number"),
        (HEAD, "1,8,relu,[2],[16],high", "line 6, column accuracy: 'high' is not a number"),
        (HEAD, "1,9,relu,[2],[16],0.9", "line 6, column width: width = 9 is not a choice"),
        (HEAD, "1,8,gelu,[2],[16],0.9", "line 6, column activation: activation = 'gelu'"),
        (HEAD, "2,8,relu,[2],[16],0.9", "line 6, column heads: 1 values for 2 layers"),
        (HEAD, "1,8,relu,[2],[16]", "line 6: 5 fields, expected 6"),
    ],
)
def test_a_row_that_does_not_fit_is_one_line_and_code_two(
    head: str, row: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = ROWS if head == HEAD else []
    path = written(tmp_path, head + "\n".join([*rows, row]) + "\n")
    assert run(["counters", str(path), "--space", ADDRESS, "--target", "accuracy"]) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1


def test_rows_of_one_architecture_are_averaged_with_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path, HEAD + "\n".join([*ROWS, "1,8,relu,[2],[16],0.9"]) + "\n")
    assert run(["counters", str(path), "--space", ADDRESS, "--target", "accuracy"]) == 0
    captured = capsys.readouterr()
    assert "5 rows are of 4 architectures; the rows of one are averaged" in captured.err
    table = lpzero.load_table(path, space=SPACE, target="accuracy")
    first = float(ROWS[0].rpartition(",")[2])
    assert table.targets[0] == pytest.approx((first + 0.9) / 2)
    assert (len(table), table.ceiling) == (4, None)


def test_architectures_that_were_trained_twice_give_the_noise_ceiling(tmp_path: Path) -> None:
    archs = list({SPACE.sample(random.Random(seed)) for seed in range(40)})[:12]
    targets = [(index, index + (index % 2) * 3) for index in range(12)]
    lines = [
        json.dumps({"id": str(index), **SPACE.to_json(arch), "accuracy": target})
        for index, arch in enumerate(archs)
        for target in targets[index]
    ]
    table = lpzero.load_table(
        written(tmp_path, "\n".join(lines), "r.jsonl"), space=SPACE, target="accuracy"
    )
    assert table.ids == tuple(map(str, range(12)))
    assert table.targets.tolist() == [sum(pair) / 2 for pair in targets]
    assert table.ceiling == pytest.approx(spearmanr(*zip(*targets, strict=True)).statistic)


@pytest.mark.slow
def test_a_constant_target_and_a_million_rows_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flat = HEAD + "\n".join(row.rpartition(",")[0] + ",0.5" for row in ROWS)
    many = HEAD + "1,8,relu,[2],[16],0.5\n" * 1_000_000
    for text, message in ((flat, "accuracy is 0.5 in every row"), (many, "more than 50,000 rows")):
        path = written(tmp_path, text)
        assert run(["counters", str(path), "--space", ADDRESS, "--target", "accuracy"]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.slow
def test_csv_json_lines_parquet_and_a_json_column_are_the_same_table(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    csv = lpzero.load_table(
        written(tmp_path, HEAD + "\n".join(ROWS)), space=SPACE, target="accuracy"
    )
    records = [
        {**SPACE.to_json(arch), "accuracy": y}
        for arch, y in zip(csv.archs, csv.targets.tolist(), strict=True)
    ]
    lines = "\n".join(json.dumps(record) for record in records)
    jsonl = lpzero.load_table(written(tmp_path, lines, "r.jsonl"), space=SPACE, target="accuracy")
    whole = [
        {"arch": json.dumps(SPACE.to_json(arch)), "accuracy": y, "seconds": 3.0}
        for arch, y in zip(csv.archs, csv.targets.tolist(), strict=True)
    ]
    pandas.DataFrame(whole).to_parquet(tmp_path / "r.parquet")
    parquet = lpzero.load_table(tmp_path / "r.parquet", space=SPACE, target="accuracy")
    frame = lpzero.load_table(pandas.DataFrame(records), space=SPACE, target="accuracy")
    assert csv.digest == jsonl.digest == parquet.digest == frame.digest
    assert csv.archs[3].heads == (4, 2)
    assert parquet.extra["seconds"].tolist() == [3.0] * 4


def test_smaller_is_better_and_missing_targets(tmp_path: Path) -> None:
    path = written(tmp_path, HEAD + "\n".join([*ROWS, "1,8,tanh,[2],[24],"]))
    table = lpzero.load_table(path, space=ADDRESS, target="accuracy", smaller_is_better=True)
    assert table.targets.tolist() == [-0.51, -0.55, -0.61, -0.64]
    assert (table.target, table.failed) == ("minus accuracy", 1)


def test_columns_of_single_layers(tmp_path: Path) -> None:
    head = "width,activation,heads_0,heads_1,ffn_0,ffn_1,accuracy\n"
    path = written(tmp_path, head + "8,relu,2,,16,,0.5\n16,tanh,2,4,16,24,0.6\n")
    table = lpzero.load_table(path, space=SPACE, target="accuracy")
    assert [arch.layers for arch in table.archs] == [1, 2]
    assert table.archs[1].ffn == (16, 24)


@pytest.mark.slow
def test_lpzero_yaml_names_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, HEAD + "\n".join(ROWS))
    entry = f"file: results.csv, space: '{ADDRESS}', target: accuracy"
    written(tmp_path, f"tables:\n  my-table: {{{entry}}}\n", "lpzero.yaml")
    assert "my-table" in names()
    assert len(load_any("my-table")) == 4
    assert run(["counters", "my-table"]) == 0
    assert run(["tables"]) == 0
    assert "my-table" in capsys.readouterr().out
    written(tmp_path, "tables:\n  my-table: {fiel: results.csv}\n", "lpzero.yaml")
    assert run(["counters", "my-table"]) == 2
    assert "there is no field 'fiel'; did you mean file?" in capsys.readouterr().err
    assert run(["counters", "nano-gpt2"]) == 0  # what does not need it goes on
