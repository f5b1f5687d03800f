"""A user's tokenizer file for the text of a batch: a tokenizer.json of Hugging Face.

It is known by the digest of its contents, as a corpus is. The library that reads it, `tokenizers`,
is optional; it runs in a process of its own with limits of time and memory.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spaces import limited_process, memory
from spaces.errors import BatchError
from spaces.limited_process import LimitError, ProgramError
from spaces.untrusted import UntrustedError, parse_json, read_regular, user_path

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
        where = str(user_path(path).resolve())
        _encoded(where, b"")
        return Tokenizer(hashlib.sha256(_read(where)).hexdigest(), where)

    def ids(self, text: bytes, vocabulary: int) -> NDArray[np.int64]:
        """The token ids (n,) of the text, all below the vocabulary."""
        if self.path is None:
            digest = self.digest[:12]
            raise BatchError(
                f"this needs the tokenizer with SHA-256 {digest}...; give it with --tokenizer"
            )
        if hashlib.sha256(_read(self.path)).hexdigest() != self.digest:
            raise BatchError(
                f"tokenizer {self.path} has changed since it was first used; restore it, or start"
                " anew"
            )
        encoded = _encoded(self.path, text)
        largest = int(encoded.max(initial=-1))
        if largest >= vocabulary:
            raise BatchError(
                f"tokenizer {self.path} gives token {largest}; these models know {vocabulary:,}"
                " tokens"
            )
        return encoded


def windows(ids: NDArray[np.int64], shape: tuple[int, int], seed: int) -> NDArray[np.int64]:
    """Rows (B, T) of consecutive tokens, at places drawn from the seed."""
    memory.check_batch(shape)
    B, T = shape
    draws = np.random.Generator(np.random.Philox(seed)).random(B)
    starts = [math.floor(draw * (len(ids) - T + 1)) for draw in draws]
    return np.stack([ids[start : start + T] for start in starts])


def _read(path: str) -> bytes:
    """The file's bytes, read once per process."""
    try:
        return _contents(path)
    except UntrustedError as error:
        raise BatchError(f"tokenizer {error}") from None
    except OSError as error:
        raise BatchError(f"tokenizer {path} cannot be read: {error.strerror or error}") from None


@lru_cache(maxsize=2)
def _contents(path: str) -> bytes:
    return read_regular(Path(path), LARGEST)


# Normalizers and regular expressions of a file can take any time and memory.
PROGRAM = """
from array import array
from tokenizers import Tokenizer

def answer(data):
    size, _, rest = data.partition(b"\\n")
    tokenizer = Tokenizer.from_str(rest[:int(size)].decode("utf-8"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    text = rest[int(size):].decode("utf-8", "replace")
    return array("q", tokenizer.encode(text, add_special_tokens=False).ids).tobytes()
"""
SECONDS, MEMORY = 10, 2 << 30  # of the processor, and bytes; a sound file needs a fifth
_MOST_GROWTH = 64  # times, of the text by all replacements together


def _parsed(path: str) -> dict[str, Any]:
    """The JSON object in the file."""
    try:
        document = parse_json(_read(path), path)
    except UntrustedError as error:
        raise BatchError(f"tokenizer {path} is not a tokenizer.json: it {error.strerror}") from None
    if not isinstance(document, dict):
        raise BatchError(f"tokenizer {path} is not a tokenizer.json: it is not an object")
    return document


def _growth(normalizer: Any) -> float:
    """How many times as long the replacements of a normalizer can make a text."""
    if not isinstance(normalizer, dict):
        return 1.0
    parts = normalizer.get("normalizers")
    if isinstance(parts, list):
        return math.prod(map(_growth, parts))
    pattern, content = normalizer.get("pattern"), normalizer.get("content")
    if not isinstance(pattern, dict) or not isinstance(content, str):
        return 1.0
    return max(1.0, len(content) / max(1, len(str(pattern.get("String", "?")))))


@lru_cache(maxsize=2)
def _encoded(path: str, text: bytes) -> NDArray[np.int64]:
    """The token ids (n,) of the text."""
    if find_spec("tokenizers") is None:
        raise BatchError("--tokenizer needs the library tokenizers: pip install lpzero[hf]")
    contents = _read(path)
    if _growth(_parsed(path).get("normalizer")) > _MOST_GROWTH:
        raise BatchError(f"tokenizer {path} multiplies the text by more than {_MOST_GROWTH}")
    try:
        answer = limited_process.run(
            PROGRAM, b"%d\n" % len(contents) + contents + text, SECONDS, MEMORY
        )
    except LimitError:
        raise BatchError(
            f"tokenizer {path} takes more than {SECONDS} s or {MEMORY >> 30} GB for this text"
        ) from None
    except ProgramError as error:
        what = "cannot read this text" if text else "is not a tokenizer.json of Hugging Face"
        raise BatchError(f"tokenizer {path} {what}: {error}") from None
    return np.frombuffer(answer, dtype=np.int64)
