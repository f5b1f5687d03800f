"""A random batch that a model can read: token ids below its vocabulary, or images of its size."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from lpzero.errors import InputError
from spaces.images import noise_images
from spaces.minibatch import Minibatch, zipf_tokens

SEQUENCES, LENGTH = 8, 64
IMAGES = 4


def batch(
    model: nn.Module,
    inputs: int | None = None,
    length: int | None = None,
    seed: int = 0,
    text: Minibatch | None = None,
) -> Tensor:
    """Token ids (B, T) with frequencies as in text, or images (B, channels, H, W) of noise.

    The configuration says which; without one, the model's longest table of words does. The corpus
    of `text`, if there is one, is read instead of drawing tokens.
    """
    has_text = text is not None and text.corpus is not None
    config = getattr(model, "config", None)
    side = getattr(config, "image_size", None)
    if side is not None and has_text:
        raise InputError(f"{type(model).__name__} reads images, not a corpus")
    if side is not None:
        height, width = (side, side) if isinstance(side, int) else side
        channels = getattr(config, "num_channels", 3)
        return noise_images((inputs or IMAGES, channels, height, width), seed)
    words = getattr(config, "vocab_size", None) or _longest_table(model)
    if words is None:
        raise InputError(
            f"{type(model).__name__} has no table of words and no size of images: give a batch"
        )
    longest = _longest_input(config)
    if length is not None and longest is not None and length > longest:
        raise InputError(f"{type(model).__name__} reads {longest} tokens, {length} were asked for")
    T = length or min(LENGTH, longest or LENGTH)
    shape = inputs or SEQUENCES, T
    if text is not None and has_text:
        return text.of_text(int(words), shape, seed)
    return zipf_tokens(int(words), shape, seed)


def _longest_table(model: nn.Module) -> int | None:
    tables = [m.num_embeddings for m in model.modules() if isinstance(m, nn.Embedding)]
    return max(tables, default=None)


def _longest_input(config: Any) -> int | None:
    found = getattr(config, "max_position_embeddings", None)
    if not isinstance(found, int) or found < 1:
        return None
    # Some families leave out the places up to that of the padding token.
    padding = getattr(config, "pad_token_id", None)
    return found - (padding + 1 if isinstance(padding, int) and padding + 3 < found else 0)
