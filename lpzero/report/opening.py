"""Whatever run a directory holds: a campaign, an exhaustive run or a search."""

from __future__ import annotations

from pathlib import Path

from lpzero.campaign import folder as files
from lpzero.errors import InputError
from lpzero.exhaust.results import RUN
from lpzero.report import gathering, searching
from lpzero.report.gathering import Gathered, understood
from lpzero.report.searching import Search


def gather(folder: str | Path) -> Gathered | Search:
    """What the directory holds; an error if it is no run's directory."""
    folder = Path(folder)
    with understood(folder):
        return _gather(folder)


def _gather(folder: Path) -> Gathered | Search:
    if not folder.is_dir():
        raise InputError(
            f"{folder} is no directory: expected that of a campaign, exhaustive run or search"
        )
    config = files.read_json(folder / files.CONFIG)
    if config is not None and "request" in config:
        return searching.gather(folder, config)
    if (folder / files.CONFIG).exists():
        return gathering.campaign(folder)
    if (folder / RUN).exists():
        return gathering.exhaustive(folder)
    raise InputError(
        f"{folder} holds no campaign or search ({files.CONFIG}) and no exhaustive run ({RUN}):"
        " make one with `lpzero discover TABLE --out DIR`"
    )
