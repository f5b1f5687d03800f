"""Minibatches other than the space's own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import spaces
from spaces.errors import BatchError
from spaces.minibatch import Corpus, Minibatch, to_arguments

TEXT = bytes(range(256)) * 2


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_bytes(TEXT)
    return path


def test_the_spaces_own_sizes_give_its_own_batch() -> None:
    for name in ("gpt2", "nano-gpt2", "flexibert"):
        space = spaces.get(name)
        chosen = Minibatch(*space.batch_shape)
        assert torch.equal(chosen.of(space, 3), space.batch(3))


def test_batch_and_length_are_the_shape_and_the_rest_is_the_spaces() -> None:
    gpt2, vision = spaces.get("gpt2"), spaces.get("autoformer-tiny")
    assert Minibatch(5, 11).of(gpt2, 0).shape == (5, 11)
    assert Minibatch(length=11).of(gpt2, 0).shape == (2, 11)
    assert Minibatch(3).of(vision, 0).shape == (3, 3, 224, 224)


def test_a_corpus_is_read_as_bytes_at_places_drawn_from_the_seed(corpus: Path) -> None:
    chosen = Minibatch(4, 20, Corpus.of(corpus))
    found = chosen.of(spaces.get("gpt2"), 0)
    assert found.shape == (4, 20)
    for row in found.tolist():
        assert bytes(row) in TEXT
    assert not torch.equal(found, chosen.of(spaces.get("gpt2"), 1))


def test_a_choice_survives_json_and_is_the_options_that_made_it(corpus: Path) -> None:
    chosen = Minibatch.chosen(4, None, str(corpus))
    assert chosen is not None
    assert Minibatch.from_json(chosen.to_json()) == chosen
    assert to_arguments(chosen.to_json()) == ["--batch", "4", "--corpus", str(corpus)]
    assert Minibatch.chosen(None, None, None) is None


@pytest.mark.parametrize(
    ("chosen", "space", "message"),
    [
        (lambda path: Minibatch(1), "gpt2", "batch is 1, expected at least 2"),
        (lambda path: Minibatch(length=193), "gpt2", "read at most 192"),
        (lambda path: Minibatch(length=9), "autoformer-tiny", "only --batch"),
        (lambda path: Minibatch(corpus=Corpus.of(path / "none")), "gpt2", "cannot be read"),
        (lambda path: Minibatch(corpus=Corpus.of(path)), "gpt2", "cannot be read"),
        (lambda path: Minibatch(corpus=Corpus("0" * 64)), "gpt2", "give it with --corpus"),
        (lambda path: Minibatch(corpus=Corpus("0" * 64, str(path / "a"))), "gpt2", "has changed"),
        (lambda path: Minibatch(corpus=Corpus.of(path / "a")), "gpt2", "expected more than 64"),
    ],
)
def test_a_bad_choice_is_one_clear_line(
    chosen: object, space: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "a").write_bytes(b"too short")
    with pytest.raises(BatchError, match=message) as caught:
        chosen(tmp_path).of(spaces.get(space), 0)  # type: ignore[operator]
    assert "\n" not in str(caught.value)
