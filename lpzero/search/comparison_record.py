"""Reads the directory of a comparison: its arms, its rows and its curves."""

from __future__ import annotations

from lpzero.runs.config import StoredConfig
from lpzero.runs.layout import RESULT
from lpzero.runs.run import Run, read_file


class ComparisonRun(Run):
    """Loops and proxies compared over seeds; the searches themselves are in its folder `runs`."""


def read(config: StoredConfig) -> ComparisonRun:
    """The comparison with that config."""
    remarks: list[str] = []
    return ComparisonRun(config, read_file(config, RESULT, remarks), remarks)
