"""With Optuna: the first trials of a study, its distributions, and a finished study as a table.

The space is one of the user's, made by `lpzero.space` or `lpzero.hf.space`. A choice for each layer
is a parameter for each layer that there can be, `heads_0`, `heads_1` and so on; those beyond the
number of layers have no effect. Optuna is imported when a function needs it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from lpzero.errors import InputError
from lpzero.python.inputs import AnyTable, SpaceLike, space_name, table_of
from spaces.own.space import OwnSpace

if TYPE_CHECKING:
    from optuna import Study
    from optuna.distributions import BaseDistribution

_VALUE = "value"
_FEW = 3  # values of a choice, from which on their order is told


def starts(space: SpaceLike, n: int, *, seed: int = 0) -> list[dict[str, Any]]:
    """The parameters of the first n trials, for `study.enqueue_trial`.

    They are what `lpzero search --budget` trains first: alternately the best by counting, and one
    that is spread over the space. No network is run.
    """
    from lpzero.proxies import Measurements
    from lpzero.search.constraints import Constraints
    from lpzero.search.environment import Environment, Sampler
    from lpzero.search.ledger import Ledger
    from lpzero.search.loops.budget import Budget
    from lpzero.search.scorer import NoProxy, Scorer

    home = _own(space)
    sampler = Sampler(home, Constraints(), lambda arch: 0.0)
    ledger = Ledger(home)
    scorer = Scorer(NoProxy(0), home, Measurements(), ledger)
    place = Environment(sampler, scorer, _Nothing(), ledger, random.Random(seed))
    Budget(budget=n, starts=n).run(place)
    return [parameters(home, arch) for arch in place.observed]


class _Nothing:
    """An evaluator that trains nothing: the start does not depend on targets."""

    name, target, is_free = "nothing", "nothing", True
    pool: Sequence[Any] | None = None

    def describe(self) -> dict[str, Any]:
        return {}

    def evaluate(self, archs: Sequence[Any]) -> Iterable[float]:
        return [0.0] * len(archs)


def to_distributions(space: SpaceLike) -> dict[str, BaseDistribution]:
    """Optuna's distribution of every choice, for `study.ask(...)`.

    Whole numbers at equal distances, three or more, are in their order; other choices have none.
    """
    _check_installed()
    from optuna.distributions import CategoricalDistribution, IntDistribution

    made: dict[str, BaseDistribution] = {}
    for name, values in _choices(_own(space)):
        ordered = sorted(values) if all(type(v) is int for v in values) else []
        steps = {b - a for a, b in pairwise(ordered)}
        if len(ordered) >= _FEW and len(steps) == 1:
            made[name] = IntDistribution(ordered[0], ordered[-1], step=steps.pop())
        else:
            made[name] = CategoricalDistribution(values)
    return made


def architecture(space: SpaceLike, params: Mapping[str, Any]) -> Any:
    """The architecture with these parameters of a trial, as `build` is given it."""
    home = _own(space)
    chosen = home.choices
    fields = {name: params[name] for name, _ in chosen.whole}
    for name, _ in chosen.layered:
        n_layers = int(params[str(chosen.depth)])
        fields[name] = [params[_of_layer(name, place)] for place in range(n_layers)]
    return home.from_json(fields)


def parameters(space: SpaceLike, arch: Any) -> dict[str, Any]:
    """The parameters of a trial with this architecture; those beyond its layers have any value."""
    home = _own(space)
    fields = home.to_json(arch)
    params = {name: fields[name] for name, _ in home.choices.whole}
    for name, values in home.choices.layered:
        given = [*fields[name], *[values[0]] * _most_layers(home)][: _most_layers(home)]
        params |= {_of_layer(name, place): value for place, value in enumerate(given)}
    return params


def from_study(study: Study, space: SpaceLike | None = None) -> AnyTable:
    """The finished trials as a table, for `discover`, `rank` and `exhaust`; larger is better.

    With the space its rows are architectures, without it columns of parameters.
    """
    _check_installed()
    from optuna.study import StudyDirection
    from optuna.trial import TrialState

    if len(study.directions) != 1:
        raise InputError("the study has several objectives; a table has one target")
    is_smaller = study.direction == StudyDirection.MINIMIZE
    trials = [trial for trial in study.trials if trial.state == TrialState.COMPLETE]
    if not trials:
        raise InputError("no trial of the study is complete")
    values = [float(trial.value) for trial in trials if trial.value is not None]
    if space is not None:
        home = _own(space)
        archs = (architecture(home, trial.params) for trial in trials)
        pairs = list(zip(archs, values, strict=True))
        return table_of(pairs, home, smaller_is_better=is_smaller)  # type: ignore[return-value]
    from spaces.tables.column_files import column_table
    from spaces.tables.readers import ReadOptions
    from spaces.tables.row_files import Rows

    names = list(trials[0].params)
    if any(trial.params.keys() != trials[0].params.keys() for trial in trials):
        raise InputError("the trials have different parameters: give the space")
    places = [f"trial {trial.number}" for trial in trials]
    cells: list[Sequence[Any]] = [
        [*(trial.params[name] for name in names), value]
        for trial, value in zip(trials, values, strict=True)
    ]
    rows = Rows(study.study_name, [*names, _VALUE], cells, places)
    return column_table(rows, ReadOptions(_VALUE, is_smaller, categories=True), study.study_name)


def _check_installed() -> None:
    if find_spec("optuna") is None:
        raise InputError("optuna is not installed: pip install 'lpzero[optuna]'")


def _own(space: SpaceLike) -> OwnSpace:
    import spaces

    found = space if isinstance(space, OwnSpace) else spaces.get(str(space_name(space)))
    if not isinstance(found, OwnSpace):
        raise InputError(
            f"space {found.name} is not of plain choices: Optuna needs one of lpzero.space or"
            " lpzero.hf.space"
        )
    return found


def _choices(space: OwnSpace) -> Iterator[tuple[str, Sequence[Any]]]:
    yield from space.choices.whole
    for name, values in space.choices.layered:
        for place in range(_most_layers(space)):
            yield _of_layer(name, place), values


def _most_layers(space: OwnSpace) -> int:
    [numbers] = [values for name, values in space.choices.whole if name == space.choices.depth]
    return max(int(number) for number in numbers)


def _of_layer(name: str, place: int) -> str:
    return f"{name}_{place}"
