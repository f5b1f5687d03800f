"""The limit of memory, and networks that are counted before they take any."""

from __future__ import annotations

import os
import random
from io import BytesIO

import numpy as np
import pytest
import torch
from torch import nn

import spaces
from spaces import memory
from spaces.errors import MemoryLimitError
from spaces.images import noise_images
from spaces.minibatch import Minibatch, text_windows, zipf_tokens
from spaces.outlines import MOST_PARTS, check_pass, counted, outline
from spaces.tokenizer import windows


@pytest.fixture
def ten_megabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(memory.VARIABLE, "10MB")


def test_the_default_is_half_of_the_free_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(memory.VARIABLE, raising=False)
    monkeypatch.setattr(memory, "free", lambda: 1000)
    assert memory.limit() == 500
    with memory.limited_to(7):
        assert memory.limit() == 7
    with memory.limited_to(None):
        assert memory.limit() == 500
    assert memory.VARIABLE not in os.environ


def test_free_memory_is_below_that_of_the_machine() -> None:
    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 < memory.free() <= machine


@pytest.mark.usefixtures("ten_megabytes")
def test_batches_are_counted_before_they_are_drawn() -> None:
    for draw in (
        lambda: zipf_tokens(50, (1_000_000_000, 64), 0),
        lambda: zipf_tokens(10**12, (2, 2), 0),
        lambda: text_windows(BytesIO(b"some text"), 9, (1_000_000_000, 4), 0),
        lambda: windows(np.arange(9), (1_000_000_000, 4), 0),
        lambda: noise_images((4, 3, 100_000, 100_000), 0),
    ):
        with pytest.raises(MemoryLimitError, match="allowed: make it smaller, or give --memory"):
            draw()
    assert zipf_tokens(50, (2, 3), 0).shape == (2, 3)
    memory.check_batch((10, 1 << 17))
    with pytest.raises(MemoryLimitError, match="a batch of 10 x 131,073 needs about 10 MB"):
        memory.check_batch((10, (1 << 17) + 1))


@pytest.mark.usefixtures("ten_megabytes")
def test_a_network_that_does_not_fit_is_never_allocated() -> None:
    layers = [lambda: nn.Linear(1000, 1000), lambda: nn.Linear(10**6, 10**6)]
    assert outline(layers[0], "it").weight.device.type == "meta"
    with pytest.raises(MemoryLimitError, match=r"beginning of it needs about 3,725\.3 GB"):
        outline(layers[1], "it")
    with pytest.raises(MemoryLimitError), counted("it"):
        nn.Sequential(*(layers[0]() for _ in range(3)))
    with counted("it"):
        nn.Sequential(layers[0](), layers[0]())
    assert nn.Linear(2000, 2000).weight.numel() == 4_000_000  # nobody counts outside


@pytest.mark.slow
def test_a_network_of_endless_modules_ends() -> None:
    made = 0

    def endless() -> nn.Module:
        nonlocal made
        model = nn.Module()
        while True:
            made += 1
            model.add_module(f"layer{made}", nn.Identity())

    with pytest.raises(MemoryLimitError, match="more than 8,000 modules"):
        outline(endless, "it")
    assert made == MOST_PARTS + 1


def test_what_a_pass_makes_counts_and_its_views_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    model = outline(lambda: nn.Sequential(nn.Linear(100, 100), nn.Flatten(0)), "it")
    inputs = torch.empty(1000, 100, device="meta")
    # The inputs and the outputs of one matrix, that matrix and its gradient, with biases.
    needed = 2 * 1000 * 100 * 4 + 2 * 10_100 * 4
    monkeypatch.setenv(memory.VARIABLE, f"{needed}B")
    check_pass(model, inputs, "it")
    monkeypatch.setenv(memory.VARIABLE, f"{needed - 1}B")
    with pytest.raises(MemoryLimitError):
        check_pass(model, inputs, "it")


@pytest.mark.parametrize("name", ["nano-gpt2", "nano-flexibert", "nano-rnn", "nano-autoformer"])
def test_a_batch_that_no_pass_fits_is_refused_before_it_is_drawn(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(memory.VARIABLE, "8GB")
    space = spaces.get(name)
    arch = space.sample(random.Random(0))
    with pytest.raises(MemoryLimitError, match="1,000,000"):
        Minibatch(inputs=1_000_000).check_pass(space, arch, None)
    Minibatch(inputs=1_000_000).check_pass(space, arch, chunk=2)
    Minibatch(inputs=16).check_pass(space, arch, None)


def test_a_model_that_needs_numbers_is_left_to_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(memory.VARIABLE, "64GB")

    class Needy(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x if float(x[0, 0]) else -x

    check_pass(Needy(), torch.empty(1 << 20, 1 << 10, device="meta"), "it")
