"""The loop `budget`: its step against a naive one, its start, batches, failed trainings."""

from __future__ import annotations

import itertools
import math
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import multivariate_t, norm, rankdata
from scipy.stats import t as student

from lpzero.errors import InputError
from lpzero.judgement import counters
from lpzero.proxies import Measurements
from lpzero.scores.gaussian import Process
from lpzero.search import Request, Resources, run
from lpzero.search.confirmation import paired
from lpzero.search.constraints import Constraints
from lpzero.search.evaluators import TrainingError, remember_function
from lpzero.search.explanation import explanation, sentence
from lpzero.search.improvement import (
    FACTOR,
    SLOPE,
    Candidates,
    choose,
    expected_improvement,
    prior_of,
    values_of,
)
from lpzero.search.loops.budget import Budget
from lpzero.search.orders import median_of_best
from lpzero.search.scorer import NoProxy
from tests.lpzero.search.landscapes import SPACE, BlockProxy, Landscape, environment, height


def quantiles(numbers: Any) -> Any:
    return norm.ppf((rankdata(numbers) - 0.5) / len(numbers))


def naive_step(x: Any, s: Any, trained: list[int], targets: Any) -> tuple[int, Any]:
    """SPEC, section 11, word by word: the next candidate, and the mean of five expectations."""
    F, y, rows = x.shape[1], quantiles(targets), []
    seen = set()
    for p, r in ((1, 0), (0, 1), (1, 0.3), (1, 1), (0.3, 1)):
        for length in (0.5, 1, 2):
            K = np.empty((len(x), len(x)))
            for i in range(len(x)):
                for j in range(len(x)):
                    far = sum((x[i, f] - x[j, f]) ** 2 for f in range(F))
                    K[i, j] = 4 + 0.25 * s[i] * s[j] + p * sum(x[i] * x[j]) / F
                    K[i, j] += r * math.exp(-far / (2 * F * length**2))
            for noise in (0.001, 0.01, 0.1, 0.3):
                if (p, r, length * bool(r), noise) in seen:
                    continue
                seen.add((p, r, length * bool(r), noise))
                C = K[np.ix_(trained, trained)] + noise * np.eye(len(trained))
                about = y - 0.8 * s[trained]
                evidence = multivariate_t(np.zeros(len(y)), C, df=4).logpdf(about)  # 2/2 of IG(2,2)
                inverse = np.linalg.inv(C)
                mean = 0.8 * s + K[:, trained] @ inverse @ about
                left = np.diag(K) - np.einsum("mi,ij,mj->m", K[:, trained], inverse, K[:, trained])
                scale = (2 + about @ inverse @ about / 2) / (2 + len(y) / 2)
                rows.append((evidence, mean, np.sqrt(scale * np.maximum(left, 0))))
    assert len(rows) == 13 * 4
    rows.sort(key=lambda row: -row[0])
    freedom = 4 + len(y)
    gains = []
    for _, mean, deviation in rows[:5]:
        z = (mean - max(y)) / np.maximum(deviation, 1e-12)
        density = student(freedom).pdf(z) * (freedom + z**2) / (freedom - 1)
        gains.append((mean - max(y)) * student(freedom).cdf(z) + deviation * density)
    gain = np.mean(gains, axis=0)
    gain[trained] = -np.inf
    return int(np.argmax(gain)), np.mean([row[1] for row in rows[:5]], axis=0)


def candidates(seed: int, n: int = 14, n_features: int = 3) -> Candidates:
    rng = np.random.default_rng(seed)
    return Candidates(rng.normal(size=(n, n_features)), quantiles(rng.normal(size=n)))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_step_is_that_of_the_specification(seed: int) -> None:
    given, rng = candidates(seed), np.random.default_rng(seed + 10)
    trained = rng.permutation(14)[:6].tolist()
    targets = given.features[trained].sum(axis=1) + rng.normal(size=6)
    chosen, expected = naive_step(given.features, given.prior, trained, targets)
    assert choose(given, trained, targets, 1) == [chosen]
    values = values_of(targets)
    _, means = given.improvements(trained, values, given.likely(trained, values))
    np.testing.assert_allclose(means, expected, rtol=1e-6)


@pytest.mark.parametrize(("ahead", "deviation", "freedom"), [(0.3, 0.5, 10.0), (-2.0, 0.7, 7.0)])
def test_expected_improvement_is_its_integral(
    ahead: float, deviation: float, freedom: float
) -> None:
    got = expected_improvement(np.array([ahead]), np.array([deviation]), freedom)
    density = student(freedom).pdf
    whole, _ = quad(lambda z: (ahead + deviation * z) * density(z), -ahead / deviation, np.inf)
    assert got[0] == pytest.approx(whole, rel=1e-6)
    certain = expected_improvement(np.array([ahead]), np.array([0.0]), freedom)
    assert certain[0] == pytest.approx(max(0.0, ahead), abs=1e-9)


def test_growth_of_the_front_is_its_integral_over_costs() -> None:
    rng = np.random.default_rng(3)
    costs = rng.uniform(2.0, 4.0, size=14)
    plain = candidates(3)
    given = Candidates(plain.features, plain.prior, costs)
    trained, values = [1, 4, 6, 9], np.array([0.5, -0.8, 1.3, 0.1])
    likely = given.likely(trained, values)[:1]
    got, _ = given.improvements(trained, values, likely)
    shares = (costs - costs.min()) / np.ptp(costs)
    grid = (np.arange(22_000) + 0.5) / 20_000  # a tenth beyond the dearest
    for row in (0, 5, 13):
        total = 0.0
        by_height: dict[float, float] = {}
        for at in grid[grid >= shares[row]]:
            below = [v for v, i in zip(values, trained, strict=True) if shares[i] <= at]
            height = max(below, default=min(values))
            by_height[height] = by_height.get(height, 0.0) + 1 / 20_000
        for height, length in by_height.items():
            alone = candidates_over(plain, trained, values, likely, height)
            total += length * alone[row]
        assert got[row] == pytest.approx(total, rel=2e-3)


def candidates_over(
    given: Candidates, trained: list[int], values: Any, likely: Any, height: float
) -> Any:
    """Expected improvements over a height, by a process of the library's own."""
    points = np.column_stack([given.features, given.prior])
    process = Process(*likely[0], points[trained], values, SLOPE * given.prior[trained])
    freedom, factor = process.student(FACTOR)
    means, deviations = process.distributions(points, SLOPE * given.prior)
    return expected_improvement(means - height, factor * deviations, freedom)


def test_the_start_of_a_front_takes_the_best_of_each_bin_of_costs() -> None:
    plain = candidates(4)
    costs = np.arange(14.0)
    given = Candidates(plain.features, plain.prior, costs)
    found = [given.start(place, [], random.Random(0), 3)[0] for place in (0, 2, 4)]
    bins = (range(9, 14), range(4, 9), range(4))
    assert found == [max(rows, key=lambda i: plain.prior[i]) for rows in bins]
    assert given.start(4, list(range(4)), random.Random(0), 3)[0] >= 4  # an empty bin


def test_what_is_pending_is_believed_to_have_its_expected_target() -> None:
    given, trained, targets = candidates(1), [0, 3, 5, 7], np.array([0.3, -1.0, 2.0, 0.1])
    first, second = choose(given, trained, targets, 2)
    values = values_of(targets)
    likely = given.likely(trained, values)
    _, expected = given.improvements(trained, values, likely)
    believed = np.append(values, expected[first])
    gains, _ = given.improvements([*trained, first], believed, likely)
    gains[[*trained, first]] = -np.inf
    assert second == int(np.argmax(gains))
    assert sorted([*trained, *choose(given, trained, targets, 99)]) == list(range(14))


def test_failed_trainings_share_the_lowest_place() -> None:
    values = values_of(np.array([2.0, -math.inf, 1.0, -math.inf]))
    np.testing.assert_allclose(values, norm.ppf([0.875, 0.25, 0.625, 0.25]))


def test_the_start_alternates_the_prior_and_a_spread_draw() -> None:
    given, rng = candidates(2), random.Random(5)
    draw = random.Random(5)
    trained: list[int] = []
    for place in range(6):
        index, why = given.start(place, trained, rng)
        left = [i for i in range(14) if i not in trained]
        if place % 2 == 0:
            assert (index, why) == (max(left, key=lambda i: given.prior[i]), "prior")
        else:
            columns = given.features.T
            at = [min(c) + (max(c) - min(c)) * draw.random() for c in columns]
            far = [sum((given.features[i] - at) ** 2) for i in left]
            assert (index, why) == (left[int(np.argmin(far))], "spread")
        trained.append(index)


def test_the_prior_is_the_mean_rank_of_the_counters_that_vary() -> None:
    columns = np.array([[1.0, 5.0, 3.0, 4.0], [7.0] * 4, [2.0, 1.0, 2.0, 9.0]])
    ranks = (rankdata(columns[0]) + rankdata(columns[2])) / 2
    np.testing.assert_allclose(prior_of(columns), quantiles(ranks))


def loop(**constants: Any) -> Budget:
    return Budget(**{"budget": 12, "samples": 60, "mutants": 10, **constants})


def test_the_budget_is_spent_on_distinct_architectures() -> None:
    landscape = Landscape()
    place = environment(NoProxy(0), landscape, 1)
    winner = loop().run(place)
    assert len(set(landscape.asked)) == len(landscape.asked) == 12
    assert height(SPACE, winner) == max(height(SPACE, arch) for arch in landscape.asked)
    assert not place.ledger.archs("score")  # counted, no network is built
    why = [entry["why"] for entry in place.trace]
    assert why == ["prior", "spread"] * 3 + ["improvement"] * 6
    largest = [counters.parameters(SPACE, arch) for arch in landscape.asked[:5:2]]
    assert min(largest) > np.median([counters.parameters(SPACE, a) for a in landscape.asked[1:6:2]])


@pytest.mark.slow
def test_the_model_beats_the_start_alone_on_a_planted_landscape() -> None:
    def found(seed: int, starts: int) -> float:
        place = environment(NoProxy(0), Landscape(), seed)
        return height(SPACE, loop(budget=14, starts=starts).run(place))

    by_model = [found(seed, 6) for seed in range(4)]
    by_start = [found(seed, 14) for seed in range(4)]
    assert np.mean(by_model) > np.mean(by_start)


@pytest.mark.slow
def test_a_front_reaches_further_than_the_best_alone() -> None:
    def area(front: str | None) -> float:
        """Under the front of target against the logarithm of parameters."""
        landscape = Landscape()
        place = environment(NoProxy(0), landscape)
        loop(budget=16, front=front).run(place)
        points = [(np.log(SPACE.parameters(a)), height(SPACE, a)) for a in landscape.asked]
        grid = np.linspace(9.0, 12.0, 300)
        return float(np.mean([max((h for c, h in points if c <= at), default=0) for at in grid]))

    assert area("parameters") > area(None)


def test_the_front_of_a_search_is_in_its_result() -> None:
    constants = {"budget": 8, "samples": 60, "front": "parameters"}
    found = run(Request("nano-gpt2", "budget", evaluator="table", constants=constants)).result
    rows = [(entry["parameters"], entry["target"]) for entry in found["trace"]]
    kept = [
        (cost, target)
        for cost, target in rows
        if not any((c <= cost and t >= target) and (c, t) != (cost, target) for c, t in rows)
    ]
    assert [(e["parameters"], e["target"]) for e in found["front"]] == sorted(kept)
    assert len(kept) > 1
    assert found["best"]["target"] == found["front"][-1]["target"]
    for order in found["orders"].values():
        assert len(order) == 8
        assert order == sorted(order)


def test_the_median_of_the_best_of_random_trainings() -> None:
    targets = np.random.default_rng(0).normal(size=7)
    for k, got in enumerate(median_of_best(targets, 7), 1):
        best = sorted(max(some) for some in itertools.combinations(targets, k))
        assert got == best[(len(best) - 1) // 2]


def test_what_was_trained_is_explained_by_counts() -> None:
    rng = random.Random(1)
    archs = list({SPACE.sample(rng): None for _ in range(24)})
    sizes = np.array([float(SPACE.parameters(arch)) for arch in archs])
    found = explanation(SPACE, archs, -sizes)
    assert found["n"] == len(archs)
    assert found["rho"] > 0.95
    assert found["fit"] == pytest.approx(1.0)
    assert found["formula"].startswith("-")  # it falls with the size
    assert 0.9 < found["predictor"]["rho"] <= 1.0
    assert found["formula"] in sentence(found)
    noise = np.random.default_rng(0).normal(size=len(archs))
    assert "nothing holds" in sentence(explanation(SPACE, archs, noise))
    assert explanation(SPACE, archs[:9], -sizes[:9]) == {}
    assert explanation(SPACE, archs, np.ones(len(archs))) == {}


def test_a_proxy_takes_the_place_of_the_counters() -> None:
    landscape = Landscape()
    place = environment(BlockProxy(), landscape)
    loop(budget=3).run(place)
    scored = place.ledger.archs("score")
    scores = dict(zip(scored, BlockProxy().score(SPACE, scored, Measurements()), strict=True))
    assert len(scores) == 60
    assert scores[landscape.asked[0]] == max(scores.values())


def test_several_at_once_stay_within_the_start_and_the_budget() -> None:
    landscape = Landscape()
    place = environment(NoProxy(0), landscape)
    loop(budget=11, at_once=4).run(place)
    assert [entry["step"] for entry in place.trace] == [4] * 4 + [6] * 2 + [10] * 4 + [11]
    one_by_one = Landscape()
    loop(budget=6).run(environment(NoProxy(0), one_by_one))
    assert landscape.asked[:6] == one_by_one.asked


def test_a_small_table_is_searched_to_its_end_and_no_further() -> None:
    rng = random.Random(5)
    pool = list({SPACE.sample(rng): None for _ in range(8)})
    landscape = Landscape()
    limit = Constraints({"parameters": (None, 10**9)})
    loop(budget=20).run(environment(NoProxy(0), landscape, constraints=limit, pool=pool))
    assert sorted(map(repr, landscape.asked)) == sorted(map(repr, pool))


def train(arch: Any, seed: int) -> float:
    """A training that fails for deep networks, and diverges for narrow ones."""
    if len(arch.n_head) == 4:
        raise MemoryError("too deep")
    if arch.d_model == 64:
        return math.nan
    return -abs(arch.d_model - 96) / 32 - abs(sum(arch.d_inner) - 1000) / 400 + 0.01 * seed


def trained(**more: Any) -> Request:
    constants = {"budget": 9, "samples": 60, "mutants": 5, "at_once": 2}
    return Request(
        "nano-gpt2", "budget", evaluator=remember_function(train), constants=constants, **more
    )


def test_failed_and_diverged_trainings_are_kept_with_their_reasons() -> None:
    found = run(trained())
    assert len(found.trace) == 9
    reasons = {entry["failure"] for entry in found.trace if "failure" in entry}
    assert any("MemoryError: too deep" in reason for reason in reasons)
    assert found.best["target"] == max(e["target"] for e in found.trace if e["target"] is not None)
    assert found.best["score"] is None
    for entry in found.trace:
        assert (entry["target"] is None) == ("failure" in entry)


def test_a_function_that_always_fails_ends_the_search() -> None:
    def wrong(arch: Any, seed: int) -> float:
        raise NameError("trian")

    request = Request("nano-gpt2", "budget", evaluator=remember_function(wrong))
    with pytest.raises(TrainingError, match=r"first 3 trainings all failed.*NameError: trian"):
        run(request)
    with pytest.raises(InputError, match="expected a function"):
        remember_function(3)  # type: ignore[arg-type]


def contents(folder: Path) -> dict[str, bytes]:
    names = ("config.json", "journal.jsonl", "result.json", "trace.csv")
    return {name: (folder / name).read_bytes() for name in names}


@pytest.mark.slow
def test_a_search_killed_at_any_training_is_continued_with_the_same_bytes(tmp_path: Path) -> None:
    request = trained(confirm=2)
    run(request, out=tmp_path / "whole")
    whole = contents(tmp_path / "whole")
    n_lines = whole["journal.jsonl"].count(b"\n")
    assert n_lines == 9 + 2 * 2
    for n_kept, jobs in ((3, 2), (10, 1)):
        folder = tmp_path / str(n_kept)
        shutil.copytree(tmp_path / "whole", folder)
        lines = whole["journal.jsonl"].splitlines(keepends=True)
        torn = lines[n_kept][:20]
        (folder / "journal.jsonl").write_bytes(b"".join(lines[:n_kept]) + torn)
        (folder / "result.json").unlink()
        begun: list[Any] = []
        told = Resources(jobs=jobs, begin=lambda first, archs: begun.extend(archs))  # noqa: B023
        run(request, told, folder, resume=True)
        assert contents(folder) == whole
        assert len(begun) == max(0, 9 - n_kept)  # what is recorded is not trained again


def test_the_best_and_the_second_are_confirmed() -> None:
    found = run(trained(confirm=3)).result
    confirmed = found["confirmed"]
    assert confirmed["seeds"] == [1, 2, 3]
    first = found["best"]["target"]
    assert confirmed["best_targets"] == pytest.approx([first + 0.01 * s for s in (1, 2, 3)])
    others = [e["target"] for e in found["trace"] if e["target"] is not None]
    second = sorted(others)[-2]
    assert confirmed["runner_up_targets"] == pytest.approx([second + 0.01 * s for s in (1, 2, 3)])
    assert "they differ" in found["remarks"][0]
    with pytest.raises(InputError, match="confirm is for trainings"):
        Request("nano-gpt2", "budget", evaluator="table", confirm=2)


def test_paired_differences_by_hand() -> None:
    rows = [(3.0, 1.0), (4.0, 1.0), (5.0, 1.0)]  # 2, 3, 4: deviation 1, t of 2 degrees 4.3027
    found = paired(rows)
    assert found["difference"] == 3.0
    half = 4.30265 / math.sqrt(3)
    assert found["difference_ci"] == pytest.approx([3 - half, 3 + half], rel=1e-5)
    assert found["differ"]
    assert not paired([(3.0, 1.0), (1.0, 2.0)])["differ"]
    assert paired([(3.0, 1.0)])["difference_ci"] is None
    assert paired([])["difference"] is None
