"""The loops on planted landscapes: against naive references, by hand, and within their budgets."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.stats import rankdata

import spaces
from lpzero.errors import InputError
from lpzero.proxies import Measurements, find
from lpzero.proxies.combined import rank_sum
from lpzero.search import loops
from lpzero.search.constraints import Constraints
from lpzero.search.environment import Environment, Sampler
from lpzero.search.ledger import Ledger
from lpzero.search.loops.etas import Etas
from lpzero.search.loops.prenas import PreNas
from lpzero.search.loops.random_search import RandomSearch
from lpzero.search.loops.regularised import Regularised
from lpzero.search.loops.trazor import Member, TRazor, exchanged
from lpzero.search.scorer import Scorer
from lpzero.supernet import Saliency, select
from spaces.flexibert import FlexiBertArch, Layer
from spaces.nlp_rnn import RnnSpace
from tests.lpzero.search.landscapes import (
    OPTIMUM,
    SPACE,
    BlockProxy,
    Landscape,
    environment,
    height,
    proxy,
    value_of_block,
)

pytestmark = pytest.mark.slow

BEST = Layer("wma", 2, 48, 1)


def noisy(space: Any, arch: Any) -> float:
    """The landscape seen badly."""
    return height(space, arch) + 3 * random.Random(repr(arch)).random()


@pytest.mark.parametrize("seed", range(5))
def test_etas_reaches_the_optimum_of_a_planted_landscape(seed: int) -> None:
    place = environment(proxy(noisy), Landscape(), seed)
    assert height(SPACE, Etas().run(place)) == OPTIMUM


def naive_etas(seed: int, samples: int, n: int, iterations: int, patience: int) -> list[Any]:
    """Algorithm 1 of ETAS in one go: what is evaluated, in order."""
    rng = random.Random(seed)
    drawn: list[Any] = []
    while len(drawn) < samples:
        arch = SPACE.sample(rng)
        if arch not in drawn:
            drawn.append(arch)
    observed = sorted(drawn, key=lambda a: -noisy(SPACE, a))[:3]
    best, idle = max(height(SPACE, a) for a in observed), 0
    for _ in range(iterations):
        parents = sorted(observed, key=lambda a: -height(SPACE, a))[:3]
        mutants: list[Any] = []
        while len(mutants) < n:
            mutant = SPACE.mutate(rng.choice(parents), 0.3, rng)
            if mutant not in mutants and mutant not in observed:
                mutants.append(mutant)
        observed += sorted(mutants, key=lambda a: -noisy(SPACE, a))[:3]
        now = max(height(SPACE, a) for a in observed)
        best, idle = max(best, now), 0 if now > best else idle + 1
        if idle == patience:
            break
    return observed


@pytest.mark.parametrize("seed", range(3))
def test_etas_is_its_algorithm(seed: int) -> None:
    landscape = Landscape()
    place = environment(proxy(noisy), landscape, seed)
    Etas(samples=40, mutants=20, iterations=6, patience=3).run(place)
    assert landscape.asked == naive_etas(seed, 40, 20, 6, 3)
    assert [entry["evaluations"] for entry in place.trace] == list(
        range(1, len(landscape.asked) + 1)
    )


def test_etas_without_gain_stops_after_five_iterations() -> None:
    landscape = Landscape(lambda space, arch: 1.0)
    Etas(samples=10, mutants=10).run(environment(proxy(), landscape))
    assert len(landscape.asked) == 3 + 5 * 3


def test_etas_has_the_constants_of_its_paper() -> None:
    assert loops.constants(loops.make("etas", spaces.get("gpt2"), {})) == {
        "samples": 300,
        "parents": 3,
        "mutants": 100,
        "chosen": 3,
        "probability": 0.3,
        "iterations": 10,
        "patience": 5,
    }
    vision = loops.constants(loops.make("etas", spaces.get("autoformer-tiny"), {}))
    assert (vision["samples"], vision["probability"]) == (500, 0.4)
    razor = loops.constants(loops.make("trazor", spaces.get("autoformer-tiny"), {}))
    assert [razor[k] for k in ("population", "mutations", "crossovers", "steps")] == [
        50,
        25,
        25,
        160,
    ]


def test_the_velocity_of_equation_13_by_hand() -> None:
    loop = TRazor(inertia=0.5, gamma1=0.25, gamma2=0.1)
    x, own, leader = np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 7.0]), np.array([11.0, 0.0])
    v = loop.velocity(np.array([4.0, -2.0, 0.0]), x, own, leader)
    # 0.5*4 + 0.25*1 + 0.1*10, 0.5*-2 + 0 + 0.1*-2, 0 + 0.25*4 + nothing: the leader has two
    np.testing.assert_allclose(v, [3.25, -1.2, 1.0])


def test_positions_are_values_and_velocity_together() -> None:
    low, high = Layer("sdp", 4, 24, 2), BEST
    first, second = FlexiBertArch(16, (low, high)), FlexiBertArch(16, (high, high, low))
    place = environment(BlockProxy())
    place.scores([first, second])
    loop = TRazor(inertia=0.5, gamma1=0.25, gamma2=0.5)
    members = [Member(second, np.zeros(3), second), Member(first, np.array([2.0, 0.0]), second)]
    moved, positions = loop._moved(place, members)
    # The leader is the first member: its own pull is zero.
    np.testing.assert_allclose(positions[0], [4, 4, 0])
    np.testing.assert_allclose(moved[1].velocity, [0.5 * 2 + 0.25 * 4 + 0.5 * 4, 0])
    np.testing.assert_allclose(positions[1], [0 + 4, 4])


def test_crossover_takes_the_better_block() -> None:
    a, b, c = Layer("sdp", 2, 24, 1), Layer("wma", 4, 48, 2), Layer("sdp", 4, 48, 1)
    first, second = FlexiBertArch(16, (a, b, c)), FlexiBertArch(48, (c, a))
    child = exchanged(SPACE, first, second, np.array([1.0, 5.0, 0.0]), np.array([2.0, 5.0]))
    assert child == FlexiBertArch(16, (c, b, c))


def test_crossover_keeps_to_the_space() -> None:
    space = spaces.get("gpt2")
    rng = random.Random(0)
    narrow = space.from_json(
        {"d_model": 128, "n_head": [2, 2], "d_inner": [256, 2048], "d_embed": 128, "div_val": 1}
    )
    wide = space.from_json(
        {"d_model": 1024, "n_head": [4, 4], "d_inner": [2048, 4096], "d_embed": 128, "div_val": 1}
    )
    child = exchanged(space, wide, narrow, np.zeros(2), np.ones(2))
    assert child.d_inner == (2048, 2048)
    redrawn = space.redraw_block(wide, 1, rng)
    assert (redrawn.d_model, redrawn.d_inner[0]) == (1024, 2048)
    assert redrawn.d_inner[1] >= 2048


def test_mutants_of_trazor_differ_in_the_worst_block_alone() -> None:
    arch = FlexiBertArch(32, (BEST, Layer("sdp", 4, 24, 2), BEST))
    place = environment(BlockProxy())
    place.scores([arch])
    loop = TRazor(mutations=8, shape_moves=0.0)
    members, positions = loop._moved(place, [Member(arch, np.zeros(3), arch)])
    children = [m.arch for m in loop._mutants(place, members, positions, {arch})]
    assert len(set(children)) == 8
    for child in children:
        assert [a == b for a, b in zip(child.layers, arch.layers, strict=True)] == [1, 0, 1]
        assert child.hidden == 32


def test_a_proportion_of_the_blocks_mutates_and_is_exchanged() -> None:
    loop = TRazor(proportion=0.5)
    assert loop.worst(np.array([3.0, 0.0, 2.0, 1.0])) == [1, 3]
    assert TRazor().worst(np.array([3.0, 0.0, 2.0, 0.0])) == [1]
    assert TRazor().worst(np.array([3.0, 0.0, 2.0, 1.0]), times=2) == [1, 3]
    assert loop.share_of(np.zeros(1)) == 1
    a, b = Layer("sdp", 2, 24, 1), Layer("wma", 4, 48, 2)
    first, second = FlexiBertArch(16, (a, a, a)), FlexiBertArch(16, (b, b, b))
    values = np.array([1.0, 1.0, 1.0]), np.array([2.0, 9.0, 3.0])
    assert exchanged(SPACE, first, second, *values).layers == (b, b, b)
    assert exchanged(SPACE, first, second, *values, 2).layers == (a, b, b)


def test_shape_moves_change_depth_and_width_and_keep_the_blocks() -> None:
    arch = FlexiBertArch(32, (BEST, Layer("sdp", 4, 24, 2), BEST))
    place = environment(BlockProxy())
    place.scores([arch])
    loop = TRazor(mutations=12, shape_moves=1.0)
    members, positions = loop._moved(place, [Member(arch, np.arange(3.0), arch)])
    children = loop._mutants(place, members, positions, {arch})
    assert {len(child.arch.layers) for child in children} == {2, 3}
    assert {child.arch.hidden for child in children} == {16, 32, 48}
    for child in children:
        kept = child.arch.layers
        assert kept == arch.layers[: len(kept)]
        assert child.velocity.tolist() == members[0].velocity[: len(kept)].tolist()


def test_trazor_does_not_run_dry_and_says_what_it_drew_afresh() -> None:
    # 128 architectures are within the bounds, eight of them have two layers instead of three.
    limit = Constraints({"parameters": (28_000, 29_000)})
    loop = TRazor(population=10, mutations=5, crossovers=5, steps=10, shape_moves=0.0)
    place = environment(BlockProxy(), constraints=limit)
    loop.run(place)
    n = place.scorer.n_scored
    assert n == len(set(place.ledger.archs("score"))) == loop.most_scored(False)
    [remark] = place.remarks
    assert re.match(rf"\d+ of {n} architectures were drawn afresh, from step \d+ on", remark)
    # A pool that has been scored to its end ends the search, with a word of it.
    rng = random.Random(5)
    small = environment(BlockProxy(), pool=[SPACE.sample(rng) for _ in range(30)])
    loop.run(small)
    assert small.scorer.n_scored == 30
    assert "found no new architecture: the search ended there" in small.remarks[0]


def test_the_trace_of_ranks_is_ranked_in_one_set() -> None:
    guide = rank_sum(BlockProxy(), BlockProxy(name="heads", value=lambda block: -block.heads))
    place = environment(guide, seed=3)
    TRazor(population=10, mutations=5, crossovers=5, steps=6).run(place)
    growing = [entry["score"] for entry in place.trace]
    assert growing[-1] > 2 * growing[0]  # most of it only because more are ranked
    place.settle_trace()
    known = place.ledger.archs("score")
    ranks = sum(
        rankdata([v[i] for v in (place.ledger.get("score", a) for a in known)]) for i in (0, 1)
    )
    settled = {repr(SPACE.to_json(a)): rank for a, rank in zip(known, ranks, strict=True)}
    for entry in place.trace:
        assert entry["score"] == entry["best"] == settled[repr(entry["arch"])]
    # Another loop, whose best is the best of all it observed.
    other = environment(guide, seed=3)
    Regularised(population=5, tournament=2, evaluations=20).run(other)
    other.settle_trace()
    bests = [entry["best"] for entry in other.trace]
    assert bests == np.maximum.accumulate([entry["score"] for entry in other.trace]).tolist()


def test_trazor_climbs_block_by_block_within_its_budget() -> None:
    place = environment(BlockProxy(), seed=1)
    loop = TRazor(population=10, mutations=5, crossovers=5, steps=15)
    winner = loop.run(place)
    assert sum(map(value_of_block, winner.layers)) == 12
    assert place.scorer.n_scored <= 10 + 15 * 10
    bests = [entry["best"] for entry in place.trace]
    assert len(bests) == 16
    assert bests == sorted(bests)


def test_trazor_evaluates_its_winner_alone() -> None:
    landscape = Landscape()
    place = environment(BlockProxy(), landscape)
    winner = TRazor(population=6, steps=2, mutations=3, crossovers=3).run(place)
    assert place.observed == [winner]
    assert place.trace[-1]["target"] == height(SPACE, winner)
    assert place.trace[0]["target"] is not None  # free to look at, not counted
    assert [entry["evaluations"] for entry in place.trace] == [0, 0, 0, 1]


def test_prenas_is_its_selector() -> None:
    space = replace(spaces.get("autoformer-tiny"), image=32, patch=16, n_layers=(2, 3), classes=10)
    ledger = Ledger(space)
    scorer = Scorer(find("supernet-snip"), space, Measurements(), ledger)
    limit = Constraints({"parameters": (None, 1_600_000)})
    sampler = Sampler(space, limit, lambda arch: 0.0)
    place = Environment(sampler, scorer, None, ledger, random.Random(0))
    winner = PreNas(per_bin=2, margin=200_000).run(place)
    bins = [float(edge) for edge in range(600_000, 1_800_001, 200_000)]
    expected = [
        found for found in select(Saliency.of(space), bins, per_bin=1000) if found.size <= 1_600_000
    ]
    by_bin = {low: [f for f in expected if f.low == low][:2] for low in bins}
    preferred = [found for low in bins for found in by_bin[low]]
    assert len(preferred) > 4
    assert [entry["arch"] for entry in place.trace] == [space.to_json(f.arch) for f in preferred]
    assert winner == max(expected, key=lambda found: found.score).arch
    again = Environment(sampler, scorer, None, ledger, random.Random(0))
    PreNas(margin=200_000, weights_seeds=2).run(again)
    assert all(0 < entry["alike"] <= 1 for entry in again.trace)
    assert len(again.trace) > 2
    assert all("alike" not in entry for entry in place.trace)
    with pytest.raises(InputError, match="are for --selector ours"):
        PreNas(selector="released", weights_seeds=2)


@pytest.mark.parametrize("evaluator", [None, "landscape"])
def test_regularised_evolution_spends_its_budget_and_forgets_the_oldest(evaluator: Any) -> None:
    place = environment(proxy(), Landscape() if evaluator else None, seed=2)
    winner = Regularised(population=20, tournament=5, evaluations=150).run(place)
    assert len(place.observed) == len(set(place.observed)) == 150
    assert height(SPACE, winner) == max(height(SPACE, arch) for arch in place.observed)
    assert winner == naive_regularised(2, 20, 5, 150)


def naive_regularised(seed: int, population: int, tournament: int, evaluations: int) -> Any:
    rng = random.Random(seed)
    history: list[Any] = []
    while len(history) < population:
        arch = SPACE.sample(rng)
        if arch not in history:
            history.append(arch)
    members = list(history)
    while len(history) < evaluations:
        parent = max(rng.sample(members, tournament), key=lambda a: height(SPACE, a))
        child = parent
        while child in history:
            child = SPACE.mutate(rng.choice([parent]), 0.3, rng)
        history.append(child)
        members = [*members[1:], child]
    return max(history, key=lambda a: height(SPACE, a))


def test_random_search_evaluates_the_best_by_proxy_in_that_order() -> None:
    landscape = Landscape()
    place = environment(proxy(noisy), landscape)
    RandomSearch(samples=120, evaluations=7).run(place)
    drawn = sorted(place.ledger.archs("score"), key=lambda a: -noisy(SPACE, a))
    assert place.scorer.n_scored == 120
    assert landscape.asked == drawn[:7]


def test_random_search_by_proxy_alone_gives_the_best_drawn() -> None:
    place = environment(proxy())
    winner = RandomSearch(samples=120).run(place)
    assert height(SPACE, winner) == max(height(SPACE, a) for a in place.ledger.archs("score"))
    assert [entry["scored"] for entry in place.trace] == [50, 100, 120]


# Small constants of every loop that the planted space can run: a newcomer needs a line here.
SMALL: dict[str, dict[str, Any]] = {
    "etas": {"samples": 30, "mutants": 20, "iterations": 3},
    "trazor": {"population": 8, "mutations": 4, "crossovers": 4, "steps": 4},
    "random": {"samples": 30, "evaluations": 5},
    "regularised": {"population": 8, "tournament": 3, "evaluations": 25},
    "budget": {"budget": 9, "samples": 30, "mutants": 5},
}
ANYWHERE = [name for name in loops.LOOPS if name != "prenas"]  # which needs a supernet


@pytest.mark.parametrize("name", ANYWHERE)
def test_every_loop_is_a_function_of_its_seed(name: str) -> None:
    loop = loops.make(name, SPACE, SMALL[name])
    found = []
    for seed in (3, 3, 4):
        place = environment(BlockProxy(), Landscape(), seed)
        winner = loop.run(place)
        found.append((winner, place.trace))
        assert place.trace
        assert all(
            entry.keys() >= {"step", "scored", "evaluations", "arch", "score", "target", "best"}
            for entry in place.trace
        )
        assert place.trace[-1]["step"] <= (loop.last_step or 0)
    assert found[0] == found[1]
    assert found[0][1] != found[2][1]


@pytest.mark.parametrize("name", ANYWHERE)
@pytest.mark.parametrize("with_pool", [False, True])
def test_every_loop_keeps_to_constraints_and_pool(name: str, with_pool: bool) -> None:
    loop = loops.make(name, SPACE, SMALL[name])
    limit = Constraints({"parameters": (None, 24_000)})
    rng = random.Random(5)
    pool = [SPACE.sample(rng) for _ in range(200)] if with_pool else None
    place = environment(BlockProxy(), Landscape(), constraints=limit, pool=pool)
    winner = loop.run(place)
    scored = {*place.ledger.archs("score"), *place.observed, winner}
    assert scored
    assert all(SPACE.parameters(arch) <= 24_000 for arch in scored)
    assert pool is None or scored <= set(pool)


CELLS = RnnSpace(name="planted-cells", embedding=4, hidden=6, vocabulary=20)


def states_of_block(cell: Any) -> float:
    """Best with many states and few nodes."""
    return 10.0 * cell.n_states - len(cell.nodes)


@pytest.mark.parametrize("name", ANYWHERE)
@pytest.mark.parametrize("with_pool", [False, True])
def test_every_loop_searches_graphs_whose_blocks_are_one_cell(name: str, with_pool: bool) -> None:
    rng = random.Random(6)
    pool = [CELLS.sample(rng) for _ in range(60)] if with_pool else None
    scored = BlockProxy(value=states_of_block)
    place = environment(scored, None, pool=pool, space=CELLS)
    winner = loops.make(name, CELLS, SMALL[name]).run(place)
    CELLS.validate(winner)
    assert pool is None or winner in pool
    assert states_of_block(winner) >= 20  # a random cell has 14 on average


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("etas", {"samples": 0}, "samples is 0, expected at least 1"),
        ("etas", {"probability": 1.5}, "probability is 1.5"),
        ("trazor", {"population": 1}, "at least 2"),
        ("regularised", {"population": 9, "evaluations": 5}, "needs as many evaluations"),
        ("random", {"iterations": 3}, "has no iterations"),
        ("annealing", {}, "unknown loop"),
    ],
)
def test_constants_that_make_no_sense_are_refused(name: str, given: Any, message: str) -> None:
    with pytest.raises((InputError, LookupError), match=message):
        loops.make(name, SPACE, given)


def test_offspring_of_trazor_inherit_velocity_and_line() -> None:
    rng = random.Random(3)
    place = environment(BlockProxy(), None)
    archs = [SPACE.sample(rng) for _ in range(6)]
    members = [
        Member(arch, np.arange(1.0, SPACE.depth(arch) + 1) + 10 * i, ("line", i))
        for i, arch in enumerate(archs)
    ]
    positions = [np.zeros(SPACE.depth(arch)) for arch in archs]
    loop = TRazor(population=6, mutations=12, crossovers=12)
    children = loop._mutants(place, members, positions, set(archs))
    assert len(children) == 12
    for child in children:
        [parent] = [member for member in members if member.line == child.line]
        shared = min(SPACE.depth(child.arch), SPACE.depth(parent.arch))
        assert child.velocity[:shared].tolist() == parent.velocity[:shared].tolist()
        assert child.velocity.any()
        assert len(child.velocity) == SPACE.depth(child.arch)


def test_a_line_keeps_its_best_member() -> None:
    place = environment(BlockProxy(), None)
    good = FlexiBertArch(32, (BEST, BEST))
    bad = FlexiBertArch(32, (Layer("sdp", 4, 24, 2), Layer("sdp", 4, 24, 2)))
    velocity = np.zeros(2)
    kept = TRazor(population=2)._survivors(
        place, [Member(bad, velocity, good), Member(good, velocity, bad)]
    )
    assert [(member.arch, member.line) for member in kept] == [(good, good), (bad, good)]
