"""Token batches: a Zipf stream for word vocabularies, windows of text for bytes.

torch is imported only where a tensor is created, so that `pydoc_digest` does not need it.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from torch import Tensor


def zipf_tokens(vocabulary: int, shape: tuple[int, int], seed: int) -> Tensor:
    """Token ids drawn with probability proportional to 1 / (rank + 2.7), int64 (B, T).

    The offset is Mandelbrot's usual value for English words. Ids are ranks, as in vocabularies
    sorted by frequency. NumPy's Philox stream is the same on every platform.
    """
    import torch

    weights = 1.0 / (np.arange(vocabulary) + 2.7)
    cumulative = np.cumsum(weights / weights.sum())
    draws = np.random.Generator(np.random.Philox(seed)).random(shape)
    ids = np.minimum(np.searchsorted(cumulative, draws), vocabulary - 1)
    return torch.from_numpy(ids.astype(np.int64))


@lru_cache(maxsize=1)
def pydoc_text() -> bytes:
    """The English text that comes with CPython: the help topics, sorted by name."""
    from pydoc_data.topics import topics

    return "\n".join(topics[name] for name in sorted(topics)).encode("utf-8")


def pydoc_digest() -> str:
    """A digest of the text, because it differs between Python versions."""
    return hashlib.sha256(pydoc_text()).hexdigest()


def text_tokens(shape: tuple[int, int], seed: int) -> Tensor:
    """Windows of the text that comes with CPython as byte ids, int64 (B, T)."""
    return text_windows(pydoc_text(), shape, seed)


def text_windows(contents: bytes, shape: tuple[int, int], seed: int) -> Tensor:
    """Windows of a text as byte ids, int64 (B, T), at places drawn from the seed."""
    import torch

    text = np.frombuffer(contents, dtype=np.uint8)
    n_windows, length = shape
    starts = np.random.Generator(np.random.Philox(seed)).integers(0, len(text) - length, n_windows)
    windows = np.stack([text[start : start + length] for start in starts])
    return torch.from_numpy(windows.astype(np.int64))
