"""report: Write one HTML page and the figures of a run."""

from __future__ import annotations

import logging
import webbrowser
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lpzero.errors import InputError
from lpzero.options import JUDGEMENT, Place, Repeated, Switch, argument, group, option
from lpzero.verbs import Outcome, Screen, groups
from spaces.untrusted import user_path

if TYPE_CHECKING:
    from lpzero.report.figures.transfer import Transfer

_LARGEST_RANKING = 64 << 20  # bytes
logger = logging.getLogger(__name__)
EXAMPLES = ("lpzero report runs/nano-gpt2 --open",)


@dataclass(frozen=True, kw_only=True)
class Request:
    """Write one HTML page on the run of any kind in DIR, and its figures.

    The page needs no network and no other file; figures are written to DIR/report/figures as PDF,
    PNG and SVG. The report of an unfinished run covers what is there.
    """

    folder: str = argument("DIR")
    out: str | None = option(
        None, "The file of the page.  [default: DIR/report/index.html]", Place()
    )
    open: bool = option(False, "Open the page in a browser.", Switch())
    beside: tuple[str, ...] = option(
        (),
        "Another run of the same kind, for the convergence figure; repeatable.",
        Repeated("DIR"),
        panel=JUDGEMENT,
    )
    ranking: str | None = option(
        None,
        "A ranking (`lpzero rank --out DIR`, or its JSON output), to show its proxies too.",
        Place("FILE|DIR"),
        panel=JUDGEMENT,
    )
    transfer: bool = option(
        False,
        "Score the winners of DIR and --beside on each other's tables; may run networks.",
        Switch(),
        panel=JUDGEMENT,
    )
    running: groups.Running = group(groups.Running)


def run(request: Request, screen: Screen) -> Outcome:
    """The paths of the page and of the figures."""
    from lpzero.report import write
    from lpzero.runs.run import open_run

    run = open_run(request.folder)
    rows = None if request.ranking is None else _rows(user_path(request.ranking), run)
    others = [open_run(other) for other in request.beside]
    transfer = _transferred([run, *others], request.running) if request.transfer else None
    written = write(run, request.out, others, rows, transfer)
    for remark in written.remarks:
        logger.warning("%s", remark)
    if request.open and not webbrowser.open(written.page.resolve().as_uri()):
        logger.warning("no browser was found; open the page manually")
    figures = run.folder / "report" / "figures"
    lines = [
        f"report: {written.page}",
        f"figures: {len(written.figures)} files in {figures}",
    ]
    names, remarks = [str(path) for path in written.figures], list(written.remarks)
    result = {"page": str(written.page), "figures": names, "remarks": remarks}
    return Outcome(result, {"lines": lines})


def _transferred(runs: Sequence[Any], running: groups.Running) -> Transfer:
    from lpzero.report.figures import transfer
    from lpzero.runs.config import with_article
    from lpzero.runs.formula_run import FormulaRun

    for run in runs:
        if not isinstance(run, FormulaRun):
            raise InputError(
                f"{run.folder} is {with_article(run.kind)}: --transfer needs runs that found"
                " formulas"
            )
    return transfer.measure(
        runs, running.tables_folder, running.cache, running.device, running.workers
    )


def _rows(path: Path, run: Any) -> list[dict[str, Any]]:
    from lpzero.proxies.ranking import RankingRun
    from lpzero.report.ranking_page import compared
    from lpzero.runs.config import with_article
    from lpzero.runs.run import open_run
    from spaces.untrusted import read_json

    if path.is_dir():
        ranking = open_run(path)
        if not isinstance(ranking, RankingRun):
            raise InputError(f"{path} is {with_article(ranking.kind)}: --ranking needs a ranking")
        return compared(ranking, run)
    rows = read_json(path, _LARGEST_RANKING)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InputError(f"{path} is not the output of `lpzero rank TABLE --format json`")
    return rows
