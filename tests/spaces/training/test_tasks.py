"""The training tasks measure what they say."""

import pytest
import torch

import spaces
from spaces.training.tasks import (
    TASKS,
    CausalLanguageModelling,
    ReplacedTokenDetection,
    balanced_accuracy,
)


@pytest.fixture(scope="module")
def replaced() -> ReplacedTokenDetection:
    return ReplacedTokenDetection(64)


def test_training_and_held_out_text_do_not_overlap(replaced: ReplacedTokenDetection) -> None:
    train = bytes(replaced.train_text.tolist())
    last_window = bytes(replaced.held_out[-1].tolist())
    assert last_window not in train


def test_an_untrained_decoder_is_near_the_uniform_loss() -> None:
    space = spaces.NANO_GPT2
    task = CausalLanguageModelling(64)
    arch = spaces.gpt2.Gpt2Arch(32, (2,), (32,), -1, 1)
    target = task.target(task.prepare(space, arch, 0))
    assert target == pytest.approx(-torch.log(torch.tensor(256.0)).item(), abs=0.3)


def test_corruption_marks_exactly_the_bytes_that_changed(replaced: ReplacedTokenDetection) -> None:
    tokens = replaced.held_out[:100]
    corrupted, marks = replaced.corrupt(tokens, torch.Generator().manual_seed(0))
    assert torch.equal(corrupted != tokens, marks)
    # A replacement may be the byte that was there, so a little less than the share differs.
    assert 0.10 < marks.double().mean() < replaced.replaced_share + 0.01


@pytest.mark.parametrize(
    ("logits", "expected"),
    [([9.0, 1.0, 2.0, 3.0], 1.0), ([0.0, 9.0, 2.0, 3.0], 1 / 3), ([3.0, 9.0, 2.0, 1.0], 1 / 3)],
)
def test_balanced_accuracy_by_hand(logits: list[float], expected: float) -> None:
    marks = torch.tensor([True, False, False, False])
    assert balanced_accuracy(torch.tensor(logits), marks) == pytest.approx(expected)


@pytest.mark.parametrize("name", TASKS)
def test_a_task_names_its_target(name: str) -> None:
    assert TASKS[name].target_name
