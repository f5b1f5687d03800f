"""Images of characters, rendered from the fonts that matplotlib ships: data on every machine.

A character of a font is drawn once (FreeType, 64 pixels) and stored as 32 x 32; an image is a
random affine view of it in random colours with noise, drawn from a seed, so that there are as many
as one wants. Whole fonts are held out: those of `valid` are for choices during and after training,
those of `test` for figures that are reported. Images are float32 (B, 3, side, side).
"""

from __future__ import annotations

import hashlib
import math
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

DIGITS_AND_CAPITALS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
SMALL_LETTERS = "abcdefghijklmnopqrstuvwxyz"  # never trained on: for transfer to new classes
FONTS = {
    "train": (
        "DejaVuSans",
        "DejaVuSans-Bold",
        "DejaVuSans-Oblique",
        "DejaVuSans-BoldOblique",
        "DejaVuSerif",
        "DejaVuSerif-Bold",
        "DejaVuSerif-Italic",
        "DejaVuSerif-BoldItalic",
        "STIXGeneral",
        "STIXGeneralBol",
        "cmr10",
        "cmti10",
    ),
    "valid": ("STIXGeneralItalic", "STIXGeneralBolIta", "cmb10"),
    "test": (
        "DejaVuSansMono",
        "DejaVuSansMono-Bold",
        "DejaVuSansMono-Oblique",
        "DejaVuSansMono-BoldOblique",
        "cmss10",
        "cmtt10",
    ),
}
_DRAWN, _KEPT = 64, 32  # pixels
_ROTATION, _SCALE, _SHEAR, _SHIFT = math.radians(8), 0.1, 0.1, 0.1
_ZOOM = 0.7  # of the stored square, the share that an image shows
_NOISE = 0.15


def generator(*stream: int) -> np.random.Generator:
    """Random numbers that depend on the whole numbers alone, the same on every platform."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(stream)))


def draw(
    part: str, n_images: int, side: int, random: np.random.Generator, characters: str
) -> tuple[Tensor, Tensor]:
    """Images (B, 3, side, side) of characters in the part's fonts, and their classes (B,)."""
    fonts = FONTS[part]
    drawn = glyphs(part, characters)  # (fonts, classes, 1, 32, 32)
    labels = random.integers(0, len(characters), n_images)
    which = random.integers(0, len(fonts), n_images)
    sources = drawn[torch.from_numpy(which), torch.from_numpy(labels)]
    places = functional.affine_grid(
        _views(random, n_images), [n_images, 1, side, side], align_corners=False
    )
    ink = functional.grid_sample(sources, places, align_corners=False)
    images = _coloured(ink, random)
    return images, torch.from_numpy(labels)


def _views(random: np.random.Generator, n: int) -> Tensor:
    """Random affine maps (n, 2, 3): rotation, scale, shear and shift."""
    turn, shear = (random.uniform(-most, most, n) for most in (_ROTATION, _SHEAR))
    scale = _ZOOM * (1 + random.uniform(-_SCALE, _SCALE, (2, n)))
    shift = random.uniform(-_SHIFT, _SHIFT, (2, n))
    cos, sin = np.cos(turn), np.sin(turn)
    rows = [
        [scale[0] * cos, scale[0] * (shear * cos - sin), shift[0]],
        [scale[1] * sin, scale[1] * (shear * sin + cos), shift[1]],
    ]
    return torch.from_numpy(np.moveaxis(np.array(rows), 2, 0).astype(np.float32))


def _coloured(ink: Tensor, random: np.random.Generator) -> Tensor:
    """Ink (n, 1, side, side) in a light colour on a darker one, with noise."""
    n, _, side, _ = ink.shape
    paper = random.uniform(-0.5, 0.5, (n, 3, 1, 1))
    contrast = random.uniform(0.5, 2.0, (n, 3, 1, 1))
    noise = random.standard_normal((n, 3, side, side), dtype=np.float32)
    parts = (torch.from_numpy(part.astype(np.float32)) for part in (paper, contrast, noise))
    background, difference, grain = parts
    return background + difference * ink + _NOISE * grain


@lru_cache(maxsize=8)
def glyphs(part: str, characters: str) -> Tensor:
    """Every character in every font of the part, ink between 0 and 1 (fonts, classes, 1, 32, 32)"""
    drawn = np.stack(
        [[_glyph(font, character) for character in characters] for font in FONTS[part]]
    )
    small = functional.avg_pool2d(torch.from_numpy(drawn).flatten(0, 1).unsqueeze(1), 2)
    by_font: Tensor = small.unflatten(0, (len(FONTS[part]), len(characters)))
    return by_font


def digest(characters: str = DIGITS_AND_CAPITALS) -> str:
    """The SHA-256 of what is drawn, which another version of matplotlib's fonts would change."""
    digester = hashlib.sha256()
    for part in FONTS:
        digester.update(glyphs(part, characters).numpy().tobytes())
    return digester.hexdigest()


def _glyph(font: str, character: str) -> npt.NDArray[np.float32]:
    """The character in the middle of 64 x 64 pixels."""
    drawn = _font(font)
    drawn.set_text(character, 0.0)
    drawn.draw_glyphs_to_bitmap(antialiased=True)
    ink = np.asarray(drawn.get_image(), dtype=np.float32)[:_DRAWN, :_DRAWN] / 255
    rows, columns = np.flatnonzero(ink.any(1)), np.flatnonzero(ink.any(0))
    ink = ink[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    height, width = ink.shape
    top, left = (_DRAWN - height) // 2, (_DRAWN - width) // 2
    square = np.zeros((_DRAWN, _DRAWN), dtype=np.float32)
    square[top : top + height, left : left + width] = ink
    return square


@lru_cache(maxsize=32)
def _font(name: str) -> Any:
    import matplotlib
    from matplotlib.ft2font import FT2Font

    folder = Path(matplotlib.get_data_path()) / "fonts" / "ttf"
    font = FT2Font(str(folder / f"{name}.ttf"))
    font.set_size(48, 72)
    return font
