"""Minibatches of tokens, and which one networks run on where it is not the space's own.

Tokens are a Zipf stream for word vocabularies, windows of text for bytes. torch is imported only
where a tensor is created, so that `pydoc_digest` does not need it.

A corpus is a file of text, read as bytes: its tokens are the byte values, which every vocabulary
has, at places drawn from the seed; or read through the user's tokenizer file. Both are known by the
digests of their contents; their paths say where to find them.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import numpy as np

from spaces import memory
from spaces.base import Space
from spaces.errors import BatchError
from spaces.images import ImageSpace
from spaces.tokenizer import MOST_TEXT, Tokenizer, windows
from spaces.untrusted import UntrustedError, open_regular, pieces_of, user_path

if TYPE_CHECKING:
    from torch import Tensor

_MIN_INPUTS = 2  # proxies and statistics compare inputs
_MIN_LENGTH = 2  # a next token needs one before it
_BYTES = 256
LARGEST_CORPUS = 1 << 30  # bytes; all of them are hashed, which takes a second or two


@dataclass(frozen=True, slots=True)
class Corpus:
    """A text file by the digest of its contents; without a path nobody knows where it is."""

    digest: str
    path: str | None = None

    @staticmethod
    def of(path: str | Path) -> Corpus:
        """The corpus in the file; raise BatchError unless it can be read."""
        where = str(user_path(path).resolve())
        with _corpus(where) as file:
            return Corpus(_digest(where, _state(file)), where)

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """The file, whose contents must still be the ones of the digest."""
        if self.path is None:
            raise BatchError(
                f"this needs the corpus with SHA-256 {self.digest[:12]}...; give it with --corpus"
            )
        with _corpus(self.path) as file:
            if _digest(self.path, _state(file)) != self.digest:
                raise BatchError(
                    f"corpus {self.path} has changed since it was first used; restore it, or start"
                    " anew"
                )
            yield file


@dataclass(frozen=True, slots=True)
class Minibatch:
    """The number of inputs, their length and their text; None is what the space has.

    A `tokenizer` reads the corpus; without one its bytes are the tokens.
    """

    inputs: int | None = None
    length: int | None = None
    corpus: Corpus | None = None
    tokenizer: Tokenizer | None = None

    def __post_init__(self) -> None:
        if self.tokenizer is not None and self.corpus is None:
            raise BatchError("--tokenizer reads a corpus; give one with --corpus")
        for name, value, least in (
            ("batch", self.inputs, _MIN_INPUTS),
            ("length", self.length, _MIN_LENGTH),
        ):
            if value is not None and value < least:
                raise BatchError(f"{name} is {value}, expected at least {least}")

    @staticmethod
    def chosen(
        inputs: int | None, length: int | None, corpus: str | None, tokenizer: str | None = None
    ) -> Minibatch | None:
        """The choice of these options; None if none of them is given."""
        if inputs is None and length is None and corpus is None and tokenizer is None:
            return None
        text = None if corpus is None else Corpus.of(corpus)
        reads = None if tokenizer is None else Tokenizer.of(tokenizer)
        return Minibatch(inputs, length, text, reads)

    def of(self, space: Space[Any], seed: int) -> Tensor:
        """Token ids (B, T) or images (B, 3, H, W) for the networks of the space."""
        if isinstance(space, ImageSpace):
            if self.length is not None or self.corpus is not None:
                raise BatchError(f"space {space.name} reads images: only --batch can be chosen")
            images: Any = space
            return replace(images, n_images=self.inputs).batch(seed)  # type: ignore[no-any-return]
        shape = self.shape(space)
        if self.corpus is not None:
            return self.of_text(space.vocabulary, shape, seed)
        if space.reads_text:
            other: Any = replace(space, batch_shape=shape)  # type: ignore[type-var]
            return other.batch(seed)  # type: ignore[no-any-return]
        return space.draw_batch(shape, seed)

    def check_pass(self, space: Space[Any], arch: Any, chunk: int | None) -> None:
        """Raise MemoryLimitError unless a pass of the batch through the network fits.

        `chunk` inputs at a time are passed; None is all of them. A batch that is not larger than
        the usual one fits.
        """
        inputs, length = self.shape(space)
        if inputs <= space.batch_shape[0] and length <= space.batch_shape[1]:
            return
        import torch

        from spaces import outlines

        memory.check_batch((inputs, length))
        n_passed = min(inputs, chunk or inputs)
        if isinstance(space, ImageSpace):
            empty = torch.empty(n_passed, 3, space.image, space.image, device="meta")
        else:
            empty = torch.empty(n_passed, length, dtype=torch.int64, device="meta")
        name = f"a network of {space.name} with a batch of {inputs:,}"
        outlines.check_pass(space.build(arch, 0).to("meta"), empty, name)

    def of_text(self, vocabulary: int, shape: tuple[int, int], seed: int) -> Tensor:
        """Sequences (B, T) of the corpus for models that know so many tokens."""
        assert self.corpus is not None, "there is a corpus"
        if self.tokenizer is not None:
            import torch

            with self.corpus.opened() as file:
                ids = self.tokenizer.ids(file.read(MOST_TEXT), vocabulary)
            if len(ids) < shape[1]:
                raise BatchError(
                    f"corpus {self.corpus.path} has {len(ids)} tokens, expected at least"
                    f" {shape[1]}, the length of a sequence"
                )
            return torch.from_numpy(windows(ids, shape, seed))
        if vocabulary < _BYTES:
            raise BatchError(f"{vocabulary} tokens are too few for the bytes of a corpus")
        with self.corpus.opened() as file:
            size = os.fstat(file.fileno()).st_size
            if size <= shape[1]:
                raise BatchError(
                    f"corpus {self.corpus.path} has {size} bytes, expected more than"
                    f" {shape[1]}, the length of a sequence"
                )
            return text_windows(file, size, shape, seed)

    def shape(self, space: Space[Any]) -> tuple[int, int]:
        """The number of inputs, and of tokens per input; raise BatchError if these are too many."""
        usual, most = space.batch_shape, getattr(space, "context", None)
        if most is not None and self.length is not None and self.length > most:
            raise BatchError(f"length is {self.length}; models of {space.name} read at most {most}")
        return self.inputs or usual[0], self.length or usual[1]

    def to_json(self) -> dict[str, Any]:
        """The choice as JSON values, without what is not chosen."""
        fields: dict[str, Any] = {"inputs": self.inputs, "length": self.length}
        if self.corpus is not None:
            fields |= {"corpus": self.corpus.digest, "corpus_path": self.corpus.path}
        if self.tokenizer is not None:
            fields |= {"tokenizer": self.tokenizer.digest, "tokenizer_path": self.tokenizer.path}
        return {name: value for name, value in fields.items() if value is not None}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> Minibatch:
        """The choice from the values of `to_json`."""
        corpus = None
        if value.get("corpus") is not None:
            corpus = Corpus(value["corpus"], value.get("corpus_path"))
        tokenizer = None
        if value.get("tokenizer") is not None:
            tokenizer = Tokenizer(value["tokenizer"], value.get("tokenizer_path"))
        return Minibatch(value.get("inputs"), value.get("length"), corpus, tokenizer)


# Where the files are, which does not change what is in them.
PATHS = ("corpus_path", "tokenizer_path")


@contextmanager
def _corpus(path: str) -> Iterator[BinaryIO]:
    """The opened file; raise BatchError unless it can be read and is not too large."""
    try:
        with open_regular(Path(path), LARGEST_CORPUS) as file:
            yield file
    except UntrustedError as error:
        raise BatchError(f"corpus {error}") from None
    except OSError as error:
        raise BatchError(f"corpus {path} cannot be read: {error.strerror or error}") from None


def _state(file: BinaryIO) -> tuple[int, int]:
    """What changes when the file is written to: its size and time."""
    about = os.fstat(file.fileno())
    return about.st_size, about.st_mtime_ns


@lru_cache(maxsize=2)
def _digest(path: str, state: tuple[int, int]) -> str:
    """The SHA-256 of the file, computed once per process and state of the file."""
    digest = hashlib.sha256()
    for piece in pieces_of(Path(path)):
        digest.update(piece)
    return digest.hexdigest()


def zipf_tokens(vocabulary: int, shape: tuple[int, int], seed: int) -> Tensor:
    """Token ids drawn with probability proportional to 1 / (rank + 2.7), int64 (B, T).

    The offset is Mandelbrot's usual value for English words. Ids are ranks, as in vocabularies
    sorted by frequency. NumPy's Philox stream is the same on every platform.
    """
    import torch

    memory.check_batch(shape, 24)  # drawn, sorted into words, and as ids
    memory.check(24 * vocabulary, f"the frequencies of {vocabulary:,} words")
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
    text = pydoc_text()
    return text_windows(io.BytesIO(text), len(text), shape, seed)


def text_windows(file: BinaryIO, size: int, shape: tuple[int, int], seed: int) -> Tensor:
    """Windows of a text of that size as byte ids, int64 (B, T), at places drawn from the seed."""
    import torch

    memory.check_batch(shape)
    n_windows, length = shape
    starts = np.random.Generator(np.random.Philox(seed)).integers(0, size - length, n_windows)
    windows = []
    for start in starts:
        file.seek(start)
        windows.append(np.frombuffer(file.read(length), dtype=np.uint8))
    return torch.from_numpy(np.stack(windows).astype(np.int64))
