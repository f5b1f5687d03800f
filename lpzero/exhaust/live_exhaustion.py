"""An exhaustive run that is watched while it works: its shards are counted, not read."""

from __future__ import annotations

import os

from lpzero.exhaust.record import read
from lpzero.runs.config import StoredConfig
from lpzero.runs.layout import RESULT, SHARDS
from lpzero.runs.run import Now, OpenedAgain, Run


class LiveExhaustion(OpenedAgain):
    """The run as it was last read; its measures are read once it has a result."""

    def _read(self) -> Run | None:
        return read(self.config) if (self.config.folder / RESULT).is_file() else None

    def now(self) -> Now:
        """The number of shards that were written."""
        try:
            names = os.listdir(self.config.folder / SHARDS)
        except OSError:
            names = []
        return Now({"shards": f"{sum(name.endswith('.npz') for name in names):,}"})


def watch(config: StoredConfig) -> LiveExhaustion:
    """What follows the exhaustive run with that config."""
    return LiveExhaustion(config)
