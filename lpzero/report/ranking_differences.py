"""A ranking beside a run's winner: the paired difference of each proxy on the test rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from lpzero.errors import InputError
from lpzero.judgement.differences import paired_difference
from lpzero.judgement.table import LEAST_ARCHS
from lpzero.proxies.ranking_record import RankingRun
from lpzero.runs.formula_run import FormulaRun
from lpzero.runs.run import Run


def compared(ranking: RankingRun, run: Run) -> list[dict[str, Any]]:
    """The rows of a ranking, with `difference` where both have scores of the same test rows.

    Raise InputError if the ranking is of a table that the run is not about.
    """
    rows = [dict(row) for row in ranking.rows]
    if not isinstance(run, FormulaRun):
        return rows
    name = str(ranking.table["name"])
    digests = {str(table["name"]): table["digest"] for table in run.tables}
    if digests.get(name) != ranking.table["digest"]:
        raise InputError(
            f"{ranking.folder} ranks {name}, which is not the table of {run.folder}, or has changed"
        )
    if run.scores is None or ranking.scores is None:
        return rows
    winner, ranked = run.scores["tables"][name], ranking.scores["tables"][name]
    if winner["part"] != ranked["part"]:
        raise InputError(
            f"{ranking.folder} and {run.folder} split {name} differently: use one --split-seed"
        )
    is_test = np.array(winner["part"]) == "test"
    targets, own = (np.array(winner[key], dtype=np.float64) for key in ("target", "score"))
    for row in rows:
        scores = np.array(ranked["scores"][row["proxy"]], dtype=np.float64)  # NaN for None
        kept = is_test & np.isfinite(scores)
        if kept.sum() >= LEAST_ARCHS:
            difference = paired_difference(own[kept], scores[kept], targets[kept])
            row["difference"] = difference.to_json()
    return rows
