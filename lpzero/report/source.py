"""Whatever run a directory holds: a campaign, an exhaustive run or a search."""

from __future__ import annotations

from pathlib import Path

from lpzero.errors import InputError
from lpzero.exhaust.results import RUN
from lpzero.report import formula_run, search_page
from lpzero.report.formula_run import FormulaRun, understood
from lpzero.report.search_page import Search
from lpzero.runs import directory as files


def open_source(folder: str | Path) -> FormulaRun | Search:
    """What the directory holds; an error if it is no run's directory."""
    folder = Path(folder)
    with understood(folder):
        return _gather(folder)


def _gather(folder: Path) -> FormulaRun | Search:
    if not folder.is_dir():
        raise InputError(
            f"{folder} is no directory: expected that of a campaign, exhaustive run or search"
        )
    config = files.read_json(folder / files.CONFIG)
    if config is not None and "request" in config:
        return search_page.open_source(folder, config)
    if (folder / files.CONFIG).exists():
        return formula_run.campaign(folder)
    if (folder / RUN).exists():
        return formula_run.exhaustive(folder)
    raise InputError(
        f"{folder} holds no campaign or search ({files.CONFIG}) and no exhaustive run ({RUN}):"
        " make one with `lpzero discover TABLE --out DIR`"
    )
