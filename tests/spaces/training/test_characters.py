"""Rendered characters: seeded, whole fonts held out, every class visible."""

from __future__ import annotations

import itertools
import random

import pytest
import torch

import spaces
from spaces.errors import BatchError, UnknownNameError
from spaces.training import characters
from spaces.training.shared_tasks import Characters, task_of
from tests.spaces.test_supernet import TEXT, VISION

ALPHABET = characters.DIGITS_AND_CAPITALS


def test_no_font_is_in_two_parts() -> None:
    for first, second in itertools.combinations(characters.FONTS.values(), 2):
        assert not set(first) & set(second)


@pytest.mark.parametrize("part", characters.FONTS)
def test_every_character_of_every_font_is_drawn_and_differs(part: str) -> None:
    drawn = characters.glyphs(part, ALPHABET + characters.SMALL_LETTERS)
    assert drawn.shape == (len(characters.FONTS[part]), 62, 1, 32, 32)
    assert float(drawn.min()) >= 0
    assert float(drawn.max()) <= 1
    assert (drawn.flatten(2).sum(2) > 10).all()
    capitals = drawn[:, :36].flatten(2)
    for font in capitals:
        same = torch.cdist(font, font) + 10 * torch.eye(36)
        assert float(same.min()) > 1


def test_a_batch_depends_on_its_numbers_alone() -> None:
    task = Characters(16)
    torch.manual_seed(0)
    first, same = task.batch(3, 5, 8), task.batch(3, 5, 8)
    assert torch.equal(first.inputs, same.inputs)
    for other in (task.batch(4, 5, 8), task.batch(3, 6, 8)):
        assert not torch.equal(first.inputs, other.inputs)
    assert first.inputs.shape == (8, 3, 16, 16)
    assert first.inputs.dtype == torch.float32
    assert torch.equal(task.held_out("test", 5).inputs, task.held_out("test", 5).inputs)
    assert task.held_out("valid", 400).labels.unique().numel() == 36


def test_a_measure_counts_what_is_right() -> None:
    task, batch = Characters(12), Characters(12).held_out("valid", 300)

    class Oracle:
        def __call__(self, inputs: torch.Tensor) -> torch.Tensor:
            return inputs

        def logits(self, hidden: torch.Tensor) -> torch.Tensor:
            start = next(i for i in range(300) if torch.equal(batch.inputs[i], hidden[0]))
            labels = batch.labels[start : start + len(hidden)]
            wrong = (labels + 1) % 36
            chosen = torch.where(torch.arange(start, start + len(hidden)) < 75, wrong, labels)
            return torch.nn.functional.one_hot(chosen, 40).float()

    found = task.measure(Oracle(), batch)
    assert found.value == pytest.approx(0.75)
    assert found.error == pytest.approx((0.75 * 0.25 / 300) ** 0.5)


def test_a_task_must_fit_its_space() -> None:
    assert task_of(spaces.get("nano-autoformer")).name == "characters"
    assert task_of(spaces.get("nano-gpt2")).name == "text"
    with pytest.raises(UnknownNameError, match="unknown dataset 'digit'; did you mean 'digits'"):
        task_of(VISION, "digit")
    with pytest.raises(BatchError, match="has 5 classes, fewer than dataset characters"):
        task_of(VISION, "characters")
    with pytest.raises(BatchError, match="reads tokens, and dataset characters has none"):
        task_of(TEXT, "characters")


def test_text_has_a_half_for_choices_and_a_half_for_reports() -> None:
    task = task_of(spaces.get("nano-gpt2"))
    valid, test = (task.held_out(part, 10_000).inputs for part in ("valid", "test"))
    assert len(valid) == len(test) == 360
    space = spaces.get("nano-gpt2")
    arch = min((space.sample(random.Random(s)) for s in range(9)), key=space.parameters)
    found = task.measure(space.build(arch, 0), task.held_out("valid", 20))
    assert -6 < found.value < -5  # near log 256
