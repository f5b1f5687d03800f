"""The content of the page of any run: one function for every kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lpzero.errors import InputError
from lpzero.proxies.ranking_record import RankingRun
from lpzero.report import (
    build_page,
    comparison_page,
    formula_page,
    ranking_page,
    search_page,
    supernet_page,
)
from lpzero.report.figures import Material
from lpzero.report.figures.transfer import Transfer
from lpzero.report.sections import Content
from lpzero.runs.formula_run import FormulaRun
from lpzero.runs.run import Run
from lpzero.search.comparison_record import ComparisonRun
from lpzero.search.record import SearchRun
from lpzero.supernet.trained import SupernetRun
from lpzero.training.table_build import KIND as BUILD


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
    if isinstance(run, SearchRun):
        return search_page.content(run, [r for r in beside if isinstance(r, SearchRun)])
    if isinstance(run, SupernetRun):
        return supernet_page.content(run)
    if isinstance(run, RankingRun):
        return ranking_page.content(run)
    if isinstance(run, ComparisonRun):
        return comparison_page.content(run)
    if run.kind == BUILD:
        return build_page.content(run)
    if isinstance(run, FormulaRun):
        return formula_page.content(Material(run, beside, ranking, transfer))
    raise InputError(f"{run.folder} is a {run.kind}, which has no report")
