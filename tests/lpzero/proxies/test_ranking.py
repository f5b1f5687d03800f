"""Ranking: what a row shows, where its numbers come from, and what other seeds change."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spaces
from lpzero.arrays import FloatArray
from lpzero.judgement import counters
from lpzero.judgement.correlation import kendall_many, partial_spearman, spearman
from lpzero.proxies import Context, Measurements, Proxy, find, get, names
from lpzero.proxies.published import figures
from lpzero.proxies.ranking import Ranking, rank
from spaces.tables import load, split
from spaces.tables.table import Table, make_table

SPACE = spaces.get("nano-gpt2")
ARCHS = [SPACE.sample(random.Random(seed)) for seed in range(12)]


def small_table() -> Table:
    """Targets that follow depth, with a little of everything else."""
    rng = np.random.default_rng(0)
    targets = [SPACE.depth(arch) + rng.normal(0, 0.8) for arch in ARCHS]
    rows = [(str(i), arch, t) for i, (arch, t) in enumerate(zip(ARCHS, targets, strict=True))]
    return make_table("small", SPACE, rows, "made up", "none")


TABLE = small_table()


class Given(Proxy):
    """A proxy of these scores."""

    def __init__(self, name: str, scores: FloatArray) -> None:
        self.name, self.scores = name, scores

    def score(self, space: Any, archs: Any, measurements: Measurements) -> FloatArray:
        return self.scores


@pytest.mark.slow
def test_a_row_shows_what_a_result_must_show(tmp_path: Path) -> None:
    [row] = rank(TABLE, [get("snip")], Ranking(Context(folder=tmp_path)))
    scores = get("snip").score(SPACE, ARCHS, Measurements(Context(folder=tmp_path)))
    parameters = counters.score("parameters", TABLE)
    assert row["proxy"] == "snip"
    assert (row["n"], row["missing"], row["flaw"]) == (12, 0, None)
    assert row["rho"] == spearman(scores, TABLE.targets)
    assert row["tau"] == kendall_many(scores[None], TABLE.targets).values[0]
    assert row["rho_given_params"] == partial_spearman(scores, TABLE.targets, parameters)
    low, high = row["rho_ci"]
    assert low <= row["rho"] <= high
    test = split(TABLE, 0).open_test()
    assert row["test"]["rho"] == spearman(scores[test], TABLE.targets[test])
    assert row["train"]["n"] + row["valid"]["n"] + row["test"]["n"] == 12
    assert row["seconds"] > 0
    assert row["published"] == []


def test_the_best_comes_first_and_direction_is_never_flipped(tmp_path: Path) -> None:
    up, down = Given("up", TABLE.targets), Given("down", -TABLE.targets)
    rows = rank(TABLE, [down, get("depth"), up], Ranking(Context(folder=tmp_path)))
    assert [row["proxy"] for row in rows] == ["up", "depth", "down"]
    assert (rows[0]["rho"], rows[-1]["rho"]) == (1, -1)


def test_missing_scores_are_counted_and_left_out(tmp_path: Path) -> None:
    holes, none = TABLE.targets.copy(), np.full(12, np.nan)
    holes[[1, 5]] = np.nan
    given = [Given("holes", holes), Given("none", none), Given("flat", np.ones(12))]
    rows = {row["proxy"]: row for row in rank(TABLE, given, Ranking(Context(folder=tmp_path)))}
    assert (rows["holes"]["n"], rows["holes"]["missing"], rows["holes"]["rho"]) == (10, 2, 1)
    assert (rows["none"]["flaw"], rows["none"]["rho"]) == ("non-finite", 0)
    assert (rows["flat"]["flaw"], rows["flat"]["rho"]) == ("constant", 0)


@pytest.mark.slow
def test_seeds_and_batches_are_compared(tmp_path: Path) -> None:
    proxies = [get("grad-norm"), get("depth"), find("sum(fro(G))")]
    ranking = Ranking(Context(folder=tmp_path), seeds=3, batches=2)
    rows = {row["proxy"]: row for row in rank(TABLE, proxies, ranking)}
    assert set(rows) == {"grad-norm", "depth", "sum(fro(G))"}
    for row in rows.values():
        assert (len(row["rho_seeds"]), len(row["rho_batches"])) == (3, 2)
        assert row["rho_seeds"][0] == row["rho_batches"][0] == pytest.approx(row["rho"])
        assert row["rho_seeds_mean"] == pytest.approx(np.mean(row["rho_seeds"]))
    assert rows["depth"]["rho_seeds_std"] == 0
    other = Measurements(Context(seed=2, folder=tmp_path))
    scores = find("sum(fro(G))").score(SPACE, ARCHS, other)
    assert rows["sum(fro(G))"]["rho_seeds"][2] == spearman(scores, TABLE.targets)


@pytest.mark.slow
def test_all_measures_of_a_network_are_computed_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = []
    build = type(SPACE).build

    def counted(self: Any, arch: Any, seed: int) -> Any:
        built.append(arch)
        return build(self, arch, seed)

    monkeypatch.setattr(type(SPACE), "build", counted)
    proxies = [get(name) for name in ("snip", "snip-normalised", "ntsr", "meco")]
    rank(TABLE, proxies, Ranking(Context(folder=tmp_path)))
    assert len(built) == len(set(ARCHS))


def test_papers_figures_stand_beside_known_proxies() -> None:
    assert figures("gpt2-wt103", "snip") == [
        ("LPZero Table 4", 0.970, 0.858),
        ("ETAS Table 4", 0.57, 0.40),
    ]
    assert figures("nano-gpt2", "snip") == []
    from lpzero.proxies import published

    for found in published._PUBLISHED.values():
        assert set().union(*found.values()) <= set(names())


def test_measures_of_combinations() -> None:
    assert [m.name for m in find("rank-sum(dss++, snip, depth)").measures] == [
        "dss-diversity",
        "dss-saliency",
        "snip",
    ]


def test_counters_on_the_released_tables(real_data: Path, tmp_path: Path) -> None:
    gpt2 = load("gpt2-wt103", real_data)
    proxies = [get(name) for name in ("decoder-parameters", "sept")]
    rows = {r["proxy"]: r for r in rank(gpt2, proxies, Ranking(Context(folder=tmp_path)))}
    assert rows["decoder-parameters"]["rho"] == pytest.approx(0.967, abs=0.001)
    assert rows["sept"]["rho"] == pytest.approx(0.957, abs=0.01)
    upstream = load("flexibert", real_data, "flexibert-upstream")
    [row] = rank(upstream, [get("parameters")], Ranking(Context(folder=tmp_path)))
    assert row["rho"] == pytest.approx(0.652, abs=0.001)


@pytest.mark.slow
def test_formulas_are_compared_with_their_scores_on_whole_tensors(tmp_path: Path) -> None:
    measurements = Measurements(Context(folder=tmp_path))
    cut: Any = find("sum(l1(zscore(A)))")
    rows = rank(TABLE, [cut, get("depth")], Ranking(measurements.context, exact=True))
    found = {row["proxy"]: row for row in rows}
    assert "alike" not in found["depth"]
    on_sketches, on_tensors = (p.score(SPACE, ARCHS, measurements) for p in (cut, cut.exact()))
    assert list(on_sketches) != list(on_tensors)
    row = found[cut.name]
    assert row["alike"] == pytest.approx(spearman(on_sketches, on_tensors))
    assert row["rho_exact"] == pytest.approx(spearman(on_tensors, TABLE.targets))


def test_brief_rows_show_the_numbers_of_whole_ones(tmp_path: Path) -> None:
    gappy = np.where(np.arange(len(TABLE)) == 3, np.nan, np.arange(float(len(TABLE))))
    proxies = [get("depth"), get("parameters"), Given("gappy", gappy)]
    whole = Ranking(Context(folder=tmp_path))
    rows = rank(TABLE, proxies, whole)
    brief = rank(TABLE, proxies, replace(whole, is_brief=True))
    assert len(rows) == len(brief) == 3
    for row, short in zip(rows, brief, strict=True):
        for part in ("train", "valid", "test"):
            assert short.pop(part) == {"rho": row.pop(part)["rho"]}
        assert short == row
