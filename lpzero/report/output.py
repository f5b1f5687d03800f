"""Write a run's report: the page, and every figure as PDF, PNG and SVG."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lpzero.errors import InputError
from lpzero.files import write_bytes, write_text
from lpzero.report import search_page, supernet_page
from lpzero.report.figure_list import figures
from lpzero.report.figures import style
from lpzero.report.figures.drawn import Drawn, Material
from lpzero.report.figures.transfer import Transfer
from lpzero.report.page import page
from lpzero.runs.formula_run import FormulaRun
from lpzero.runs.run import Run, report_unexpected_content
from lpzero.search.record import SearchRun
from lpzero.supernet.record import SupernetRun

FOLDER, PAGE, FIGURES = "report", "index.html", "figures"


@dataclass(frozen=True, slots=True)
class Written:
    """The files of the page and the figures, and remarks on what is missing."""

    page: Path
    figures: tuple[Path, ...]
    remarks: tuple[str, ...]


def write(
    run: Run,
    out: str | Path | None = None,
    beside: Sequence[Run] = (),
    ranking: Sequence[Mapping[str, Any]] | None = None,
    transfer: Transfer | None = None,
) -> Written:
    """Write the page to `out`, DIR/report/index.html if None, and figures to DIR/report/figures.

    `beside`: other runs of the same kind for the convergence figure; `ranking`: the rows of
    `lpzero rank`; `transfer`: the result of `transfer.measure`.
    """
    place = run.folder / FOLDER
    target = place / PAGE if out is None else Path(out)
    if target.is_dir():
        raise InputError(f"{target} is a directory: name a file for the page")
    _check_writable(place / FIGURES)
    _check_writable(target.parent)
    with report_unexpected_content(run.folder):
        drawn, text = _render(run, beside, ranking, transfer)
    saved = [path for entry in drawn for path in _save(entry, place / FIGURES)]
    write_text(target, text)
    return Written(target, tuple(saved), tuple(run.remarks))


def _check_writable(folder: Path) -> None:
    """Raise InputError unless files can be created in the nearest existing directory."""
    nearest = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise InputError(
            f"{nearest} is not writable: copy the run to a directory where you may write"
        )


def _render(
    run: Run,
    beside: Sequence[Run],
    ranking: Sequence[Mapping[str, Any]] | None,
    transfer: Transfer | None,
) -> tuple[list[Drawn], str]:
    """The figures, and the text of the page that contains them."""
    for other in beside:
        if type(other) is not type(run):
            raise InputError(
                f"{other.folder} is a {other.kind}: it cannot be compared with a {run.kind}"
            )
    if isinstance(run, SearchRun):
        drawn = search_page.drawings(run, [r for r in beside if isinstance(r, SearchRun)])
        return drawn, search_page.page(run, drawn)
    if isinstance(run, SupernetRun):
        drawn = supernet_page.drawings(run)
        return drawn, supernet_page.page(run, drawn)
    if isinstance(run, FormulaRun):
        others = [r for r in beside if isinstance(r, FormulaRun)]
        drawn = list(figures(Material(run, others, ranking, transfer)))
        return drawn, page(run, drawn)
    raise InputError(f"{run.folder} is a {run.kind}, which has no report")


def _save(entry: Drawn, folder: Path) -> list[Path]:
    made = [style.save(entry.figure, folder / f"{entry.name}.{form}") for form in ("pdf", "png")]
    svg = folder / f"{entry.name}.svg"
    write_bytes(svg, entry.svg)
    return [*made, svg]
