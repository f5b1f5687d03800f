"""Image batches, the base class of vision spaces, and tokens as a square grid.

No image files are needed: a batch is Gaussian noise of several octaves, which like photographs has
most of its contrast in large patches. Labels, for losses that need them, are drawn too. NumPy's
Philox stream is the same on every platform.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from spaces import memory
from spaces.base import A
from spaces.choices import ChoiceSpace

if TYPE_CHECKING:
    from torch import Tensor

_OCTAVES = (1, 2, 4, 8, 16, 32)  # sides of the squares of one value, in pixels
_LABELS = 1  # the random stream of the labels, apart from the pixels'


class ImageSpace(ChoiceSpace[A]):
    """A space whose models take images (B, 3, image, image); `image` and `n_images` are fields.

    `batch_shape` is (images, tokens in the first block), so that it has the same meaning as for
    text.
    """

    image: int
    n_images: int
    classes: int
    reads_text = False

    @abstractmethod
    def to_hidden(self, arch: A, tokens: int | None = None) -> int:
        """Multiply-adds up to the final hidden state, of an image with so many tokens at first."""

    def flops(self, arch: A, tokens: int | None = None) -> int:
        return 2 * self.to_hidden(arch, tokens)

    def multiply_adds(self, arch: A) -> int:
        """Multiply-adds including the class head, which papers on these spaces print as FLOPs."""
        return self.to_hidden(arch) + self.width(arch) * self.classes

    def batch(self, seed: int = 0) -> Tensor:
        """The default minibatch, float32 (B, 3, image, image)."""
        return noise_images((self.n_images, 3, self.image, self.image), seed)


def noise_images(shape: tuple[int, int, int, int], seed: int) -> Tensor:
    """Gaussian noise of equal strength in every octave, mean 0 and variance 1 per pixel.

    Each octave is a grid of independent values as wide as its squares, so coarse ones are
    constant over 2, 4, ... 32 pixels: about the spectrum of photographs. Float32 (B, 3, H, W).
    """
    import torch

    memory.check_batch(shape, 24)  # the sum, an octave, and the images
    generator = np.random.Generator(np.random.Philox(seed))
    n_images, n_channels, height, width = shape
    total = np.zeros(shape)
    for side in _OCTAVES:
        grid = generator.standard_normal(
            (n_images, n_channels, -(-height // side), -(-width // side))
        )
        total += grid.repeat(side, axis=2).repeat(side, axis=3)[:, :, :height, :width]
    return torch.from_numpy((total / np.sqrt(len(_OCTAVES))).astype(np.float32))


def random_labels(n_images: int, n_classes: int, seed: int) -> Tensor:
    """A class for each image, int64 (B,)."""
    import torch

    stream = np.random.SeedSequence([seed, _LABELS])
    generator = np.random.Generator(np.random.Philox(stream))
    return torch.from_numpy(generator.integers(0, n_classes, n_images))


def as_grid(x: Tensor) -> Tensor:
    """(B, g g, d) to (B, d, g, g)."""
    g = math.isqrt(x.shape[1])
    grid: Tensor = x.transpose(1, 2).unflatten(2, (g, g))
    return grid


def as_tokens(x: Tensor) -> Tensor:
    """(B, d, g, g) to (B, g g, d)."""
    # Not flatten and transpose: of a batch of one, their gradient has strides with which torch 2.13
    # computes wrong gradients of a BatchNorm in eval mode.
    return x.permute(0, 2, 3, 1).flatten(1, 2)
