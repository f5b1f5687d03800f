"""The bars of Figure 5, from data already computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lpzero.report import style


def bars(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], path: Path) -> None:
    """A group of horizontal bars for each row, one bar per column."""
    with style.look():
        figure = style.new(7, 0.5 * len(rows) + 1)
        axes = figure.subplots()
        places = np.arange(len(rows))[::-1]
        height = 0.8 / len(columns)
        for index, column in enumerate(columns):
            values = [float(row[column]) for row in rows]
            axes.barh(
                places - index * height,
                values,
                height,
                label=column.replace("_", " "),
                color=style.COLOURS[index],
            )
        axes.set_yticks(places - 0.4, [str(row["metric"]) for row in rows])
        axes.axvline(0, color="black", linewidth=0.5)
        axes.set_xlabel("Kendall's tau with minus the loss")
        axes.legend(loc="lower right")
    style.save(figure, path)
