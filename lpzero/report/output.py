"""Write a run's report: the page, and every figure as PDF, PNG and SVG."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lpzero.errors import InputError
from lpzero.files import write_bytes, write_text
from lpzero.report import style
from lpzero.report.chart import Chart
from lpzero.report.drawn_chart import draw
from lpzero.report.figures.transfer import Transfer
from lpzero.report.page import document
from lpzero.runs.run import Run, report_unexpected_content

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
        # The pages know every kind of run, and through some of them torch.
        from lpzero.report.contents import content_of

        content = content_of(run, beside, ranking, transfer)
        files = {chart.name: _encoded(chart) for chart in content.figures}
        text = document(content, {name: forms["svg"] for name, forms in files.items()})
    saved = []
    for name, forms in files.items():
        for form, data in forms.items():
            saved.append(place / FIGURES / f"{name}.{form}")
            write_bytes(saved[-1], data)
    write_text(target, text)
    return Written(target, tuple(saved), tuple(run.remarks))


def _check_writable(folder: Path) -> None:
    """Raise InputError unless files can be created in the nearest existing directory."""
    nearest = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise InputError(
            f"{nearest} is not writable: copy the run to a directory where you may write"
        )


def _encoded(chart: Chart) -> dict[str, bytes]:
    """The files of a figure, by format."""
    figure = draw(chart)
    return {form: style.encode(figure, form) for form in style.FORMATS}
