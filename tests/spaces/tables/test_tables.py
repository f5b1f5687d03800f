"""Tables as values, the registry, and how each loader answers a broken file."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import spaces
from spaces import tables
from spaces.errors import TableError, UnknownNameError
from spaces.openlm import OpenLmArch
from spaces.tables import nano, openlm
from spaces.tables.table import Table, make_table

GLUE = ("cola", "mnli", "mrpc", "qnli", "qqp", "rte", "sst", "sts", "glue")


def flexibert_record(index: int) -> dict[str, Any]:
    layer = {
        "operation_type": "DSC",
        "operation_parameter": 9,
        "num_operation_heads": 4,
        "feed_forward_dimension": 512,
        "num_feed_forward": 3,
    }
    fixed = layer | {"operation_type": "LT", "operation_parameter": "DFT"}
    overrides = {"hidden_size": 128, "nas_config": {"encoder_layers": [layer, fixed]}}
    return {
        "id": index,
        "scores": dict.fromkeys(GLUE, 60.0 + index),
        "hparams": {"model_hparam_overrides": overrides},
    }


def write_flexibert(root: Path, records: Any) -> Path:
    path = root / "flexibert" / "BERT_benchmark.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(records))
    return path


def gpt2_config() -> dict[str, Any]:
    return {
        "cutoffs": [19997, 39997, 199997, 50264],
        "tgt_len": 192,
        "n_token": 50264,
        "n_layer": 2,
        "d_model": 128,
        "n_head": [2, 8],
        "d_inner": [600, 601],
        "d_embed": 128,
        "div_val": 4,
    }


def write_gpt2(root: Path, config: dict[str, Any], family: str = "GPT2", **summary: Any) -> Path:
    folder = root / "lts" / f"random_{family}_wt103"
    for place in ("config_0/j1", "config_3/j10"):
        (folder / place).mkdir(parents=True, exist_ok=True)
        (folder / place / "model_config.yaml").write_text(yaml.safe_dump(config))
    rows = {"config_0_j1": {"valid_ppl": 30.0}, "config_3_j10": {"valid_ppl": 40.5}} | summary
    (folder / "ppl_summary.yaml").write_text(yaml.safe_dump(rows))
    return folder


def transformer_xl_config() -> dict[str, Any]:
    lengths = {"n_token": 267736, "mem_len": 192, "attn_type": 0, "pre_lnorm": False}
    return gpt2_config() | lengths | {"n_layer": 5, "n_head": [2] * 7, "d_inner": [600] * 7}


OPENLM_RUNS = {
    "d=96_l=4_h=4-8-0.003-0.033-8-1000-100-3e-05": 4.5,
    "d=96_l=4_h=4-8-0.003-0.033-8-1000-400-3e-05": 4.25,
    "d=488_l=8_h=12-64-0.003-0.033-64-2000-200-3e-05": 3.5,
    "d=96_l=4_h=4-8-0.003-0.033-8-1000-200-3e-05": 4.75,
}


def write_openlm(root: Path, runs: Any) -> Path:
    path = root / "openlm" / "grid.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(runs))
    return path


def nano_document(name: str = "nano-gpt2", n: int = 12) -> dict[str, Any]:
    space, rng = spaces.get(name), random.Random(0)
    runs = [{"seed": 1, "target": -2.0, "seconds": 1.5, "steps": 10}] * 2
    rows = [
        {"arch": space.to_json(space.sample(rng)), "target": -2.0 - i, "runs": runs}
        for i in range(n)
    ]
    head = {"schema": 1, "name": name, "space": name, "target": "t", "licence": "Apache-2.0"}
    return head | {"provenance": {}, "noise": {"rho_between_targets": 0.95}, "rows": rows}


def read_nano(tmp_path: Path, document: Any) -> Table:
    path = tmp_path / "nano.json"
    path.write_text(json.dumps(document))
    return nano.read(tables.source("nano-gpt2"), path)


def nano_table(n: int = 40) -> Table:
    space, rng = spaces.NANO_GPT2, random.Random(4)
    rows = [(str(i), space.sample(rng), float(i)) for i in range(n)]
    return make_table("made-up", space, rows, "t", "none", {"cost": list(range(n))})


def test_flexibert_rows_become_architectures(tmp_path: Path) -> None:
    write_flexibert(tmp_path, [flexibert_record(0), flexibert_record(7)])
    table = tables.load("flexibert", tmp_path)
    assert table.ids == ("0", "7")
    assert table.targets.tolist() == [60.0, 67.0]
    assert [layer.operation for layer in table.archs[0].layers] == ["dsc9", "dft"]
    assert table.extra["rte"].tolist() == [60.0, 67.0]


def test_transformer_xl_lists_end_at_the_number_of_layers(tmp_path: Path) -> None:
    config = transformer_xl_config() | {"cutoffs": [19997, 39997, 199997, 267736]}
    write_gpt2(tmp_path, config, "TransXL")
    table = tables.load("transformer-xl", tmp_path)
    assert table.space.name == "transformer-xl"
    assert table.targets.tolist() == [-30.0, -40.5]
    assert (table.archs[0].n_head, table.archs[0].d_inner) == ((2,) * 5, (600,) * 5)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mem_len": 0}, "mem_len = 0, expected 192 in space transformer-xl"),
        ({"tgt_len": 64}, "tgt_len = 64, expected 192"),
        ({"pre_lnorm": True}, "pre_lnorm = True, expected False"),
        ({"attn_type": 2}, "attn_type = 2, expected 0"),
        ({"n_token": 50264}, "n_token = 50264, expected 267736"),
    ],
)
def test_a_wrong_transformer_xl_configuration_is_named(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    write_gpt2(tmp_path, transformer_xl_config() | change, "TransXL")
    with pytest.raises(TableError, match=message):
        tables.load("transformer-xl", tmp_path)


def test_openlm_rows_are_architectures_with_the_loss_of_their_best_run(tmp_path: Path) -> None:
    write_openlm(tmp_path, OPENLM_RUNS)
    table = tables.load("openlm", tmp_path)
    assert table.ids == ("d=96_l=4_h=4", "d=488_l=8_h=12")
    assert table.archs == (OpenLmArch(96, 4, 4), OpenLmArch(488, 8, 12))
    assert table.targets.tolist() == [-4.25, -3.5]
    columns = {name: column.tolist() for name, column in table.extra.items()}
    assert columns == {"runs": [3, 1], "batch": [8, 64], "warmup": [400, 200]}
    assert openlm.count(tmp_path / "openlm" / "grid.json") == 2


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([], "expected names of runs with their losses"),
        ({}, "expected names of runs with their losses"),
        ({"d=96_l=4_h=4": 4.5}, "'d=96_l=4_h=4' is not the name of a run"),
        ({"d=96_l=4_h=4-8-0.003-0.033-16-1000-100-3e-05": 4.5}, "is not the name of a run"),
        ({"d=96_l=4_h=5-8-0.003-0.033-8-1000-100-3e-05": 4.5}, "heads = 5 is outside space openlm"),
        ({"d=96_l=4_h=4-8-0.003-0.033-8-1000-100-3e-05": "4"}, "loss = '4', expected a number"),
        ({"d=96_l=4_h=4-8-0.003-0.033-8-1000-100-3e-05": float("nan")}, "expected a finite number"),
    ],
)
def test_a_wrong_openlm_file_is_named(tmp_path: Path, runs: Any, message: str) -> None:
    path = write_openlm(tmp_path, runs)
    with pytest.raises(TableError, match=message) as caught:
        tables.load("openlm", tmp_path)
    assert str(caught.value).startswith(str(path))


def test_gpt2_rows_become_architectures_and_perplexity_is_negated(tmp_path: Path) -> None:
    write_gpt2(tmp_path, gpt2_config())
    table = tables.load("gpt2-wt103", tmp_path)
    assert table.ids == ("config_0_j1", "config_3_j10")
    assert table.targets.tolist() == [-30.0, -40.5]
    assert table.archs[0].d_inner == (600, 601)


def test_nano_rows_become_architectures(tmp_path: Path) -> None:
    document = nano_document()
    table = read_nano(tmp_path, document)
    assert len(table) == 12
    assert table.targets[3] == -5.0
    assert table.space.to_json(table.archs[5]) == document["rows"][5]["arch"]
    assert table.extra["seconds"].tolist() == [3.0] * 12


def test_describe_counts_what_is_present_and_states_what_is_not(tmp_path: Path) -> None:
    write_flexibert(tmp_path, [flexibert_record(i) for i in range(3)])
    found = {entry.name: entry for entry in tables.describe(tmp_path)}
    assert list(found) == tables.names()
    assert (found["flexibert"].present, found["flexibert"].n) == (True, 3)
    assert (found["gpt2-wt103"].present, found["gpt2-wt103"].n) == (False, 200)


def test_describe_survives_a_broken_table(tmp_path: Path) -> None:
    path = write_flexibert(tmp_path, [flexibert_record(0)])
    path.write_text(path.read_text()[:100])
    found = {entry.name: entry for entry in tables.describe(tmp_path)}
    assert (found["flexibert"].present, found["flexibert"].n) == (False, 500)


def test_an_unknown_table_is_answered_with_the_nearest() -> None:
    with pytest.raises(
        UnknownNameError, match="unknown table 'gpt2-wt3'; did you mean 'gpt2-wt103'"
    ):
        tables.load("gpt2-wt3")


def test_a_missing_table_prints_the_fetch_command(tmp_path: Path) -> None:
    with pytest.raises(TableError, match=f"lpzero tables fetch gpt2-wt103 --data {tmp_path}$"):
        tables.load("gpt2-wt103", tmp_path)


def test_no_data_root_prints_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LPZERO_DATA", raising=False)
    with pytest.raises(TableError, match=r"set LPZERO_DATA .* or give --data .* fetch flexibert$"):
        tables.load("flexibert")


def test_truncated_json_names_the_file_and_the_place(tmp_path: Path) -> None:
    path = write_flexibert(tmp_path, [flexibert_record(0)])
    path.write_text(path.read_text()[:100])
    with pytest.raises(TableError, match=rf"^{path} has broken or truncated JSON at line 1 column"):
        tables.load("flexibert", tmp_path)


def set_hidden(record: dict[str, Any], value: Any) -> None:
    record["hparams"]["model_hparam_overrides"]["hidden_size"] = value


def first_layer(record: dict[str, Any]) -> dict[str, Any]:
    layers = record["hparams"]["model_hparam_overrides"]["nas_config"]["encoder_layers"]
    layer: dict[str, Any] = layers[0]
    return layer


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda r: r["scores"].pop("glue"), "row 1: the field scores.glue is missing"),
        (lambda r: r["scores"].update(glue="high"), "scores.glue = 'high', expected a number"),
        (lambda r: r["scores"].update(glue=float("nan")), "scores.glue = nan, expected a finite"),
        (lambda r: r.pop("id"), "row 1: the field id is missing"),
        (lambda r: set_hidden(r, 512), "row 1: hidden = 512 is outside space flexibert"),
        (lambda r: set_hidden(r, True), "hidden_size = True, expected an integer"),
        (lambda r: first_layer(r).update(operation_parameter=7), "operation DSC 7 is unknown"),
        (lambda r: first_layer(r).update(operation_parameter=[9]), "operation DSC .* is unknown"),
        (lambda r: first_layer(r).pop("num_feed_forward"), "layer 0: the field num_feed_forward"),
        (lambda r: first_layer(r).update(num_operation_heads=3), r"layers\[0\].heads = 3 is outs"),
    ],
)
def test_a_broken_flexibert_row_is_named(
    tmp_path: Path, damage: Callable[[dict[str, Any]], Any], message: str
) -> None:
    records = [flexibert_record(0), flexibert_record(1)]
    damage(records[1])
    path = write_flexibert(tmp_path, records)
    with pytest.raises(TableError, match=message) as caught:
        tables.load("flexibert", tmp_path)
    assert str(caught.value).startswith(f"{path}: row 1")
    assert f"lpzero tables fetch flexibert --data {tmp_path} --force" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", [{}, [], "text", None])
def test_another_json_value_is_refused(tmp_path: Path, content: Any) -> None:
    write_flexibert(tmp_path, content)
    with pytest.raises(TableError, match="expected a list of architectures"):
        tables.load("flexibert", tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"d_model": 100}, "d_model = 100 is outside space gpt2"),
        ({"d_inner": [600, 9000]}, r"d_inner\[1\] = 9000 is outside space gpt2"),
        ({"n_head": [2, 3]}, r"n_head\[1\] = 3 is outside space gpt2"),
        ({"n_head": 2}, "n_head = 2, expected a list"),
        ({"n_layer": 3}, "n_layer = 3, expected 1 to 2, the length of n_head"),
        ({"n_layer": 0}, "n_layer = 0, expected 1 to 2"),
        ({"tgt_len": 32}, "tgt_len = 32, expected 192"),
        ({"n_token": 1000}, "n_token = 1000, expected 50264"),
        ({"cutoffs": [59997, 50264]}, r"cutoffs below n_token = \(\), expected \(19997, 39997\)"),
        ({"cutoffs": ["many"]}, "cutoffs = .*, expected a list of integers"),
        ({"d_embed": None}, "d_embed = None, expected an integer"),
    ],
)
def test_a_wrong_gpt2_configuration_is_named(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    folder = write_gpt2(tmp_path, gpt2_config() | change)
    with pytest.raises(TableError, match=message) as caught:
        tables.load("gpt2-wt103", tmp_path)
    assert str(caught.value).startswith(f"{folder}/config_0/j1/model_config.yaml: ")


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"config_9_j9": {"valid_ppl": 3.0}}, "config_9/j9/model_config.yaml: the file is missing"),
        ({"config_0_j1": {"test_ppl": 3.0}}, "config_0_j1: the field valid_ppl is missing"),
        ({"config_0_j1": {"valid_ppl": 0.5}}, "config_0_j1: perplexity 0.5, expected at least 1"),
        ({"../escape": {"valid_ppl": 3.0}}, "'../escape' is not the name of an architecture"),
    ],
)
def test_a_wrong_gpt2_summary_is_named(tmp_path: Path, row: dict[str, Any], message: str) -> None:
    write_gpt2(tmp_path, gpt2_config(), **row)
    with pytest.raises(TableError, match=message):
        tables.load("gpt2-wt103", tmp_path)


def test_broken_yaml_names_the_file_and_the_place(tmp_path: Path) -> None:
    folder = write_gpt2(tmp_path, gpt2_config())
    (folder / "ppl_summary.yaml").write_text("a: [1, 2\nb: }")
    with pytest.raises(TableError, match=r"ppl_summary.yaml: broken YAML at line 2 column"):
        tables.load("gpt2-wt103", tmp_path)


def test_yaml_cannot_make_python_objects(tmp_path: Path) -> None:
    folder = write_gpt2(tmp_path, gpt2_config())
    (folder / "ppl_summary.yaml").write_text("a: !!python/object/apply:os.getcwd []")
    with pytest.raises(TableError, match="broken YAML"):
        tables.load("gpt2-wt103", tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": 2}, "schema = 2, expected 1"),
        ({"name": "nano-flexibert"}, "name = 'nano-flexibert', expected 'nano-gpt2'"),
        ({"rows": []}, "rows is empty"),
        ({"rows": [{"target": 1.0, "runs": []}]}, "row 0: the field arch is missing"),
    ],
)
def test_a_wrong_nano_file_is_named(tmp_path: Path, change: Any, message: str) -> None:
    with pytest.raises(TableError, match=message):
        read_nano(tmp_path, nano_document() | change)


def test_groups_label_equal_depths_widths_and_columns() -> None:
    table = nano_table()
    depths = [table.space.depth(arch) for arch in table.archs]
    widths = [table.space.width(arch) for arch in table.archs]
    pairs = list(zip(depths, widths, strict=True))
    costs = [index // 7 for index in range(40)]
    table = replace(table, extra={"cost": np.array(costs) * 1.5})
    for kind, keys in (
        ("depth", depths),
        ("width", widths),
        ("depth-width", pairs),
        ("cost", costs),
    ):
        labels = table.groups(kind)
        assert labels.shape == (40,)
        assert set(labels) == set(range(len(set(keys))))
        assert len(set(zip(labels.tolist(), keys, strict=True))) == len(set(keys))


def test_an_unknown_grouping_is_an_error() -> None:
    with pytest.raises(UnknownNameError, match="unknown grouping 'height'"):
        nano_table().groups("height")


def test_the_digest_follows_the_content_alone() -> None:
    table = nano_table()
    rows = list(zip(table.ids, table.archs, table.targets.tolist(), strict=True))
    same = make_table("other", table.space, rows, "u", "v")
    moved = make_table("made-up", table.space, rows[::-1], "t", "none")
    retold = make_table("made-up", table.space, [*rows[:-1], (*rows[-1][:2], 0.5)], "t", "none")
    assert same.digest == table.digest
    assert len({table.digest, moved.digest, retold.digest}) == 3


def test_another_space_keeps_content_and_refuses_what_does_not_fit(tmp_path: Path) -> None:
    write_flexibert(tmp_path, [flexibert_record(0)])
    table = tables.load("flexibert", tmp_path)
    upstream = tables.load("flexibert", tmp_path, space="flexibert-upstream")
    assert upstream.digest == table.digest
    assert upstream.space is spaces.FLEXIBERT_UPSTREAM
    assert (table.space.width(table.archs[0]), upstream.space.width(table.archs[0])) == (128, 256)
    with pytest.raises(TableError, match="cannot be read in space gpt2: row 0"):
        table.in_space(spaces.GPT2)
    with pytest.raises(TableError, match="cannot be read in space nano-flexibert: row 0"):
        table.in_space(spaces.NANO_FLEXIBERT)


def test_targets_cannot_be_overwritten() -> None:
    with pytest.raises(ValueError, match="read-only"):
        nano_table().targets[0] = 1.0


def test_hidden_rows_have_no_target_left() -> None:
    table = nano_table()
    hidden = table.hide(np.array([0, 3]))
    assert np.flatnonzero(np.isnan(hidden.targets)).tolist() == [0, 3]
    assert np.flatnonzero(np.isnan(hidden.extra["cost"])).tolist() == [0, 3]
    assert hidden.digest == table.digest
    assert np.isfinite(table.targets).all()
