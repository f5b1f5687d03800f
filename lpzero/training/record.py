"""Reads the directory of a table build."""

from __future__ import annotations

from lpzero.runs.config import StoredConfig
from lpzero.runs.layout import TABLE
from lpzero.runs.run import Run


def read(config: StoredConfig) -> Run:
    """The build with that config; a remark if the table is not finished."""
    is_finished = (config.folder / TABLE).exists()
    plan = config.request["plan"]
    space = plan.get("name") or plan["address"]
    resume = f"lpzero train {space} --out {config.folder}"
    remarks = [] if is_finished else [f"The table is not finished. Resume it with: {resume}"]
    return Run(config, None, remarks)
