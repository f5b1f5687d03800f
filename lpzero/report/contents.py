"""The content of the page of any run: its kind declares it (`lpzero.verbs`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lpzero.errors import InputError
from lpzero.report.figures.transfer import Transfer
from lpzero.report.sections import Content
from lpzero.runs.formula_run import FormulaRun
from lpzero.runs.run import Run, kind_of


def content_of(
    run: Run,
    beside: Sequence[Run] = (),
    ranking: Sequence[Mapping[str, Any]] | None = None,
    transfer: Transfer | None = None,
) -> Content:
    """What the page of the run says; raise InputError if the other runs are of another kind.

    Nothing is drawn yet: pictures are made when the page is written, so this is quick enough for
    a page that is refreshed while the run goes on.
    """
    for other in beside:
        are_of_formulas = isinstance(run, FormulaRun) and isinstance(other, FormulaRun)
        if type(other) is not type(run) and not are_of_formulas:
            raise InputError(
                f"{other.folder} is a {other.kind}: it cannot be compared with a {run.kind}"
            )
    content: Content = kind_of(run.config).page(run, beside, ranking, transfer)
    return content
