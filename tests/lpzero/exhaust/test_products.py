"""Every product of two terms: complete, resumable, the same for any number of jobs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lpzero.errors import InputError
from lpzero.exhaust import ExhaustSettings, Query, exhaust, report
from lpzero.exhaust.products import PairResults, PairShard
from lpzero.exhaust.report import floors
from lpzero.judgement.correlation import spearman
from lpzero.judgement.ranks import rank_targets
from lpzero.parallel import Workers
from lpzero.runs.config import read_config
from lpzero.runs.run import open_run
from lpzero.scores.products import Beam, PairScreen, search
from spaces.tables import split
from tests.lpzero.small_campaign import sketches, table

pytestmark = pytest.mark.slow

N_ROWS = 24


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[PairResults, object]:
    folder = tmp_path_factory.mktemp("pairs")
    made = table()
    found = exhaust(made, sketches(len(made)), split(made, 0), folder, ExhaustSettings(terms=2))
    assert isinstance(found[0], PairResults)
    return found[0], found[1]


def number_of_pairs(n_terms: int) -> int:
    """x y and x / y of each pair, x sqrt(y) and x / sqrt(y) of each ordered one."""
    return 3 * n_terms * (n_terms - 1)


def test_every_product_of_two_is_counted(done: tuple[PairResults, object]) -> None:
    results = done[0]
    assert results.counts[0] == number_of_pairs(len(results.terms))
    assert results.missing() == []


def test_a_shard_knows_how_many_products_it_has(done: tuple[PairResults, object]) -> None:
    results = done[0]
    n_terms = len(results.terms)
    told = [shard.n_products(n_terms) for shard in results.shards]
    counted = [int(results.files.read(i)["counts"][0]) for i in range(len(told))]  # type: ignore[index]
    assert told == counted
    assert len(set(told)) > 2
    # Shards of unequal length, and the last of each exponent is the shortest.
    cut_in_three = [PairShard(e, a, b) for e in range(4) for a, b in ((0, 3), (3, 6), (6, 7))]
    assert sum(shard.n_products(7) for shard in cut_in_three) == number_of_pairs(7)
    assert [shard.n_products(7) for shard in cut_in_three[:3]] == [15, 6, 0]


def test_the_best_is_that_of_a_plain_loop_over_a_part(done: tuple[PairResults, object]) -> None:
    results, made = done[0], table()
    train = split(made, 0).train
    best = results.best(Query(top=5))
    assert [entry.value for entry in best] == sorted((e.value for e in best), reverse=True)
    logs = results.terms.logs
    rng = np.random.default_rng(0)
    for first, second in rng.integers(0, len(logs), (300, 2)):
        if first != second:
            for exponent in (1, -1, 0.5, -0.5):
                score = logs[first] + exponent * logs[second]
                rho = abs(spearman(score[train], made.targets[train]))
                assert rho <= best[0].value + 1e-12


def test_a_beam_of_two_is_never_above_it(done: tuple[PairResults, object]) -> None:
    results, made = done[0], table()
    train = split(made, 0).train
    ranks = rank_targets(made.targets[train])
    found = search(results.terms.logs[:, train], ranks, Beam(factors=2))
    assert found[0].value <= results.best(Query(top=1))[0].value + 1e-12


@pytest.mark.slow
def test_jobs_and_a_lost_shard_change_no_byte(
    done: tuple[PairResults, object], tmp_path: Path
) -> None:
    made = table()
    again = tmp_path / "again"
    asked = ExhaustSettings(terms=2, workers=Workers(2))
    exhaust(made, sketches(len(made)), split(made, 0), again, asked)
    (again / "shards" / "00001.npz").unlink()
    exhaust(made, sketches(len(made)), split(made, 0), again, asked)
    for path in sorted((done[0].files.folder / "shards").iterdir()):
        assert path.read_bytes() == (again / "shards" / path.name).read_bytes()


def test_the_run_is_read_without_its_sketches(done: tuple[PairResults, object]) -> None:
    results, made = done[0], table()
    parts = split(made, 0)
    answer = report(made, parts, done, ExhaustSettings(terms=2))  # type: ignore[arg-type]
    assert answer["evaluated"] == results.counts[0]
    assert read_config(results.files.folder) is not None
    run = open_run(results.files.folder)
    pairs = list(run.pairs())  # type: ignore[attr-defined]
    assert pairs


def test_products_of_longer_chains_are_screened(tmp_path: Path) -> None:
    made, asked = table(), ExhaustSettings(terms=2, unaries=2, workers=Workers(2))
    parts = split(made, 0)
    found = exhaust(made, sketches(len(made)), parts, tmp_path, asked)
    results = found[0]
    assert isinstance(results, PairResults)
    assert results.counts[0] == number_of_pairs(len(results.terms)) > 50 * results.ranked
    best = results.best(Query(top=5))
    logs, ranks = results.terms.logs[:, parts.train], rank_targets(made.targets[parts.train])
    assert best[0].value >= PairScreen.of(logs).best(ranks)[0].value  # of fewer ranked exactly
    assert search(logs, ranks, Beam(factors=2))[0].value <= best[0].value + 1e-12
    assert open_run(tmp_path).counts["evaluated"] == results.counts[0]  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="screened by rho"):
        results.best(Query(by="rho_within"))
    answer = report(made, parts, found, asked, repeated=sketches(len(made)))
    assert answer["stability"] == {"table": "made-up", "n": 1, "median": 1.0, "least": 1.0}
    assert answer["ranked"] == results.ranked


def test_screening_loses_none_of_the_best(done: tuple[PairResults, object]) -> None:
    results, made = done[0], table()
    train = split(made, 0).train
    ranks = rank_targets(made.targets[train])
    found = PairScreen.of(results.terms.logs[:, train]).best(ranks)
    assert found[0].value == pytest.approx(results.best(Query(top=1))[0].value)


def test_a_run_needs_the_memory_that_its_products_take(tmp_path: Path) -> None:
    made, asked = table(), ExhaustSettings(terms=2, unaries=2, memory=1 << 26)
    with pytest.raises(InputError, match=r"needs at least 0\.\d+ GB: give --memory more"):
        exhaust(made, sketches(len(made)), split(made, 0), tmp_path, asked)


def test_the_floor_of_all_products_of_two(done: tuple[PairResults, object]) -> None:
    made, parts = table(), split(table(), 0)
    assert floors(made, parts, done[0], 0, ExhaustSettings(terms=2)) == []
    [found] = floors(made, parts, done[0], 20, ExhaustSettings(terms=2))
    assert (found["table"], found["permutations"]) == ("made-up", 20)
    assert 0.5 < found["fit"] < done[0].best(Query(top=1))[0].value
    assert found["test_ci"][0] < 0 < found["test_ci"][1]


def test_questions_that_shards_cannot_answer_are_refused(
    done: tuple[PairResults, object],
) -> None:
    with pytest.raises(InputError, match="with --terms 2 only --by and --top"):
        done[0].best(Query(using="W"))
