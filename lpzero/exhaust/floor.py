"""The permutation floor of an exhaustive run: what all products of two fit to permuted targets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lpzero.exhaust.products import PairResults
from lpzero.exhaust.results import Results
from lpzero.exhaust.run import Exhaustion
from lpzero.judgement.permutations import permutation_floor
from lpzero.scores.floor import ProductFloor
from lpzero.scores.products import PairScreen

if TYPE_CHECKING:
    from spaces.tables import Split, Table


def floors(
    table: Table,
    split: Split,
    results: Results | PairResults,
    permutations: int,
    asked: Exhaustion,
) -> list[dict[str, Any]]:
    """The floor on the table as JSON values, in a list; this reads the test rows.

    All products are screened by closed form for each permutation and the best ranked exactly.
    Empty without permutations, and for the paper's space.
    """
    if not permutations or not isinstance(results, PairResults):
        return []
    logs, train = results.terms.logs, split.train
    floor = ProductFloor(PairScreen.of(logs[:, train]).best, logs, train, train, split.open_test())
    label = "permutations" if asked.progress else None
    found = permutation_floor(
        floor, table.targets, permutations, workers=asked.workers, label=label
    )
    return [{"table": table.name, **found.to_json()}]
