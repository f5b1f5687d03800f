"""Minibatches: Zipf's frequencies, windows of text, and those other than the space's own."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch

import spaces
from spaces.errors import BatchError
from spaces.minibatch import (
    Corpus,
    Minibatch,
    pydoc_text,
    text_tokens,
    zipf_tokens,
)

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


def test_a_choice_survives_json(corpus: Path) -> None:
    chosen = Minibatch.chosen(4, None, str(corpus))
    assert chosen is not None
    assert Minibatch.from_json(chosen.to_json()) == chosen
    assert Minibatch.chosen(None, None, None) is None


@pytest.mark.parametrize(
    ("chosen", "space", "message"),
    [
        (lambda path: Minibatch(1), "gpt2", "batch is 1, expected at least 2"),
        (lambda path: Minibatch(length=193), "gpt2", "read at most 192"),
        (lambda path: Minibatch(length=9), "autoformer-tiny", "only --batch"),
        (lambda path: Minibatch(corpus=Corpus.of(path / "none")), "gpt2", "cannot be read"),
        (lambda path: Minibatch(corpus=Corpus.of(path)), "gpt2", "not a regular file"),
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


WORDS = {word: place for place, word in enumerate(["[UNK]", *(f"w{i}" for i in range(40))])}
SENTENCE = " ".join(f"w{i % 40}" for i in range(500))


def tokenizer_file(path: Path) -> Path:
    """A tokenizer of whole words, with settings of padding and truncation that must not count."""
    tokenizers = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel(WORDS, unk_token="[UNK]"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    made.enable_truncation(3)
    made.enable_padding(length=900)
    made.save(str(path))
    return path


def test_a_tokenizer_reads_the_corpus_at_places_drawn_from_the_seed(tmp_path: Path) -> None:
    text, reads = tmp_path / "words.txt", tokenizer_file(tmp_path / "tokenizer.json")
    text.write_text(SENTENCE)
    chosen = Minibatch.chosen(3, 12, str(text), str(reads))
    assert chosen is not None
    found = chosen.of(spaces.get("gpt2"), 0)
    assert found.shape == (3, 12)
    for row in found.tolist():
        first = row[0] - 1
        assert row == [1 + (first + i) % 40 for i in range(12)]
    assert not torch.equal(found, chosen.of(spaces.get("gpt2"), 1))
    again = Minibatch.from_json(chosen.to_json())
    assert torch.equal(again.of(spaces.get("gpt2"), 0), found)


def test_the_digest_of_a_tokenizer_is_in_a_sketchs_address_and_its_path_is_not(
    tmp_path: Path,
) -> None:
    from lpzero.sketches.sketch import SketchOptions, address

    text = tmp_path / "words.txt"
    text.write_text(SENTENCE)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    files = [tokenizer_file(tmp_path / name / "tokenizer.json") for name in ("a", "b")]
    space = spaces.get("gpt2")
    arch = space.sample(random.Random(0))

    def where(tokenizer: Path | None) -> str:
        chosen = Minibatch.chosen(None, None, str(text), tokenizer and str(tokenizer))
        return address(space, arch, SketchOptions(batch=chosen))

    assert where(files[0]) == where(files[1]) != where(None)


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"{", "not a tokenizer.json"),
        (b'{"model": {"type": "Cake"}}', "not a tokenizer.json"),
        (b"\xff\xfe", "not a tokenizer.json"),
        (None, "cannot be read"),
    ],
)
def test_a_bad_tokenizer_is_one_clear_line(
    contents: bytes | None, message: str, tmp_path: Path, corpus: Path
) -> None:
    pytest.importorskip("tokenizers")
    path = tmp_path / "tokenizer.json"
    if contents is not None:
        path.write_bytes(contents)
    with pytest.raises(BatchError, match=message) as caught:
        Minibatch.chosen(None, None, str(corpus), str(path))
    assert "\n" not in str(caught.value)


def test_a_tokenizer_must_fit_the_models_and_needs_a_corpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, reads = tmp_path / "words.txt", tokenizer_file(tmp_path / "tokenizer.json")
    text.write_text(SENTENCE)
    chosen = Minibatch.chosen(3, 12, str(text), str(reads))
    assert chosen is not None
    with pytest.raises(BatchError, match="gives token 40; these models know 40 tokens"):
        chosen.of_text(40, (3, 12), 0)
    with pytest.raises(BatchError, match="has 500 tokens"):
        chosen.of_text(256, (3, 501), 0)
    with pytest.raises(BatchError, match="--corpus"):
        Minibatch.chosen(3, 12, None, str(reads))
    monkeypatch.setattr("spaces.tokenizer.LARGEST", 10)
    other = tmp_path / "other.json"
    other.write_bytes(reads.read_bytes())
    with pytest.raises(BatchError, match="at most 10 are read"):
        Minibatch.chosen(3, 12, str(text), str(other))


def test_words_are_as_frequent_as_their_rank_says() -> None:
    tokens = zipf_tokens(1000, (200, 500), 0).numpy().ravel()
    weights = 1 / (np.arange(1000) + 2.7)
    expected = weights / weights.sum()
    for word in (0, 1, 5, 50):
        assert (tokens == word).mean() == pytest.approx(expected[word], rel=0.1)
    assert tokens.max() < 1000


def test_windows_are_different_places_of_the_text() -> None:
    windows = [bytes(row.tolist()) for row in text_tokens((6, 40), 3)]
    assert all(window in pydoc_text() for window in windows)
    assert len(set(windows)) == 6
