"""What a search says beyond its best: its place among known rows, its interval, the runner-up."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from lpzero.search import ledger as facts
from lpzero.search.environment import Environment
from lpzero.search.evaluators import LookUp
from lpzero.search.surrogate import Surrogate

_COSTS = ("parameters", "flops")


def place_and_interval(environment: Environment, target: float | None) -> dict[str, Any]:
    """The place of a target among the rows of the evaluator's table, and a prediction's interval.

    Nothing without such a table.
    """
    evaluator = environment.evaluator
    if target is None or not isinstance(evaluator, (LookUp, Surrogate)):
        return {}
    rows = evaluator.table
    place = {"table": rows.name, "place": 1 + int((rows.targets > target).sum()), "n": len(rows)}
    if isinstance(evaluator, LookUp):
        return {"place": place}
    return {"place": place, "target_ci": evaluator.interval(target)}


def runner_up(environment: Environment, winner: Any) -> Any:
    """The second best of what was observed, or scored if nothing was; None if there is none."""
    known = environment.observed or environment.ledger.archs(facts.SCORE)
    others = [arch for arch in known if arch != winner]
    if not others:
        return None
    values = environment.values(others)
    second = int(np.argmax(values))
    return others[second] if values[second] > -math.inf else None


def sentences(result: Mapping[str, Any]) -> Iterator[str]:
    """The answers of a result in words."""
    first, second = result["best"], result.get("runner_up")
    place, interval = result.get("place"), result.get("target_ci")
    if place is not None:
        told = f"place {place['place']:,} among the {place['n']:,} rows of {place['table']}"
        if interval is not None:
            low, high = interval
            told = (
                f"predicted target {first['target']:.4g} [{low:.4g}, {high:.4g}] by the errors on"
                f" rows left out: {told}; the best of many predictions is optimistic"
            )
        yield told
    if second is not None:
        by = "score" if second.get("target") is None else "target"
        costs = (
            f"{second[cost]:,} {cost} ({second[cost] / max(first[cost], 1) - 1:+.1%})"
            for cost in _COSTS
        )
        yield f"runner-up: {by} {second[by]:.4g}, {', '.join(costs)}"
