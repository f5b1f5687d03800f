"""Metrics by hand, and comparisons from runs to figures."""

from __future__ import annotations

import csv
import json
import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import spaces
from lpzero.cli.main import run as command
from lpzero.errors import InputError
from lpzero.report.drawn_chart import draw
from lpzero.report.figures.convergence import search_curves
from lpzero.search import Request, Resources, comparison, evaluators
from lpzero.search.comparison import (
    best_after,
    compare,
    curve_rows,
    evaluations_to_reach,
    label,
    mean_interval,
    run_folder,
    top_threshold,
)
from lpzero.search.environment import Environment
from lpzero.supernet import trained
from tests.lpzero.search.landscapes import SPACE, Landscape, environment, height, proxy

TRACE = [
    {"evaluations": n, "target": target} for n, target in enumerate([3.0, 5.0, 4.0, 7.0], start=1)
]


def test_best_after_is_carried_on() -> None:
    np.testing.assert_array_equal(best_after(TRACE, 6), [3, 5, 5, 7, 7, 7])
    np.testing.assert_array_equal(best_after(TRACE, 2), [3, 5])
    with pytest.raises(InputError, match="nothing was evaluated"):
        best_after([{"evaluations": 0, "target": 1.0}], 3)


def test_evaluations_to_reach() -> None:
    assert evaluations_to_reach(TRACE, 5.0) == 2
    assert evaluations_to_reach(TRACE, 5.5) == 4
    assert evaluations_to_reach(TRACE, 8.0) is None


def test_the_threshold_is_the_best_hundredth() -> None:
    rng = random.Random(3)
    pool = list(dict.fromkeys(SPACE.sample(rng) for _ in range(400)))
    around = environment(proxy(), pool=pool)
    found = top_threshold(around.sampler, Landscape())
    expected = sorted((height(SPACE, arch) for arch in pool), reverse=True)
    assert found == expected[round(0.01 * len(pool)) - 1]
    expensive = Landscape()
    expensive.is_free = False
    with pytest.raises(InputError, match="too expensive"):
        top_threshold(around.sampler, expensive)


def test_the_interval_of_a_mean_holds_it() -> None:
    values = list(np.random.default_rng(0).normal(5, 2, 400))
    low, high = mean_interval(values)
    assert low < np.mean(values) < high
    assert high - low == pytest.approx(2 * 1.96 * 2 / 20, rel=0.15)
    assert mean_interval([4.0, 4.0]) == (4.0, 4.0)


def arms(*proxies: str) -> list[Request]:
    constants = {"samples": 12, "mutants": 6, "iterations": 1}
    return [
        Request("nano-gpt2", "etas", p, evaluator="table", constants=constants) for p in proxies
    ]


@pytest.mark.slow
def test_a_comparison_is_its_runs(tmp_path: Path) -> None:
    found = compare(arms("none", "parameters"), 3, Resources(), tmp_path / "kept")
    again = compare(arms("none", "parameters"), 3, Resources(jobs=2))
    assert found.rows == again.rows
    for arm, row in zip(arms("none", "parameters"), found.rows, strict=True):
        results = [
            json.loads(
                (
                    run_folder(tmp_path / "kept", label(arm.loop, arm.proxy), seed) / "result.json"
                ).read_text()
            )
            for seed in range(3)
        ]
        best = [result["best"]["target"] for result in results]
        assert row["best"] == pytest.approx(np.mean(best))
        assert row["seeds"] == 3
        assert found.threshold is not None
        reached = [evaluations_to_reach(r["trace"], found.threshold) for r in results]
        assert row["reached"] == sum(n is not None for n in reached)
    with pytest.raises(InputError, match="holds a comparison"):
        compare(arms("none"), 3, Resources(), tmp_path / "kept")


def test_curves_are_numbers_first_and_then_a_picture() -> None:
    runs = [{"evaluations": 4, "trace": TRACE}, {"evaluations": 2, "trace": TRACE[:2]}]
    rows = curve_rows({"a": runs})
    assert [row["mean"] for row in rows] == [3, 5, 5, 6]
    axes = draw(search_curves(rows, "height", 5.0)).axes[0]
    curve, level = axes.get_lines()
    np.testing.assert_array_equal(curve.get_xydata(), [(1, 3), (2, 5), (3, 5), (4, 6)])
    assert level.get_ydata()[0] == 5.0


@pytest.mark.slow
def test_the_command_compares_and_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "compared"
    words = [
        "search",
        "nano-gpt2",
        "--compare",
        "--seeds",
        "2",
        "--loop",
        "etas",
        "--loop",
        "random",
        "--proxy",
        "none",
        "--proxy",
        "depth",
        "--samples",
        "12",
        "--mutants",
        "6",
        "--iterations",
        "1",
        "--evaluations",
        "5",
        "--evaluator",
        "table",
        "--out",
        str(out),
    ]
    assert command([*words, "--format", "json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert [row["arm"] for row in result["rows"]] == [
        "etas, none",
        "etas, depth",
        "random, none",
        "random, depth",
    ]
    assert {"curves.csv", "curves.pdf", "curves.png", "comparison.csv", "comparison.json"} <= {
        path.name for path in out.iterdir()
    }
    with (out / "curves.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == len(result["curves"])
    before = (out / "comparison.json").read_bytes()
    capsys.readouterr()
    monkeypatch.setattr(Environment, "scores", lambda *_: 1 / 0)  # what is done is left alone
    assert command([*words, "--resume"]) == 0
    assert (out / "comparison.json").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--compare", "--loop", "etas"], "--compare needs proxies"),
        (["--compare", "--loop", "etas", "--proxy", "depth", "--steps", "3"], "has steps"),
        (["--compare", "--loop", "etas", "--proxy", "depth", "--seed", "3"], "not --seed"),
        (["--loop", "etas", "--proxy", "depth", "--seeds", "3"], "--seeds is for --compare"),
        (
            ["--compare", "--loop", "etas", "--proxy", "depth", "--evaluator", "proxy"],
            "scores of different proxies are not comparable",
        ),
    ],
)
def test_a_comparison_that_cannot_be_made_is_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(["search", "nano-gpt2", *words]) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert (out, err.count("\n")) == ("", 1)


def test_the_best_hundredth_of_different_targets_by_hand() -> None:
    """Of 300 targets from 1 to 300 the best three are 300, 299 and 298."""
    rng = random.Random(0)
    pool = list(dict.fromkeys(SPACE.sample(rng) for _ in range(2000)))[:300]
    places = {arch: place for place, arch in enumerate(pool, 1)}
    around = environment(proxy(), Landscape(), pool=pool)
    ranked = Landscape(lambda space, arch: float(places[arch]))
    assert top_threshold(around.sampler, ranked) == 298.0


def test_a_target_at_the_threshold_reaches_it() -> None:
    assert evaluations_to_reach(TRACE, 5.0) == 2
    assert evaluations_to_reach(TRACE, 7.1) is None


def test_searches_inside_a_comparison_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs in a worker must not send work to the cluster that waits for it."""
    given: list[Resources] = []

    def stream(task: Any, todo: Any, workers: Any, label: Any) -> Any:
        given.append(task.resources)
        assert (workers.jobs, workers.backend, workers.scheduler) == (5, "dask", "tcp://x:1")
        assert label == "comparing"
        raise InputError("seen")
        yield  # a generator, as the stream is

    monkeypatch.setattr(comparison, "stream", stream)
    outside = Resources(
        device="cpu:0", jobs=5, backend="dask", scheduler="tcp://x:1", label="comparing"
    )
    with pytest.raises(InputError, match="seen"):
        compare(arms("none"), 2, outside)
    (inside,) = given
    assert (inside.jobs, inside.backend, inside.scheduler) == (1, "loky", None)
    assert (inside.label, inside.say, inside.device) == (None, None, "cpu:0")


@pytest.mark.slow
def test_a_supernet_measures_architectures_of_its_own_space_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Trained:
        """Stands in for a finished training of nano-autoformer."""

        supernet = SimpleNamespace(space=spaces.get("nano-autoformer"))
        task = SimpleNamespace(target_name="accuracy")

        def measure(self, arch: int) -> SimpleNamespace:
            return SimpleNamespace(value=arch / 10)

    monkeypatch.setattr(trained, "open_supernet", lambda folder: Trained())
    made = evaluators.SupernetEvaluator(spaces.get("nano-autoformer"), "runs/x")
    assert made.target == "accuracy in the supernet"
    assert list(made.evaluate([1, 3])) == [0.1, 0.3]
    with pytest.raises(InputError, match="a supernet of space nano-autoformer, not nano-gpt2"):
        evaluators.SupernetEvaluator(spaces.get("nano-gpt2"), "runs/x")
