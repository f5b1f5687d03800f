"""A comparison that is watched while it works: the searches that are finished."""

from __future__ import annotations

from lpzero.runs.config import StoredConfig
from lpzero.runs.layout import RESULT
from lpzero.runs.run import Now, OpenedAgain, Run, Stamp, report_unexpected_content, stamp
from lpzero.search.comparison_record import read, searches


class LiveComparison(OpenedAgain):
    """The comparison as it was last read; it is read again when a search has ended."""

    def __init__(self, config: StoredConfig) -> None:
        super().__init__(config)
        self._parts: Stamp = ()

    def update(self, seconds: float) -> Run | None:
        """The comparison as it is now."""
        with report_unexpected_content(self.config.folder):
            folders = [folder for _, folder, _ in searches(self.config)]
        parts = tuple(found for folder in folders for found in stamp(folder, (RESULT,)))
        if parts != self._parts:
            self._parts, self._stamp = parts, None
        return super().update(seconds)

    def _read(self) -> Run | None:
        return read(self.config)

    def now(self) -> Now:
        """Searches that are done of those that were asked for."""
        done = sum(inode != 0 for inode, _, _ in self._parts)
        return Now({"searches": f"{done:,} of {len(self._parts):,}"})


def watch(config: StoredConfig) -> LiveComparison:
    """What follows the comparison with that config."""
    return LiveComparison(config)
