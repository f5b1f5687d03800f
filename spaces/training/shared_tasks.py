"""What a supernet is trained on: rendered characters, scikit-learn's digits, or text.

A task draws the batch of a step from numbers alone, so that a resumed training sees what an
uninterrupted one would have seen, and measures a model on held-out data: `valid` for choices,
`test` for what is reported. Larger is better.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from spaces.base import Space
from spaces.errors import BatchError, UnknownNameError
from spaces.images import ImageSpace
from spaces.training import characters

_STREAMS = {"train": 0, "valid": 1, "test": 2, "norms": 3}
_PART = 250  # inputs that go through a network at a time when it is measured


class Batch(NamedTuple):
    """Inputs (images or tokens), and the classes of images (B,)."""

    inputs: Tensor
    labels: Tensor | None


class MeanWithError(NamedTuple):
    """The mean of a measure over n independent inputs, and its standard error."""

    value: float
    error: float
    n: int


class SharedTask(ABC):
    """The data of a supernet's training, its loss and its measure."""

    name: str
    target_name: str

    @abstractmethod
    def batch(self, seed: int, step: int, n: int) -> Batch:
        """The training batch of a step."""

    @abstractmethod
    def held_out(self, part: str, n: int) -> Batch:
        """The held-out inputs of `valid` or `test`; always the same."""

    @abstractmethod
    def losses(self, model: Any, batch: Batch, smoothing: float) -> Tensor:
        """The loss of each input (B,)."""

    @abstractmethod
    def goodness(self, model: Any, batch: Batch) -> Tensor:
        """The measure of each input (B,)."""

    @abstractmethod
    def digest(self) -> str:
        """What identifies the data."""

    def measure(self, model: Any, batch: Batch) -> MeanWithError:
        """The mean measure of the model on a batch."""
        with torch.no_grad():
            parts = [self.goodness(model, part) for part in _split(batch)]
        values = torch.cat(parts).double()
        error = float(values.std(correction=0)) / len(values) ** 0.5
        return MeanWithError(float(values.mean()), error, len(values))


def _split(batch: Batch) -> list[Batch]:
    inputs = batch.inputs.split(_PART)
    labels = [None] * len(inputs) if batch.labels is None else batch.labels.split(_PART)
    return [Batch(x, y) for x, y in zip(inputs, labels, strict=True)]


class ImageTask(SharedTask):
    """Classes of images: cross-entropy with smoothed labels; measure: whether the class is right"""

    target_name = "accuracy"

    def losses(self, model: Any, batch: Batch, smoothing: float) -> Tensor:
        logits = self.class_logits(model, batch)
        assert batch.labels is not None
        return functional.cross_entropy(
            logits, batch.labels, label_smoothing=smoothing, reduction="none"
        )

    def goodness(self, model: Any, batch: Batch) -> Tensor:
        assert batch.labels is not None
        return (self.class_logits(model, batch).argmax(1) == batch.labels).float()

    def class_logits(self, model: Any, batch: Batch) -> Tensor:
        """Logits of the task's classes (B, classes); a head may have more."""
        logits: Tensor = model.logits(model(batch.inputs))
        return logits[:, : self.n_classes]

    n_classes: int


class Characters(ImageTask):
    """Digits and capitals in fonts, rendered with matplotlib; whole fonts are held out."""

    name = "characters"

    def __init__(self, side: int, alphabet: str = characters.DIGITS_AND_CAPITALS) -> None:
        self.side, self.alphabet = side, alphabet
        self.n_classes = len(alphabet)

    def batch(self, seed: int, step: int, n: int) -> Batch:
        return self._drawn("train", n, _STREAMS["train"], seed, step)

    def held_out(self, part: str, n: int) -> Batch:
        return self._drawn(part, n, _STREAMS[part])

    def _drawn(self, part: str, n: int, *stream: int) -> Batch:
        random = characters.generator(*stream)
        return Batch(*characters.draw(part, n, self.side, random, self.alphabet))

    def digest(self) -> str:
        return characters.digest(self.alphabet)


class Digits(ImageTask):
    """The 1,797 handwritten digits of scikit-learn, enlarged; drawn with shifts and noise."""

    name = "digits"
    n_classes = 10

    def __init__(self, side: int) -> None:
        try:
            from sklearn.datasets import load_digits
        except ImportError:
            raise BatchError(
                "dataset digits needs scikit-learn, which is not installed: use characters"
            ) from None
        digits = load_digits()
        order = characters.generator(_STREAMS["norms"]).permutation(len(digits.target))
        images = torch.from_numpy(digits.images[order].astype(np.float32) / 8 - 1).unsqueeze(1)
        images = functional.interpolate(images, (side, side), mode="bilinear").expand(-1, 3, -1, -1)
        labels = torch.from_numpy(digits.target[order].astype(np.int64))
        ends = [round(share * len(labels)) for share in (0.7, 0.85)]
        cut = [slice(ends[0]), slice(ends[0], ends[1]), slice(ends[1], None)]
        self._parts = {
            part: Batch(images[s], labels[s]) for part, s in zip(characters.FONTS, cut, strict=True)
        }

    def batch(self, seed: int, step: int, n: int) -> Batch:
        images, labels = self._parts["train"]
        assert labels is not None
        random = characters.generator(_STREAMS["train"], seed, step)
        which = torch.from_numpy(random.integers(0, len(labels), n))
        noise = random.standard_normal((n, *images.shape[1:]), dtype=np.float32)
        return Batch(images[which] + 0.1 * torch.from_numpy(noise), labels[which])

    def held_out(self, part: str, n: int) -> Batch:
        images, labels = self._parts[part]
        return Batch(images[:n], None if labels is None else labels[:n])

    def digest(self) -> str:
        return "scikit-learn digits"


class Text(SharedTask):
    """Next-byte prediction on the text of the nano tables; measure: minus nats per byte."""

    name = "text"
    target_name = "minus validation loss"

    def __init__(self, context: int) -> None:
        from spaces.training.tasks import CausalLanguageModelling

        self.text = CausalLanguageModelling(context)

    def batch(self, seed: int, step: int, n: int) -> Batch:
        random = characters.generator(_STREAMS["train"], seed, step)
        return self._windows(self.text.train_text, random, n)

    def held_out(self, part: str, n: int) -> Batch:
        """The first half of the held-out windows is for choices, the second is reported."""
        windows = self.text.held_out
        half = len(windows) // 2
        chosen = windows[:half] if part == "valid" else windows[half:]
        return Batch(chosen[:n], None)

    def _windows(self, text: Tensor, random: np.random.Generator, n: int) -> Batch:
        last = len(text) - self.text.context
        starts = torch.from_numpy(random.integers(0, last, (n, 1)))
        return Batch(text[starts + torch.arange(self.text.context)], None)

    def losses(self, model: Any, batch: Batch, smoothing: float) -> Tensor:
        """Cross-entropy; label smoothing is for classes of images."""
        losses: Tensor = model.token_losses(model(batch.inputs), batch.inputs)
        return losses.mean(1)

    def goodness(self, model: Any, batch: Batch) -> Tensor:
        return -self.losses(model, batch, 0.0)

    def digest(self) -> str:
        from spaces.minibatch import pydoc_digest

        return pydoc_digest()


DATASETS = ("characters", "digits", "text")


def task_of(space: Space[Any], dataset: str | None = None) -> SharedTask:
    """The task of that name, by default characters for images and text for tokens."""
    name = dataset or ("characters" if isinstance(space, ImageSpace) else "text")
    if name not in DATASETS:
        raise UnknownNameError("dataset", name, DATASETS)
    return _made(space, name)


@lru_cache(maxsize=2)
def _made(space: Space[Any], name: str) -> SharedTask:
    reads_images = isinstance(space, ImageSpace)
    if reads_images == (name == "text"):
        kind = "images" if reads_images else "tokens"
        raise BatchError(f"space {space.name} reads {kind}, and dataset {name} has none")
    if name == "text":
        if not space.reads_text:
            raise BatchError(f"space {space.name} does not read bytes; use nano-gpt2")
        return Text(space.batch_shape[1])
    side: int = space.image  # type: ignore[attr-defined]
    made: ImageTask = Characters(side) if name == "characters" else Digits(side)
    n_classes: int = space.classes  # type: ignore[attr-defined]
    if made.n_classes > n_classes:
        raise BatchError(f"space {space.name} has {n_classes} classes, fewer than dataset {name}")
    return made
