"""Draws the page of samples in docs/characters.md: rows of each part's fonts.

python -m experiments.pictures.characters docs/images/characters.png
"""

from __future__ import annotations

from pathlib import Path

import click
from matplotlib.figure import Figure

from lpzero.report import style
from spaces.training import characters

ROWS, COLUMNS, SIDE = 3, 18, 16


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
def main(path: Path) -> None:
    """Draw images of the training, validation and test fonts."""
    alphabet = characters.DIGITS_AND_CAPITALS
    figure = Figure(figsize=(9, 5.4))
    axes = figure.subplots(ROWS * len(characters.FONTS), COLUMNS)
    for index, part in enumerate(characters.FONTS):
        random = characters.generator(index)
        images, labels = characters.draw(part, ROWS * COLUMNS, SIDE, random, alphabet)
        for place, (image, label) in enumerate(zip(images, labels, strict=True)):
            cell = axes[index * ROWS + place // COLUMNS, place % COLUMNS]
            cell.imshow(((image + 1) / 3.5).clamp(0, 1).permute(1, 2, 0), interpolation="nearest")
            cell.set_title(f"{alphabet[label]}", fontsize=6, pad=1)
            cell.axis("off")
    style.save(figure, path)


if __name__ == "__main__":
    main()
