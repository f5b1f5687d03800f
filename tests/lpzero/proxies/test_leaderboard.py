"""Cells of a leaderboard: what a row without a score is told about, and what only counts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.proxies import Context, Measurements, Needs, get, names
from lpzero.proxies.base import Measure, NetworkProxy
from lpzero.proxies.leaderboard import Board, Entry, stages, why_not
from lpzero.proxies.network import Network
from lpzero.proxies.ranking import Ranking, TableColumn
from spaces.tables import load

TABLE = load("nano-gpt2").only(range(0, 40, 4))
N = len(TABLE)
COUNT = np.array([TABLE.space.parameters(arch) for arch in TABLE.archs], dtype=np.float64)


def column(scores: FloatArray) -> Entry:
    return Entry(TableColumn("made-up", TABLE.archs, scores), "made up")


def measured(name: str, function: Any) -> Entry:
    return Entry(NetworkProxy(name, Measure(name, function)), "made up")


def board(folder: Path) -> Board:
    context = Context(folder=folder)
    return Board(TABLE, Ranking(context, is_brief=True), Measurements(context))


def test_a_proxy_that_says_what_the_count_says_only_counts(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    made = board(tmp_path)
    same = made.cell(column(COUNT**2), COUNT)
    assert (same["rho_given_count"], same["counts_only"]) == (0.0, True)
    noise = rng.permutation(N).astype(float)
    better = made.cell(column(TABLE.targets), noise)
    assert better["rho_given_count"] > 0.9
    assert not better["counts_only"]
    drawn = np.random.default_rng(1).permutation(N).astype(float)
    unrelated = made.cell(column(drawn), COUNT)
    low, high = unrelated["rho_given_count_ci"]
    assert low <= 0 < high
    assert unrelated["counts_only"]
    # The other way round it adds nothing that can be used: its direction is declared.
    assert made.cell(column(-TABLE.targets), noise)["counts_only"]


def test_rows_without_a_finite_score_are_counted(tmp_path: Path) -> None:
    scores = TABLE.targets.copy()
    scores[[1, 3]] = np.nan
    cell = board(tmp_path).cell(column(scores), COUNT)
    assert (cell["state"], cell["n"], cell["left"], cell["rho"]) == ("partial", N - 2, 0, 1)
    assert cell["failures"] == {"its score is not finite": 2}
    cell = board(tmp_path).cell(column(np.full(N, np.nan)), COUNT)
    assert (cell["state"], cell["failures"]) == ("refused", {"its score is not finite": N})


@pytest.mark.slow
def test_one_that_fails_takes_no_other_with_it(tmp_path: Path) -> None:
    def fails(network: Network) -> float:
        if len(network.blocks) < 4:
            raise MemoryError("no room")
        return 1.0 + len(network.blocks)

    def refuses(network: Network) -> float:
        raise InputError("it is not\nfor these")

    some = [measured("fails", fails), measured("refuses", refuses)]
    some.append(measured("deep", lambda network: float(len(network.blocks))))
    made = board(tmp_path)
    made.measure(some)
    failing, refused, whole = (made.cell(entry, COUNT) for entry in some)
    shallow = sum(TABLE.space.depth(arch) < 4 for arch in TABLE.archs)
    assert 0 < shallow < N
    assert failing["failures"] == {"MemoryError: no room": shallow}
    assert (failing["state"], failing["n"]) == ("partial", N - shallow)
    assert (refused["state"], refused["failures"]) == ("refused", {"it is not for these": N})
    assert (whole["state"], whole["n"]) == ("complete", N)
    assert whole["rho"] == made.cell(Entry(get("depth"), "counters"), COUNT)["rho"]


def test_the_cheapest_come_first() -> None:
    order = [[entry.name for entry in of] for of in stages(Entry(get(n), "") for n in names())]
    place = {name: stage for stage, of in enumerate(order) for name in of}
    assert place["depth"] == place["engine-decoder"] == 0
    cheap = [place[n] for n in ("depth", "lpzero-gpt2", "meco", "snip", "grasp", "snip", "v-pca")]
    assert cheap == [0, 1, 2, 3, 4, 3, len(order) - 1]
    assert place["dss-released"] == len(order) - 2
    assert all(get(name).needs == Needs.NOTHING for name in order[0])


def test_a_refusal_names_what_the_networks_lack() -> None:
    space = load("nano-rnn").space
    assert why_not(get("softmax-confidence"), space) == "the networks of nano-rnn have no S"
    assert why_not(get("snip"), space) is None
