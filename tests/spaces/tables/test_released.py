"""The released tables themselves: sizes, counts and correlations known from the files."""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml

import spaces
from lpzero.downloads import fetch
from spaces import tables
from spaces.base import Space
from spaces.flexibert import FlexiBertSpace
from spaces.flexibert.model import FlexiBert
from spaces.gpt2 import Gpt2Space
from spaces.gpt2.model import Gpt2
from spaces.openlm import OpenLmSpace
from spaces.openlm.model import OpenLm
from spaces.tables.openlm import runs_by_architecture
from spaces.transformer_xl import TransformerXlSpace
from spaces.transformer_xl.model import TransformerXl


def laid_out_parameters(space: Space[Any], arch: Any) -> int:
    with torch.device("meta"):
        if isinstance(space, FlexiBertSpace):
            model: torch.nn.Module = FlexiBert(space, space.as_built(arch))
        elif isinstance(space, OpenLmSpace):
            model = OpenLm(space, arch)
        elif isinstance(space, TransformerXlSpace):
            model = TransformerXl(space, arch)
        else:
            assert isinstance(space, Gpt2Space)
            model = Gpt2(space, arch)
    return sum(p.numel() for p in model.parameters())


VISION = [name for name in tables.names() if name.startswith(("autoformer-", "pit-"))]


@cache
def described(folder: Path) -> dict[str, Any]:
    """What is said of each table in the folder."""
    return {entry.name: entry for entry in tables.describe(folder)}


@pytest.mark.parametrize(
    ("name", "n"),
    [
        ("flexibert", 500),
        ("gpt2-wt103", 200),
        ("gpt2-lm1b-corei7-pareto", 38),
        ("openlm", 130),
        ("transformer-xl", 200),
    ]
    + [(name, 100) for name in VISION],
)
def test_the_tables_are_whole(real_data: Path, name: str, n: int) -> None:
    assert len(tables.load(name, real_data)) == n
    found = described(real_data)
    assert (found[name].n, found[name].present) == (n, True)


@pytest.mark.parametrize(
    "name",
    [
        "flexibert",
        "gpt2-wt103",
        "gpt2-lm1b-corei7-pareto",
        "openlm",
        "transformer-xl",
        "autoformer-c100-kd",
        "pit-c100-kd",
    ],
)
def test_the_files_have_the_registered_checksums(real_data: Path, name: str) -> None:
    assert not fetch(name, real_data, files="http://nowhere", archives="http://nowhere").downloaded


@pytest.mark.parametrize(
    "space", [spaces.FLEXIBERT, spaces.FLEXIBERT_UPSTREAM], ids=lambda s: s.name
)
def test_every_fourth_flexibert_count_is_the_models(real_data: Path, space: FlexiBertSpace) -> None:
    table = tables.load("flexibert", real_data, space.name)
    wrong = [
        row
        for row, arch in list(zip(table.ids, table.archs, strict=True))[::4]
        if space.parameters(arch) != laid_out_parameters(space, arch)
    ]
    assert wrong == []


@pytest.mark.parametrize("name", ["gpt2-wt103", "gpt2-lm1b-corei7-pareto", "transformer-xl"])
def test_every_lts_count_is_the_released_one_and_the_models(real_data: Path, name: str) -> None:
    table = tables.load(name, real_data)
    assert isinstance(table.space, Gpt2Space)
    path = real_data / tables.source(name).path / "params_summary.yaml"
    released = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    for row, arch in zip(table.ids, table.archs, strict=True):
        assert table.space.parameter_fields(arch) == released[row]
    for row, arch in list(zip(table.ids, table.archs, strict=True))[::4]:
        assert released[row]["total"] == laid_out_parameters(table.space, arch)


def test_openlm_trained_on_twenty_tokens_for_each_of_our_parameters(real_data: Path) -> None:
    table = tables.load("openlm", real_data)
    runs = runs_by_architecture(real_data / tables.source("openlm").path)
    trained = [
        (run.tokens, table.space.parameters(arch))
        for row, arch in zip(table.ids, table.archs, strict=True)
        for run in runs[row].values()
    ]
    assert len(trained) == 435
    assert all(tokens == 20 * parameters for tokens, parameters in trained)
    for arch in table.archs[::13]:
        assert table.space.parameters(arch) == laid_out_parameters(table.space, arch)


def test_of_openlm_decoders_alike_in_depth_and_width_fewer_heads_train_better(
    real_data: Path,
) -> None:
    table = tables.load("openlm", real_data)
    groups, rows = table.groups("depth-width"), range(len(table))
    pairs = [
        (a, b)
        for a, b in itertools.combinations(rows, 2)
        if groups[a] == groups[b] and table.archs[a].heads != table.archs[b].heads
    ]
    heads, loss = [arch.heads for arch in table.archs], table.targets
    better = sum((heads[a] < heads[b]) == (loss[a] > loss[b]) for a, b in pairs)
    assert (better, len(pairs)) == (101, 120)
    assert sorted(np.bincount(table.groups("batch"))) == [14, 19, 97]


def test_the_pareto_folder_has_latency_and_memory(real_data: Path) -> None:
    table = tables.load("gpt2-lm1b-corei7-pareto", real_data)
    assert set(table.extra) == {"latency", "memory"}
    assert all((column > 0).all() and len(column) == 38 for column in table.extra.values())


def test_the_benchmark_repeats_nine_architectures_and_splits_keep_them_together(
    real_data: Path,
) -> None:
    table = tables.load("flexibert", real_data)
    assert len(set(table.archs)) == 491
    for seed in range(5):
        drawn = tables.split(table, seed)
        train, valid, test = (
            {table.archs[i] for i in rows} for rows in (drawn.train, drawn.valid, drawn.open_test())
        )
        assert len(train) + len(valid) + len(test) == 491
        assert (len(drawn.train), len(drawn.valid), len(drawn.open_test())) == (250, 100, 150)


def test_there_are_thirteen_vision_tables() -> None:
    assert len(VISION) == 13
    assert "pit-imagenet" not in VISION


@pytest.mark.parametrize("name", ["autoformer-c100-kd", "pit-c100-kd"])
def test_no_vision_architecture_comes_twice_and_all_are_inside_the_space(
    real_data: Path, name: str
) -> None:
    table = tables.load(name, real_data)
    assert len(set(table.archs)) == 100
    for arch in table.archs:
        table.space.validate(arch)


def test_pit_architectures_have_twelve_to_fourteen_blocks(real_data: Path) -> None:
    table = tables.load("pit-c100-kd", real_data)
    assert {sum(arch.depths) for arch in table.archs} == {12, 13, 14}
    assert {arch.heads for arch in table.archs} == set(spaces.PIT.head_choices())


@pytest.mark.parametrize("family", ["autoformer", "pit"])
def test_every_column_of_a_file_is_a_table_and_the_extra_of_its_sisters(
    real_data: Path, family: str
) -> None:
    sisters = {n: tables.load(n, real_data) for n in VISION if n.startswith(family)}
    pairs = list(itertools.permutations(sisters, 2))
    assert pairs
    for name, other in pairs:
        column = sisters[other].extra[name.split("-", 1)[1]]
        assert (column == sisters[name].targets).all()
