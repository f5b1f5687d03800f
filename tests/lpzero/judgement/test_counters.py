"""Counters: their values by hand, and their known correlations with the released tables."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

import spaces
from lpzero.judgement import counters
from lpzero.judgement.correlation import pairs_within, spearman, untied
from lpzero.proxies import get
from primitives.parser import parse
from spaces.errors import UnknownNameError
from spaces.gpt2.space import Gpt2Arch
from spaces.pit import PitArch
from spaces.tables import load
from spaces.tables.table import make_table

ARCH = Gpt2Arch(d_model=32, n_head=(2, 4), d_inner=(64, 32), d_embed=-1, div_val=1)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("depth", 2),
        ("depth-sqrt-width", 2 * math.sqrt(32)),
        ("attention-parameters", 2 * (4 * 32 * 32 + 4 * 32)),
        ("decoder-parameters", 2 * (4 * 32 * 32 + 4 * 32) + 65 * 96 + 2 * 32 + 4 * 32 * 2 + 2 * 32),
        ("parameters", spaces.NANO_GPT2.parameters(ARCH)),
        ("flops", spaces.NANO_GPT2.flops(ARCH)),
        ("projections", 6),
        ("heads", 6),
        ("head-width", 2 * 32 / 6),
        ("embedding-rank", 32),
    ],
)
def test_a_counter_counts(name: str, expected: float) -> None:
    table = make_table("one", spaces.NANO_GPT2, [("0", ARCH, 0.0)], "t", "none")
    assert counters.score(name, table).tolist() == [expected]


@pytest.mark.parametrize(("d_model", "d_embed"), [(256, 128), (64, 512)])
def test_the_rank_of_the_embedding_is_its_narrower_side(d_model: int, d_embed: int) -> None:
    arch = Gpt2Arch(d_model, n_head=(2,), d_inner=(600,), d_embed=d_embed, div_val=2)
    assert counters.embedding_rank(spaces.get("gpt2"), arch) == min(d_model, d_embed)


def test_sept_equals_exact_arithmetic() -> None:
    L, d, T = spaces.NANO_GPT2.depth(ARCH), spaces.NANO_GPT2.width(ARCH), 3
    inside = L * Fraction(1 - d ** (T + 1), 1 - d)
    expected = math.log(L * d) + math.log(float(inside))
    assert counters.sept(spaces.NANO_GPT2, ARCH, T) == pytest.approx(expected, rel=1e-12)
    assert math.isfinite(counters.sept(spaces.NANO_GPT2, ARCH, 100_000))


@pytest.mark.parametrize("widths", [(1,), (1, 1), (3, 1)])
def test_sept_of_width_1_is_the_sum_of_its_powers(widths: tuple[int, ...]) -> None:
    T = 5
    space: Any = SimpleNamespace(block_widths=lambda arch: widths)
    powers = sum(d**t for d in widths for t in range(T + 1))
    assert counters.sept(space, None, T) == pytest.approx(math.log(sum(widths) * powers), rel=1e-12)


def test_sept_takes_the_width_of_each_block() -> None:
    space, arch, T = spaces.get("pit"), PitArch(16, 4, (1, 4, 2), (2, 4, 8)), 3
    widths = [32] + [64] * 4 + [128] * 2
    inside = sum(Fraction(1 - d ** (T + 1), 1 - d) for d in widths)
    expected = math.log(sum(widths)) + math.log(float(inside))
    assert counters.sept(space, arch, T) == pytest.approx(expected, rel=1e-12)


def test_the_names_are_those_of_the_contract() -> None:
    assert counters.names() == [
        "parameters",
        "decoder-parameters",
        "attention-parameters",
        "depth",
        "depth-sqrt-width",
        "flops",
        "sept",
        "projections",
        "heads",
        "head-width",
        "embedding-rank",
    ]


def test_counters_of_heads_are_defined_where_there_is_attention() -> None:
    without = [name for name in counters.names() if name not in ("heads", "head-width")]
    assert counters.defined(spaces.NANO_GPT2) == counters.names()
    for name in ("nano-rnn", "bignas"):  # which count states as their heads, or none
        assert counters.defined(spaces.get(name)) == without
        assert not any(get(of).applies_to(spaces.get(name)) for of in ("heads", "head-width"))


def test_factors_of_products_vary_and_are_words_that_a_formula_can_name() -> None:
    rows = [(str(seed), spaces.NANO_GPT2.sample(Random(seed)), 0.0) for seed in range(5)]
    found = counters.factors(make_table("some", spaces.NANO_GPT2, rows, "t", "none"))
    assert {"parameters", "depth", "flops"} <= set(found)
    for name in found:
        assert parse(f"mul({name}, sum(heads))").columns == (name,)


def test_an_unknown_counter_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="'params'; did you mean 'parameters'"):
        counters.get("params")


@pytest.mark.parametrize(
    ("table", "name", "rho"),
    [
        ("flexibert", "depth", 0.834),
        ("flexibert", "depth-sqrt-width", 0.925),
        ("gpt2-wt103", "attention-parameters", 0.976),
        ("gpt2-wt103", "decoder-parameters", 0.967),
        ("gpt2-wt103", "parameters", 0.737),
        ("openlm", "parameters", 0.986),
        ("openlm", "depth", 0.378),
        ("openlm", "heads", 0.343),
        ("openlm", "head-width", 0.640),
        ("transformer-xl", "decoder-parameters", 0.974),
    ],
)
def test_sizes_alone_rank_the_released_tables(
    real_data: Path, table: str, name: str, rho: float
) -> None:
    loaded = load(table, real_data)
    assert round(spearman(counters.score(name, loaded), loaded.targets), 3) == rho


@pytest.mark.parametrize(("name", "rho"), [("depth-sqrt-width", 0.896), ("depth", 0.722)])
def test_sizes_with_few_values_rank_worse_once_ties_are_broken(
    real_data: Path, name: str, rho: float
) -> None:
    table = load("flexibert", real_data)
    scores = counters.score(name, table)
    assert round(untied(spearman(scores, table.targets), scores), 3) == rho


@pytest.mark.parametrize(
    ("name", "ordered"), [("parameters", 60), ("heads", 19), ("head-width", 101)]
)
def test_among_decoders_alike_in_depth_and_width_only_counters_of_heads_tell(
    real_data: Path, name: str, ordered: float
) -> None:
    table = load("openlm", real_data)
    found = pairs_within(counters.score(name, table), table.targets, table.groups("depth-width"))
    assert found is not None
    assert (found.n, found.share * found.n) == (120, pytest.approx(ordered))
