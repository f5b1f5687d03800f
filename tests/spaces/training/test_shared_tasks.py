"""Batches of the tasks on which supernets are trained: a seed and a step name one batch."""

from __future__ import annotations

import pytest
import torch

from spaces.autoformer import NANO_AUTOFORMER
from spaces.gpt2 import NANO_GPT2
from spaces.minibatch import pydoc_text
from spaces.training.shared_tasks import DATASETS, SharedTask, task_of


@pytest.fixture(params=DATASETS)
def task(request: pytest.FixtureRequest) -> SharedTask:
    if request.param == "digits":
        pytest.importorskip("sklearn", reason="dataset digits needs scikit-learn")
    return task_of(NANO_GPT2 if request.param == "text" else NANO_AUTOFORMER, request.param)


def test_a_batch_depends_on_its_seed_and_its_step_alone(task: SharedTask) -> None:
    first = task.batch(1, 2, 6).inputs
    assert torch.equal(first, task.batch(1, 2, 6).inputs)
    assert not torch.equal(first, task.batch(0, 2, 6).inputs)
    assert not torch.equal(first, task.batch(1, 3, 6).inputs)


def test_windows_are_pieces_of_the_text() -> None:
    rows = task_of(NANO_GPT2).batch(5, 0, 8).inputs
    assert len({bytes(row.tolist()) for row in rows}) == 8
    assert all(bytes(row.tolist()) in pydoc_text() for row in rows)
