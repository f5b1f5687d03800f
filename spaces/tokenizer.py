"""A user's tokenizer file for the text of a batch: a tokenizer.json of Hugging Face.

It is known by the digest of its contents, as a corpus is. The library that reads it, `tokenizers`,
is optional and loaded when the first text is read.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaces.errors import BatchError
from spaces.regular_files import read_regular

LARGEST = 64 << 20  # bytes; the largest vocabularies in use need about half
MOST_TEXT = 4 << 20  # bytes of a corpus that are read: enough for thousands of sequences


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """A tokenizer file by the digest of its contents; without a path nobody knows where it is."""

    digest: str
    path: str | None = None

    @staticmethod
    def of(path: str | Path) -> Tokenizer:
        """The tokenizer in the file; raise BatchError unless it can be read."""
        where = str(Path(path).expanduser().resolve())
        _loaded(where)
        return Tokenizer(hashlib.sha256(_read(where)).hexdigest(), where)

    def ids(self, text: bytes, vocabulary: int) -> NDArray[np.int64]:
        """The token ids (n,) of the beginning of the text, all below the vocabulary."""
        if self.path is None:
            known = self.digest[:12]
            raise BatchError(
                f"this needs the tokenizer with SHA-256 {known}...; give it with --tokenizer"
            )
        if hashlib.sha256(_read(self.path)).hexdigest() != self.digest:
            raise BatchError(
                f"tokenizer {self.path} has changed since it was first used; restore it, or start"
                " anew"
            )
        found = _encoded(self.path, text[:MOST_TEXT])
        largest = int(found.max(initial=-1))
        if largest >= vocabulary:
            raise BatchError(
                f"tokenizer {self.path} gives token {largest}; these models know {vocabulary:,}"
                " tokens"
            )
        return found


def windows(ids: NDArray[np.int64], shape: tuple[int, int], seed: int) -> NDArray[np.int64]:
    """Rows (B, T) of consecutive tokens, at places drawn from the seed."""
    B, T = shape
    draws = np.random.Generator(np.random.Philox(seed)).random(B)
    starts = [math.floor(draw * (len(ids) - T + 1)) for draw in draws]
    return np.stack([ids[start : start + T] for start in starts])


def _read(path: str) -> bytes:
    """The file's bytes, read once per process."""
    try:
        return _contents(path)
    except OSError as error:
        raise BatchError(f"tokenizer {path} cannot be read: {error.strerror or error}") from None


@lru_cache(maxsize=2)
def _contents(path: str) -> bytes:
    return read_regular(Path(path), LARGEST)


@lru_cache(maxsize=2)
def _loaded(path: str) -> Any:
    """The library's tokenizer."""
    text = _read(path)
    try:
        import tokenizers
    except ImportError:
        raise BatchError(
            "--tokenizer needs the library tokenizers: pip install lpzero[hf]"
        ) from None
    try:
        found = tokenizers.Tokenizer.from_str(text.decode("utf-8"))
        found.no_truncation()
        found.no_padding()
    except BaseException as error:  # a malformed file may end in a panic of the library's Rust
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        reason = (str(error).splitlines() or ["no reason given"])[0][:120]
        raise BatchError(
            f"tokenizer {path} is not a tokenizer.json of Hugging Face: {reason}"
        ) from None
    return found


@lru_cache(maxsize=2)
def _encoded(path: str, text: bytes) -> NDArray[np.int64]:
    encoding = _loaded(path).encode(text.decode("utf-8", "replace"), add_special_tokens=False)
    return np.array(encoding.ids, dtype=np.int64)
