"""The trainer: deterministic, and it learns."""

import math
from itertools import pairwise

import pytest
import torch

import spaces
from spaces.flexibert import FlexiBertArch, Layer
from spaces.gpt2 import Gpt2Arch
from spaces.training.recipes import PLANS
from spaces.training.table_rows import sample_architectures
from spaces.training.tasks import TASKS
from spaces.training.trainer import LossCurve, Recipe, schedule, train

SHORT = Recipe(steps=6, learning_rate=3e-3, windows=4)
DECODER = Gpt2Arch(32, (2,), (64,), -1, 1)
ENCODER = FlexiBertArch(32, (Layer("dsc5", 2, 64, 1),))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("space", "arch", "task"),
    [(spaces.NANO_GPT2, DECODER, "causal"), (spaces.NANO_FLEXIBERT, ENCODER, "replaced")],
)
def test_same_seed_same_target_and_nothing_global_changes(space, arch, task) -> None:
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    first, again, other = (train(space, arch, TASKS[task](64), SHORT, seed) for seed in (0, 0, 1))
    assert first.target == again.target
    assert first.target != other.target
    assert first.curve == again.curve != other.curve
    assert [step for step, _ in first.curve] == [1, 2, 3, 4, 5, 6]
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads


@pytest.mark.slow
def test_training_lowers_the_loss() -> None:
    task = TASKS["causal"](64)
    before = task.target(task.prepare(spaces.NANO_GPT2, DECODER, 0))
    after = train(spaces.NANO_GPT2, DECODER, task, Recipe(30, 5e-3, windows=8), 0).target
    assert after > before + 1.0


def test_a_training_that_diverges_ends_with_a_reason() -> None:
    space = spaces.NANO_RNN
    exploding = sample_architectures(PLANS["nano-rnn"])[0]
    task = TASKS["causal"](space.batch_shape[1])
    run = train(space, exploding, task, SHORT, 0)
    assert run.failure == "the training loss is not finite after 0 steps"
    assert math.isnan(run.target)
    assert run.steps == 0


@pytest.mark.parametrize("steps", [1, 5, 32, 33, 100, 300])
def test_a_curve_has_at_most_32_points_that_average_every_step_once(steps: int) -> None:
    curve, losses = LossCurve(steps), [float(7 + n % 3) for n in range(steps)]
    for loss in losses:
        curve.add(loss)
    ends = [0, *(int(step) for step, _ in curve.points)]
    assert len(curve.points) == min(steps, 32)
    assert ends[-1] == steps
    for (start, end), (_, mean) in zip(pairwise(ends), curve.points, strict=True):
        assert mean == pytest.approx(sum(losses[start:end]) / (end - start), rel=1e-5)


def test_the_learning_rate_rises_then_falls_to_a_tenth() -> None:
    recipe = Recipe(steps=100, learning_rate=1.0)
    shares = [schedule(step, recipe) for step in range(recipe.steps)]
    assert shares[0] == pytest.approx(0.1)
    assert max(shares) == shares[10] == pytest.approx(1.0)
    assert shares[-1] == pytest.approx(0.1, abs=0.01)
    assert all(a >= b for a, b in pairwise(shares[10:]))
