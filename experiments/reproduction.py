"""Reproduction of a paper's table of proxies: our numbers, the printed ones, the difference.

rows of `lpzero.proxies.ranking`, the paper's table  ->  rows, also as Markdown or as a figure
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.proxies.published import printed_in
from lpzero.proxies.ranking import Ranking, Row, rank
from lpzero.proxies.registry import get

if TYPE_CHECKING:
    from lpzero.arrays import FloatArray, LabelArray
    from spaces.tables import Table


def reproduce(table: Table, source: str, ranking: Ranking, also: Sequence[str] = ()) -> list[Row]:
    """A row for each proxy that the source prints on the table, best printed first, then `also`."""
    printed = printed_in(table.name, source)
    proxies = [get(name) for name in dict.fromkeys((*printed, *also))]
    found = {row["proxy"]: row for row in rank(table, proxies, ranking)}
    rows = []
    for proxy in proxies:
        row, figure = found[proxy.name], printed.get(proxy.name)
        line = {"proxy": proxy.name, "n": row["n"], "rho": row["rho"], "tau": row["tau"]}
        for measure in ("rho", "tau"):
            there = None if figure is None else getattr(figure, measure)
            line[f"{measure}_printed"] = there
            line[f"{measure}_difference"] = None if there is None else row[measure] - there
        for key in ("rho_ci", "rho_given_params", "rho_within", "seconds"):
            line[key] = row[key]
        line |= {key: value for key, value in row.items() if key.startswith("rho_seeds")}
        rows.append(line)
    return sorted(rows, key=lambda line: (line["rho_printed"] is None, -(line["rho_printed"] or 0)))


def thin(table: Table, n: int | None) -> Table:
    """The table, or n of its rows spread evenly over the targets for a quick run."""
    if n is None or n >= len(table):
        return table
    return table.only(spread(table.targets, n).tolist())


def spread(targets: FloatArray, n: int) -> LabelArray:
    """The rows of n targets spread evenly over all, in the table's order."""
    by_target = np.argsort(targets, kind="stable")
    picked: LabelArray = np.sort(by_target[np.linspace(0, len(targets) - 1, n).round().astype(int)])
    return picked


def markdown(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """The columns as a Markdown table, numbers to three decimals."""
    lines = ["| " + " | ".join(c.replace("_", " ") for c in columns) + " |"]
    lines.append("|" + "---|" * len(columns))
    lines += ["| " + " | ".join(_cell(row.get(c)) for c in columns) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _cell(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, (list, tuple)):
        return ", ".join(_cell(part) for part in value)
    return str(value)


def write(folder: Path, name: str, rows: Sequence[Row], title: str) -> Path:
    """Write NAME.json, NAME.md and NAME.png to the folder; return the path of the Markdown."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(list(rows), indent=1) + "\n")
    columns = (
        "proxy",
        "n",
        "rho_printed",
        "rho",
        "rho_difference",
        "rho_ci",
        "tau_printed",
        "tau",
        "rho_given_params",
        "rho_within",
        "seconds",
    )
    path = folder / f"{name}.md"
    path.write_text(f"# {title}\n\n{markdown(rows, columns)}", encoding="utf-8")
    draw(rows, folder / f"{name}.png", title)
    return path


def draw(rows: Sequence[Row], path: Path, title: str) -> None:
    """Ours with intervals and the printed ones, proxy by proxy."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 0.28 * len(rows) + 1.2), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    places = np.arange(len(rows))[::-1]
    ours = np.array([row["rho"] for row in rows])
    ends = np.array([row["rho_ci"] for row in rows])
    axes.hlines(places, ends[:, 0], ends[:, 1], color="tab:blue", alpha=0.4)
    axes.plot(ours, places, "o", color="tab:blue", label="ours, 95% interval")
    there = [(row["rho_printed"], y) for row, y in zip(rows, places, strict=True)]
    known = [(rho, y) for rho, y in there if rho is not None]
    axes.plot([k[0] for k in known], [k[1] for k in known], "x", color="black", label="printed")
    axes.set_yticks(places, [row["proxy"] for row in rows])
    axes.set_xlabel("Spearman's rho with the targets")
    axes.set_title(title)
    axes.legend(loc="lower left")
    figure.savefig(path, dpi=120)
