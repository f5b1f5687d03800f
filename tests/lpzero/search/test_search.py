"""Searches as they are asked for: resumed, on several jobs, within bounds, by every evaluator."""

from __future__ import annotations

import json
import random
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import rankdata

import spaces
from lpzero.arrays import FloatArray
from lpzero.cli.verb import command
from lpzero.errors import InputError
from lpzero.proxies import Context, Measurements, find
from lpzero.search import Constraints, Request, Resources, loops, run
from lpzero.search import evaluators as evaluating
from lpzero.search import search as searching
from lpzero.search.constraints import Stopwatch
from lpzero.search.cost import Cost
from lpzero.search.ledger import Deadline, Ledger, TimeUpError
from lpzero.search.request import default_proxy, space_of_rows
from lpzero.search.scorer import NoProxy, Scorer
from lpzero.search.surrogate import Surrogate
from spaces.initialisation import ByName
from spaces.tables import load
from spaces.training.recipes import PLANS
from spaces.training.tasks import TASKS
from spaces.training.trainer import Recipe, train
from tests import forks

pytestmark = pytest.mark.slow

FILES = ("config.json", "journal.jsonl", "result.json", "trace.csv")
SMALL = {"samples": 20, "mutants": 10, "iterations": 3}
FORMULA = "sum(mul(abs(G), abs(W)))"


def content(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


def asked(**changes: Any) -> Request:
    fields: dict[str, Any] = {
        "space": "nano-gpt2",
        "loop": "etas",
        "proxy": "attention-parameters",
        "evaluator": "surrogate",
        "constants": SMALL,
    }
    return Request(**(fields | changes))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("search") / "whole"
    run(asked(), out=out)
    return out


@pytest.mark.parametrize("share", [0.0, 0.1, 0.37, 0.5, 0.83, 0.999])
def test_a_search_cut_anywhere_goes_on_to_the_same_bytes(
    whole: Path, tmp_path: Path, share: float
) -> None:
    out = tmp_path / "cut"
    out.mkdir()
    (out / "config.json").write_bytes((whole / "config.json").read_bytes())
    journal = (whole / "journal.jsonl").read_bytes()
    (out / "journal.jsonl").write_bytes(journal[: int(share * len(journal))])
    run(asked(), out=out, resume=True)
    assert content(out) == content(whole)


@pytest.mark.parametrize(
    ("loop", "proxy", "constants"),
    [
        (
            "trazor",
            "rank-sum(snip, grad-norm)",
            {"population": 4, "mutations": 2, "crossovers": 2, "steps": 2},
        ),
        ("random", "depth", {"samples": 20, "evaluations": 4}),
        ("regularised", "depth", {"population": 4, "tournament": 2, "evaluations": 12}),
    ],
)
def test_every_loop_goes_on_to_the_same_bytes(
    tmp_path: Path, loop: str, proxy: str, constants: dict[str, int]
) -> None:
    limit = Constraints({"parameters": (None, 60_000)})
    request = asked(loop=loop, proxy=proxy, constants=constants, constraints=limit)
    around = Resources(cache=tmp_path / "cache")
    straight, cut = tmp_path / "straight", tmp_path / "cut"
    run(request, around, straight)
    journal = (straight / "journal.jsonl").read_bytes()
    cut.mkdir()
    (cut / "config.json").write_bytes((straight / "config.json").read_bytes())
    (cut / "journal.jsonl").write_bytes(journal[: len(journal) * 2 // 3])
    run(request, around, cut, resume=True)
    assert content(cut) == content(straight)


def test_a_resumed_search_computes_nothing_it_knows(
    whole: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out = tmp_path / "again"
    out.mkdir()
    for name in FILES:
        (out / name).write_bytes((whole / name).read_bytes())

    def never(*_: Any) -> Any:
        raise AssertionError("computed again")

    monkeypatch.setattr(Surrogate, "evaluate", never)
    monkeypatch.setattr(Scorer, "_measure", never)
    run(asked(), out=out, resume=True)
    assert content(out) == content(whole)


def test_the_number_of_jobs_changes_nothing(tmp_path: Path) -> None:
    constants = {"samples": 4, "mutants": 3, "iterations": 1}
    found = []
    for jobs in (1, 2):
        around = Resources(jobs=jobs, cache=tmp_path / f"cache{jobs}")
        request = asked(proxy=f"rank-mean(snip, {FORMULA})", constants=constants)
        run(request, around, tmp_path / str(jobs))
        found.append(content(tmp_path / str(jobs)))
    assert found[0] == found[1]


def slowly(out: Path) -> None:
    predict = Surrogate.evaluate
    Surrogate.evaluate = lambda self, archs: (  # type: ignore[method-assign]
        (time.sleep(0.2), target)[1] for target in predict(self, archs)
    )
    run(asked(), out=out)


def test_a_killed_search_goes_on_to_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "killed"
    process = forks.start(slowly, out)
    journal = out / "journal.jsonl"
    deadline = time.monotonic() + 600
    while not (journal.exists() and b'"target"' in journal.read_bytes()):
        assert time.monotonic() < deadline
        time.sleep(0.005)
    process.kill()
    process.join()
    assert not (out / "result.json").exists()
    run(asked(), out=out, resume=True)
    assert content(out) == content(whole)


def test_measured_latencies_are_kept_and_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter(range(10_000))
    monkeypatch.setattr(Stopwatch, "__call__", lambda self, arch: float(next(ticks) % 7))
    limit = Constraints({"latency": (None, 3.0)})
    request = asked(constraints=limit, constants=SMALL | {"iterations": 1})
    first = run(request, out=tmp_path / "timed").result
    text = (tmp_path / "timed/journal.jsonl").read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    timed = {json.dumps(line["arch"]): line["value"] for line in lines if line["fact"] == "latency"}
    assert max(timed.values()) > 3
    assert all(timed[json.dumps(entry["arch"])] <= 3 for entry in first["trace"])
    assert first["best"]["latency"] == timed[json.dumps(first["best"]["arch"])]
    monkeypatch.setattr(Stopwatch, "__call__", lambda self, arch: 1 / 0)
    assert run(request, out=tmp_path / "timed", resume=True).result == first


def test_latency_is_a_time() -> None:
    space = spaces.get("nano-gpt2")
    arch = load("nano-gpt2").archs[0]
    assert 0 < Stopwatch(space)(arch) < 10_000


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        (
            {"parameters": (None, 10)},
            "none of 10,000 architectures of nano-gpt2 has parameters of at most 10",
        ),
        ({"flops": (1e15, None)}, "at least 1e"),
        ({"parameters": (5e5, None), "flops": (None, 1e6)}, "has flops of at most"),
        ({"parameters": (2e5, 1e5)}, "swap the bounds"),
        ({"parameters": (None, 0)}, "at most 0 parameters excludes everything"),
        ({"latency": (0, 0)}, "at most 0 latency"),
        ({"flops": (None, float("nan"))}, "a bound of flops is nan"),
        ({"memory": (0, 1)}, "cannot be bounded"),
    ],
)
def test_bounds_that_nothing_satisfies_are_refused_before_any_work(
    tmp_path: Path, bounds: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        run(asked(constraints=Constraints(bounds)), out=tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_block_wise_loop_refuses_a_proxy_without_blocks() -> None:
    with pytest.raises(InputError, match="no values of single blocks"):
        asked(loop="trazor", proxy="rank-mean(snip, parameters)", constants={})


@pytest.mark.parametrize(
    ("space", "loop", "proxy", "message"),
    [
        ("gpt2", "prenas", "none", "has none: use an AutoFormer"),
        ("gpt2", "etas", "supernet-snip", "cannot score space gpt2"),
        ("nano-gpt2", "trazor", "none", "no values of single blocks"),
    ],
)
def test_what_a_space_cannot_do_is_refused(space: str, loop: str, proxy: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Request(space, loop, proxy, evaluator="surrogate")


def test_the_table_evaluator_looks_up() -> None:
    table = load("nano-gpt2")
    result = run(asked(evaluator="table", loop="random", constants={})).result
    known = dict(zip(map(repr, table.archs), table.targets, strict=True))
    for entry in result["trace"]:
        assert known[repr(table.space.from_json(entry["arch"]))] == entry["target"]
    assert result["scored"] == len(table)


def test_formulas_score_a_table_on_its_sketches(tmp_path: Path) -> None:
    table = load("nano-gpt2")
    pool = sorted(table.archs, key=table.space.flops)[:6]
    measurements = Measurements(Context(folder=tmp_path))
    scorers = [
        Scorer(find(FORMULA), table.space, measurements, Ledger(table.space), known)
        for known in (None, pool)
    ]
    on_networks, on_sketches = (scorer.scores(pool[2:4]) for scorer in scorers)
    np.testing.assert_allclose(on_networks, on_sketches, rtol=1e-9)
    blocks = [scorer.block_scores(pool[2:4]) for scorer in scorers]
    np.testing.assert_allclose(np.concatenate(blocks[0]), np.concatenate(blocks[1]), rtol=1e-9)


def test_the_surrogate_predicts_rows_it_has_not_seen() -> None:
    table = load("nano-gpt2")
    surrogate = Surrogate(table.space, table)
    assert surrogate.rho > 0.95
    assert surrogate.rmse < 0.3 * table.targets.std()
    again = Surrogate(table.space, table)
    assert list(again.evaluate(table.archs[:5])) == list(surrogate.evaluate(table.archs[:5]))
    alone = [next(iter(surrogate.evaluate([arch]))) for arch in table.archs[:5]]
    assert alone == list(surrogate.evaluate(table.archs[:5]))


def test_the_surrogate_says_what_lies_outside_its_table() -> None:
    table = load("nano-gpt2")
    wide = max(table.archs, key=table.space.parameters)
    surrogate = Surrogate(table.space, table)
    assert not any(surrogate.outside(arch) for arch in table.archs)
    larger = replace(wide, n_head=(4,) * 6, d_inner=(512,) * 6)
    assert "parameters" in surrogate.outside(larger)
    assert "width" not in surrogate.outside(larger)
    request = asked(
        loop="regularised",
        proxy="parameters",
        evaluator="surrogate",
        constants={"population": 5, "evaluations": 10, "tournament": 2},
    )
    best = run(request).best
    assert best["outside_table"] == surrogate.outside(table.space.from_json(best["arch"]))


def test_training_is_the_trainer() -> None:
    space, plan = spaces.get("nano-gpt2"), PLANS["nano-gpt2"]
    arch = min(load("nano-gpt2").archs, key=space.parameters)
    recipe = Recipe(steps=2, learning_rate=plan.recipe.learning_rate)
    expected = train(space, arch, TASKS["causal"](64), recipe, 0).target
    assert list(evaluating.make("training", space, None, 2).evaluate([arch])) == [expected]


def test_rank_combinations_are_ranked_among_all_scored_so_far(tmp_path: Path) -> None:
    table = load("nano-gpt2")
    small = sorted(table.archs, key=table.space.flops)[:9]
    measurements = Measurements(Context(folder=tmp_path))
    proxy = find("rank-sum(depth, rank-mean(snip, parameters))")
    scorer = Scorer(proxy, table.space, measurements, Ledger(table.space))
    first = scorer.scores(small[:4])
    np.testing.assert_allclose(first, proxy.score(table.space, small[:4], measurements))
    scorer.scores(small[4:])
    whole = proxy.score(table.space, small, measurements)
    np.testing.assert_allclose(scorer.scores(small[:4]), whole[:4])
    assert scorer.n_scored == 9


def test_an_architecture_without_a_score_is_the_worst() -> None:
    table = load("nano-gpt2")
    ledger = Ledger(table.space)
    scorer = Scorer(find("rank-mean(depth, parameters)"), table.space, Measurements(), ledger)
    ledger.find("score", [table.archs[0]], lambda archs: [[None, 3.0]])
    scores = scorer.scores(table.archs[:5])
    assert scores[0] == -np.inf
    others = find("rank-mean(depth, parameters)").score(
        table.space, table.archs[1:5], Measurements()
    )
    np.testing.assert_allclose(scores[1:], others)


def test_no_proxy_is_a_random_number_of_the_seed_and_the_architecture() -> None:
    table = load("nano-gpt2")
    whole = NoProxy(1).score(table.space, table.archs, Measurements())
    np.testing.assert_array_equal(
        whole[3:5], NoProxy(1).score(table.space, table.archs[3:5], Measurements())
    )
    assert not np.array_equal(whole, NoProxy(2).score(table.space, table.archs, Measurements()))
    assert len(set(whole)) == len(set(table.archs))


def test_the_default_evaluator_is_a_surrogate_where_a_table_is_at_hand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("LPZERO_DATA", raising=False)
    assert evaluating.default(spaces.get("nano-gpt2"), None, None) == "surrogate"
    assert evaluating.default(spaces.get("gpt2"), None, None) == "proxy"


@pytest.fixture(scope="module")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sketches and scores of proxies, which tests of the same networks share."""
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize(
    ("loop", "constants"),
    [
        ("etas", SMALL),
        ("trazor", {"population": 6, "mutations": 3, "crossovers": 3, "steps": 3}),
        ("random", {"samples": 20, "evaluations": 4}),
        ("regularised", {"population": 4, "tournament": 2, "evaluations": 12}),
    ],
)
def test_a_time_limit_gives_the_first_part_of_the_search(
    tmp_path: Path,
    shared_cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    loop: str,
    constants: dict[str, int],
) -> None:
    proxy = "snip" if loop == "trazor" else "depth"
    request = asked(loop=loop, proxy=proxy, constants=constants)
    around = Resources(cache=shared_cache)
    full = run(request, around, tmp_path / "full")
    left: list[None] = []  # a check that is still passed each

    def check(self: Deadline) -> None:
        if not left:
            raise TimeUpError
        left.pop()

    for n_checks in (0, 2, 7):
        left[:], cut = [None] * n_checks, tmp_path / f"cut-{n_checks}"
        with monkeypatch.context() as patch:
            patch.setattr(Deadline, "check", check)
            found = run(request, around, cut, time_limit=100.0)
        assert found.result["stopped_by"] == "time limit"
        assert full.trace[: len(found.trace)] == found.trace
        assert len(found.trace) < len(full.trace)
        if found.trace and loop != "trazor":
            assert found.best["target"] == found.trace[-1]["best"]
        journals = [(folder / "journal.jsonl").read_bytes() for folder in (cut, tmp_path / "full")]
        assert journals[1].startswith(journals[0])
    run(request, around, cut, resume=True)
    assert content(cut) == content(tmp_path / "full")


def test_a_search_inside_its_table_draws_nothing_outside() -> None:
    drawn = {"samples": 60, "evaluations": 15}
    request = asked(
        space="nano-rnn", loop="random", proxy="flops", constants=drawn, inside_table=True
    )
    table = load("nano-rnn")
    surrogate = Surrogate(table.space, table)
    tried = [table.space.from_json(entry["arch"]) for entry in run(request).trace]
    assert tried
    assert all(surrogate.is_inside(arch) for arch in tried)
    anywhere = run(replace(request, inside_table=False))
    assert any(not surrogate.is_inside(table.space.from_json(e["arch"])) for e in anywhere.trace)
    with pytest.raises(InputError, match="inside_table is for surrogates"):
        asked(evaluator="table", inside_table=True)


@pytest.mark.parametrize(
    ("cost", "jobs", "text"),
    [
        (Cost(8050, 1.3), 1, "about 3 h: 8,050 networks at 1.3 s"),
        (Cost(1300, 0.086), 2, "about 56 s: 1,300 networks at 0.086 s in 2 processes"),
    ],
)
def test_the_cost_in_words(cost: Cost, jobs: int, text: str) -> None:
    assert cost.text(jobs) == text


@pytest.mark.parametrize("name", sorted(set(loops.LOOPS) - {"prenas", "budget"}))  # which say none
def test_no_loop_scores_more_than_it_says(name: str) -> None:
    small = {
        "etas": SMALL,
        "trazor": {"population": 6, "mutations": 3, "crossovers": 2, "steps": 3},
        "random": {"samples": 60},
        "regularised": {"population": 5, "tournament": 2, "evaluations": 20},
    }
    for evaluator in ("table", "proxy"):
        proxy = "sum(params)" if name == "trazor" else "depth"
        request = asked(loop=name, proxy=proxy, evaluator=evaluator, constants=small[name])
        most = request.made_loop.most_scored(evaluator != "proxy")
        assert most is not None
        assert 0.5 * most < run(request).result["scored"] <= most


@pytest.mark.parametrize(
    ("space", "loop", "proxy"),
    [
        ("gpt2", "etas", "engine-decoder"),
        ("nano-flexibert", "random", "engine-encoder"),
        ("pit", "etas", "dss"),
        ("nano-rnn", "etas", "hidden-covariance"),
        ("gpt2", "trazor", "dss++"),
        ("autoformer-tiny", "prenas", None),
    ],
)
def test_the_proxy_that_a_search_uses_by_default(space: str, loop: str, proxy: str | None) -> None:
    assert default_proxy(spaces.get(space), loops.get(loop)) == proxy


def test_the_part_of_a_space_that_a_table_knows() -> None:
    assert space_of_rows("gpt2", "gpt2-wt103") == "gpt2-released"
    assert space_of_rows("gpt2-etas", "gpt2-wt103") == "gpt2-etas"
    assert space_of_rows("nano-gpt2", "nano-gpt2") == "nano-gpt2"
    assert space_of_rows("gpt2", None) == "gpt2"
    assert evaluating.table_of(spaces.get("gpt2-released")) == "gpt2-wt103"


def test_all_parts_of_a_combination_are_measured_on_one_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    space, built = spaces.get("nano-gpt2"), []
    build = type(space).build

    def counted(self: Any, arch: Any, seed: int) -> Any:
        built.append((arch, type(seed)))
        return build(self, arch, seed)

    monkeypatch.setattr(type(space), "build", counted)
    rng = random.Random(0)
    archs = [space.sample(rng) for _ in range(3)]
    proxy = find("rank-mean(rank-sum(snip, grad-norm), ntkt, depth)")
    quick = Context(folder=tmp_path, is_quick=True)
    together = Scorer(proxy, space, Measurements(quick), Ledger(space))
    found = together.scores(archs)
    assert sorted(map(str, built)) == sorted(str((arch, ByName)) for arch in archs)
    # Leaf by leaf, each on a network of its own, the scores are the same.
    alone = Measurements(replace(quick, folder=tmp_path / "alone"))
    for index, leaf in enumerate(together.leaves):
        values = [together.ledger.get("score", arch)[index] for arch in archs]
        assert leaf.score(space, archs, alone).tolist() == values
    assert len(found) == 3
    assert len(built) == 3 + 3 * 3


def test_networks_as_ranked_have_the_scores_of_rank_and_quick_ones_are_cached_apart(
    tmp_path: Path,
) -> None:
    around = Resources(cache=tmp_path)
    kinds = {}
    for kind in ("as-ranked", "quick"):
        small = {"samples": 3}
        request = asked(loop="random", proxy="snip", evaluator="proxy", constants=small)
        kinds[kind] = run(replace(request, networks=kind), around)
    best = spaces.get("nano-gpt2").from_json(kinds["as-ranked"].best["arch"])
    ranked = find("snip").score(
        spaces.get("nano-gpt2"), [best], Measurements(Context(folder=tmp_path))
    )
    assert kinds["as-ranked"].best["score"] == ranked[0]
    scores = [[entry["score"] for entry in found.trace] for found in kinds.values()]
    assert scores[0] != scores[1]
    np.testing.assert_allclose(scores[0], scores[1], rtol=0.2)


def test_a_search_that_does_not_say_how_its_networks_are_has_them_as_ranked() -> None:
    request = asked(proxy="snip")
    stored = request.to_json()
    assert Request.from_json(stored).to_json() == stored
    assert stored.pop("networks") == request.networks == "quick"
    earlier = Request.from_json(stored)
    assert earlier.networks == "as-ranked"
    assert earlier.to_json() == stored
    assert asked(evaluator="table").networks == "as-ranked"
    with pytest.raises(LookupError, match="unknown kind of networks 'quack'; did you mean 'quick'"):
        asked(networks="quack")


@pytest.mark.parametrize(
    ("jobs", "seconds", "expected"), [(None, 1.0, 2), (None, 0.01, 1), (1, 1.0, 1)]
)
def test_a_long_search_uses_every_core_unless_told_otherwise(
    jobs: int | None, seconds: float, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(searching, "n_cores", lambda: 2)
    assert command("search").make_context("search", ["nano-gpt2"]).params["jobs"] is None
    assert Resources(jobs=jobs).workers_for(Cost(100, seconds)).jobs == expected
    assert Resources(jobs=jobs).workers_for(None).jobs == 1


# Ranks as columns: of sizes alone, with a term that networks are run for, below another formula.
OF_RANKS = (
    "sub(rank-of-depth, rank-of-parameters)",
    "mul(rank-of-flops, sum(fro(W)))",
    "rank-mean(sub(rank-of-depth, rank-of-parameters), mul(depth, rank-of-flops))",
)


def shares(values: list[float]) -> FloatArray:
    """Ranks divided by their number, by scipy."""
    found: FloatArray = rankdata(values) / len(values)
    return found


@pytest.mark.parametrize("batches", [(9,), (1,) * 9, (4, 4, 1), (2, 7)])
@pytest.mark.parametrize("pooled", [False, True])
def test_ranks_as_columns_do_not_depend_on_what_is_measured_together(
    batches: tuple[int, ...], pooled: bool, shared_cache: Path
) -> None:
    space, rng = spaces.get("nano-gpt2"), random.Random(5)
    archs = [space.sample(rng) for _ in range(9)]
    pool = [*archs, *(space.sample(rng) for _ in range(3))] if pooled else None
    depth, size, flops = (
        [float(of(arch)) for arch in archs] for of in (space.depth, space.parameters, space.flops)
    )
    measurements = Measurements(Context(folder=shared_cache))
    sums = find("sum(fro(W))").score(space, archs, measurements)
    less, more = shares(depth) - shares(size), np.array(depth) * shares(flops)
    by_hand = (less, shares(flops) * sums, (rankdata(less) + rankdata(more)) / 2)
    for text, expected in zip(OF_RANKS, by_hand, strict=True):
        scorer = Scorer(find(text), space, measurements, Ledger(space), pool)
        start = 0
        for n in batches:
            scorer.scores(archs[start : start + n])
            start += n
        # At every comparison the ranks are those among all that were scored, here all nine.
        np.testing.assert_allclose(scorer.scores(archs), expected, rtol=1e-5)
        np.testing.assert_allclose(scorer.scores(archs[2:4]), expected[2:4], rtol=1e-5)


@pytest.mark.parametrize("proxy", OF_RANKS)
@pytest.mark.parametrize("loop", ["etas", "random"])
def test_a_time_limit_that_is_not_reached_changes_nothing(
    proxy: str, loop: str, tmp_path: Path
) -> None:
    constants = {"samples": 6, "mutants": 5, "iterations": 2} if loop == "etas" else {"samples": 9}
    request = asked(loop=loop, proxy=proxy, evaluator="proxy", constants=constants)
    around = Resources(cache=tmp_path / "cache")
    for limit in (None, 1e6):
        run(request, around, tmp_path / str(limit), time_limit=limit)
    assert content(tmp_path / "None") == content(tmp_path / "1000000.0")
