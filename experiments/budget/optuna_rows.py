"""Optuna's TPE on the rows of a table: what it proposes is moved to the nearest row that is left.

The parameters are the choices of the space, a parameter for each place of a list; for recurrent
cells, whose architectures are graphs, the features. TPE is told the parameters of the row that was
trained, not those it proposed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from math import gcd
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.arrays import FloatArray

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution

_FEW = 3  # values of a choice, from which on their order is told


@dataclass(frozen=True, eq=False)
class Choices:
    """The parameters of every row, and their distributions."""

    rows: Sequence[Mapping[str, Any]]
    distributions: Mapping[str, BaseDistribution]

    @classmethod
    def of(cls, archs: Sequence[Mapping[str, Any]], features: FloatArray) -> Choices:
        """By choices; by features if the architectures are graphs."""
        from optuna.distributions import FloatDistribution

        if any(isinstance(value, Mapping) for arch in archs for value in arch.values()):
            names = [f"feature_{place}" for place in range(features.shape[1])]
            rows: list[dict[str, Any]] = [
                dict(zip(names, row, strict=True)) for row in features.tolist()
            ]
            lowest, highest = features.min(axis=0).tolist(), features.max(axis=0).tolist()
            limits = zip(names, lowest, highest, strict=True)
            return cls(rows, {name: FloatDistribution(low, high) for name, low, high in limits})
        rows = [dict(_flat(arch)) for arch in archs]
        every: dict[str, list[Any]] = {}
        for row in rows:
            for name, value in row.items():
                every.setdefault(name, []).append(value)
        # What is beyond the layers of a row has no effect; it has the first value that occurs.
        rows = [{name: row.get(name, values[0]) for name, values in every.items()} for row in rows]
        return cls(rows, {name: _distribution(values) for name, values in every.items()})

    def points(self, rows: Sequence[Mapping[str, Any]]) -> FloatArray:
        """Rows as points: numbers from 0 to 1, a place for each word."""
        columns: list[list[float]] = []
        for name in self.distributions:
            known = [row[name] for row in self.rows]
            if all(isinstance(value, (int, float)) for value in known):
                low, wide = min(known), max(known) - min(known) or 1
                columns.append([(row[name] - low) / wide for row in rows])
            else:
                words = sorted(set(known))
                columns += [[float(row[name] == word) for row in rows] for word in words]
        return np.array(columns).T


def _flat(value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The numbers and words of an architecture by name, with their places in lists."""
    for name, inner in value.items():
        if not isinstance(inner, Sequence) or isinstance(inner, str):
            yield name, inner
            continue
        yield f"n_{name}", len(inner)
        for place, entry in enumerate(inner):
            fields = entry if isinstance(entry, Mapping) else {name: entry}
            yield from ((f"{key}_{place}", number) for key, number in fields.items())


def _distribution(values: Sequence[Any]) -> BaseDistribution:
    """As `lpzero.optuna` has it, but whole numbers of any distances are in their order if many."""
    from optuna.distributions import CategoricalDistribution, IntDistribution

    distinct = sorted(set(values))
    if len(distinct) >= _FEW and all(type(value) is int for value in distinct):
        step = reduce(gcd, (b - a for a, b in pairwise(distinct)))
        if (distinct[-1] - distinct[0]) // step < 2 * len(distinct) or len(distinct) > 8:
            return IntDistribution(distinct[0], distinct[-1], step=step)
    return CategoricalDistribution(distinct)


def by_tpe(
    choices: Choices, seed: int, train: Callable[[int], float], starts: Sequence[int] = ()
) -> None:
    """Train every row in the order of TPE with its default settings, the starts first."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    sampler = optuna.samplers.TPESampler(seed=seed)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    points = choices.points(choices.rows)
    left = np.ones(len(points), dtype=bool)
    waiting = list(starts)
    distributions = dict(choices.distributions)
    while left.any():
        if waiting:
            row = waiting.pop(0)
        else:
            trial = study.ask(distributions)
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
            far = ((points - choices.points([trial.params])) ** 2).sum(axis=1)
            row = int(np.argmin(np.where(left, far, np.inf)))
        left[row] = False
        value = train(row)
        study.add_trial(
            optuna.trial.create_trial(
                params=dict(choices.rows[row]), distributions=distributions, value=value
            )
        )
