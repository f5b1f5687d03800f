"""Transfer between tables: the rho of each table's best formula on every other table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.report.figures import plotly_spec as plotly
from lpzero.report.figures import style
from lpzero.report.figures.drawn import HOLDS, Drawn, FigureKind, Material


@dataclass(frozen=True, eq=False)
class Transfer:
    """rho[i, j] (n, n): the formula chosen for table i on the test rows of table j."""

    tables: tuple[str, ...]
    formulas: tuple[str, ...]
    rho: FloatArray


def of_campaign(top: Sequence[Mapping[str, Any]]) -> Transfer:
    """The transfer between the tables of one campaign, from its `top` lines.

    For each table the formula that is best on its training rows is used. The campaign kept these
    formulas for all tables together; `transfer` compares formulas chosen on one table each.
    """
    lines = [line["rho_by_table"] for line in top if "rho_by_table" in line]
    if not lines or len(lines[0]) < 2:
        raise InputError("transfer needs a campaign on at least two tables")
    tables = tuple(lines[0])
    chosen = [max(range(len(lines)), key=lambda i: lines[i][name]["train"]) for name in tables]
    formulas = [str([line for line in top if "rho_by_table" in line][i]["formula"]) for i in chosen]
    rho = [[lines[i][other]["test"] for other in tables] for i in chosen]
    return transfer(tables, formulas, rho)


def transfer(
    tables: Sequence[str], formulas: Sequence[str], rho: Sequence[Sequence[float]]
) -> Transfer:
    """The data of the figure: tables, the formula chosen on each, and rho of i on j."""
    found = np.array(rho, dtype=np.float64)
    if found.shape != (len(tables), len(tables)) or len(formulas) != len(tables):
        raise InputError(f"{len(tables)} tables and a matrix of shape {found.shape} do not fit")
    return Transfer(tuple(tables), tuple(formulas), found)


def draw(data: Transfer) -> Figure:
    """A row per formula, a column per table."""
    with style.look():
        n = len(data.tables)
        names = [style.short(name, 24) for name in data.tables]
        longest = max(map(len, names))
        figure = style.new(1.2 * n + 2.2 + 0.05 * longest, 0.6 * n + 1.9)
        axes = figure.subplots()
        image = axes.imshow(
            data.rho, cmap=style.MAP, vmin=min(0.0, float(data.rho.min())), vmax=1, aspect="auto"
        )
        low = min(0.0, float(data.rho.min()))
        for (row, column), value in np.ndenumerate(data.rho):
            is_dark = (value - low) / (1 - low) < 0.55
            axes.text(
                column,
                row,
                f"{value:.3f}",
                ha="center",
                va="center",
                color="white" if is_dark else "black",
                fontweight="bold" if row == column else "normal",
            )
        axes.set_xticks(range(n), names)
        axes.set_yticks(range(n), names)
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)
        axes.set_xlabel("tested on (test rows)")
        axes.set_ylabel("best formula of")
        figure.colorbar(image, ax=axes, label="ρ")
    return figure


def spec(data: Transfer) -> plotly.Spec:
    """The same for a browser."""
    names = [plotly.text(name, 24) for name in data.tables]
    cell = {
        "type": "heatmap",
        "x": names,
        "y": names,
        "z": data.rho,
        "text": [[f"{value:.3f}" for value in line] for line in data.rho],
        "texttemplate": "%{text}",
        "textfont": {"color": "@ink"},
        "customdata": [[plotly.lines(formula)] * len(names) for formula in data.formulas],
        "coloraxis": "coloraxis",
        "hovertemplate": "%{customdata}<br>the best of %{y}, tested on %{x}: ρ %{z:.3f}"
        "<extra></extra>",
    }
    bar = {"title": {"text": "ρ"}, "thickness": 12, "outlinewidth": 0}
    low = min(0.0, float(data.rho.min()))
    return plotly.spec(
        [cell],
        height=150 + 60 * len(names),
        coloraxis={"colorscale": "@scale", "cmin": low, "cmax": 1.0, "colorbar": bar},
        xaxis=plotly.axis("tested on (test rows)", showgrid=False, type="category"),
        yaxis=plotly.axis("best formula of", showgrid=False, type="category", autorange="reversed"),
    )


def _figures(material: Material) -> Iterator[Drawn]:
    run = material.run
    if material.transfer is not None:
        caption = "The winner of each run on the test rows of every table."
        yield _drawn(material.transfer, caption)
    elif run.result is not None and len(run.tables) > 1:
        caption = (
            "Of the reported formulas the best on each table's training rows, tested on every"
            " table."
        )
        yield _drawn(of_campaign(run.result["top"]), caption)


def _drawn(data: Transfer, caption: str) -> Drawn:
    pairs = zip(data.tables, data.formulas, strict=True)
    lines = "; ".join(f"{table}: {formula}" for table, formula in pairs)
    values = "; ".join(
        f"best of {one} on {other} {data.rho[i, j]:.3f}"
        for i, one in enumerate(data.tables)
        for j, other in enumerate(data.tables)
    )
    return Drawn(
        "transfer",
        f"{caption} {lines}.",
        f"Matrix of rho: {values}.",
        spec(data),
        partial(draw, data),
    )


FIGURE = FigureKind(60, HOLDS, _figures)
