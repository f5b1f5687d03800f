"""Reads a search's directory: its request, and its result if it is finished."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from lpzero.runs.config import StoredConfig
from lpzero.runs.layout import RESULT
from lpzero.runs.run import Run, read_file


@dataclass(frozen=True, eq=False)
class SearchRun(Run):
    """A search for an architecture."""

    @property
    def is_by_proxy(self) -> bool:
        """Whether there was no evaluator, so that the proxy alone decided."""
        return str(self.request["evaluator"]) == "proxy"

    @property
    def history(self) -> list[dict[str, float]]:
        """The best after each evaluation, or after each score if there was no evaluator."""
        counted = "scored" if self.is_by_proxy else "evaluations"
        trace = [] if self.result is None else self.result["trace"]
        return [
            {"evaluated": float(entry[counted]), "fitness": float(entry["best"])}
            for entry in trace
            if entry["best"] is not None
        ]


def read(config: StoredConfig) -> SearchRun:
    """The search with that config."""
    remarks: list[str] = []
    result = read_file(config, RESULT, remarks)
    if result is None:
        remarks.append(
            "The search is not finished, so there is no result. Resume it with:"
            f" lpzero search --out {shlex.quote(str(config.folder))} --resume"
        )
    elif "stopped_by" in result:
        remarks.append(
            f"The search was stopped by its {result['stopped_by']}: this is the best until then."
            f" Continue it with: lpzero search --out {shlex.quote(str(config.folder))} --resume"
        )
    return SearchRun(config, result, remarks)
