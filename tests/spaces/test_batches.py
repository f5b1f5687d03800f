"""Token batches: Zipf's frequencies, and windows that stand in the text."""

from __future__ import annotations

import numpy as np
import pytest

from spaces.batches import pydoc_text, text_tokens, zipf_tokens


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
