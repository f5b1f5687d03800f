"""The rows that the numbers of a run are of: parts of a table, and the rows of the fitness."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lpzero.report.formula_run import FormulaRun


def judged(run: FormulaRun, table: str) -> Mapping[str, Mapping[str, Any]]:
    """The winner's judgement on each part of a table."""
    assert run.result is not None, "there is a winner"
    found: Mapping[str, Any] = run.result["best"]["judged"]
    return found[table] if _is_campaign(run) else found


def fitness_rows(run: FormulaRun) -> str:
    """The rows the fitness was measured on, in words: train, or some of it."""
    few = run.config["settings"]["archs"] if _is_campaign(run) else None
    return "train" if few is None else f"{few} rows of train"


def _is_campaign(run: FormulaRun) -> bool:
    return "settings" in run.config
