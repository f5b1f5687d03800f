"""Evaluators of a search's architectures: a table, a surrogate, training, a trained supernet, or
the proxy alone.

A table that is looked up restricts the search to its architectures; `surrogate` has the process
that is fitted to one. Training is that of each architecture alone, by the recipe of nano tables, by
the space's own function or by one that the user names beside it, or that of a supernet before the
search, whose weights an architecture inherits. With `proxy` (or `none`) nothing is evaluated: the
best by the proxy is the result.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

import spaces
from lpzero.errors import InputError, LPZeroError
from lpzero.parallel import Lost, Workers, stream
from spaces import tables, user_modules
from spaces.base import Space
from spaces.errors import SpaceError, TableError, UnknownNameError
from spaces.tables.nano import is_trained, read_trained
from spaces.tables.registry import data_root, locate, source
from spaces.untrusted import user_path

if TYPE_CHECKING:
    from spaces.training.recipes import FunctionPlan, Plan

Train = Callable[[Any, int], float]  # from an architecture and a seed to a target
_LONGEST = 300  # letters of the reason why a training failed
PROXY, SURROGATE = "proxy", "surrogate"
SUPERNET = "supernet:"  # followed by the directory of its training
TRAINING = "training"
BY_FUNCTION = f"{TRAINING}:"  # followed by the function's address
NAMES = ("table", SURROGATE, TRAINING, f"{SUPERNET}DIR", PROXY)


class Evaluator(Protocol):
    """Targets of architectures (larger is better), and a description of their source."""

    name: str
    target: str
    # Whether targets cost nothing, so that the trace may show targets that no loop needs.
    is_free: bool
    # The only architectures that it can evaluate; None if it can evaluate the whole space.
    pool: Sequence[Any] | None

    def describe(self) -> dict[str, Any]:
        """A description as JSON values: its source, and its error if it has one."""

    def evaluate(self, archs: Sequence[Any]) -> Iterable[float | str]:
        """The target of each architecture, or why it has none; in order, yielded when known."""


def is_training(name: str) -> bool:
    """Whether the evaluator of that name trains architectures."""
    return name == TRAINING or name.startswith(BY_FUNCTION)


def check(name: str) -> str:
    """The evaluator's name; raise UnknownNameError if there is none."""
    if name == "none":
        return PROXY
    if (name.startswith(SUPERNET) and name != f"{SUPERNET}DIR") or name.startswith(BY_FUNCTION):
        return name
    if name not in NAMES:
        raise UnknownNameError("evaluator", name, (*NAMES, "none"))
    return name


def make(
    name: str,
    space: Space[Any],
    table: str | None,
    steps: int | None,
    data: str | None = None,
    workers: Workers | None = None,
) -> Evaluator | None:
    """The evaluator; None for `proxy`. `steps` shortens training."""
    if steps is not None and name != TRAINING:
        raise InputError(f"evaluator {name} does not train: leave --training-steps out")
    is_of_table = name in ("table", SURROGATE)
    if not is_of_table and table is not None:
        kind = name.partition(":")[0]
        raise InputError(f"evaluator {kind} reads no table: leave --table out, or name another")
    if name == PROXY:
        return None
    if is_training(name):
        plan = _plan(space, steps) if name == TRAINING else _function_plan(space, name)
        return Training(plan, workers or Workers())
    if not is_of_table:
        return SupernetEvaluator(space, name.removeprefix(SUPERNET))
    table = table or table_of(space)
    if table is None:
        raise InputError(
            f"there is no table of space {space.name}: name one with --table, or use --evaluator"
            " training or proxy"
        )
    return _of_table(name, space, table, data)


_GIVEN: dict[str, tables.Table] = {}  # tables that the user gave as values
_FUNCTIONS: dict[str, Train] = {}  # functions that the user gave as values


def remember(table: tables.Table | tables.ColumnTable) -> str:
    """The name by which a table that was given as a value is known in this process."""
    if table.space is None:
        raise InputError(f"table {table.name} has no networks: a search needs architectures")
    name = f"{table.name}-{table.digest[:8]}"
    _GIVEN[name] = table
    return name


def remember_function(train: Train) -> str:
    """The evaluator's name for a function that was given as a value, known in this process."""
    if not callable(train):
        raise InputError(f"train is a {type(train).__name__}, expected a function of arch and seed")
    name = f"{BY_FUNCTION}{getattr(train, '__name__', type(train).__name__)}"
    _FUNCTIONS[name] = train
    return name


@lru_cache(maxsize=2)
def _of_table(name: str, space: Space[Any], table: str, data: str | None) -> Evaluator:
    """Cached, because a comparison runs many searches with the same surrogate."""
    path = user_path(table)
    if table in _GIVEN:
        loaded = _GIVEN[table].in_space(space)
    elif is_trained(path):
        loaded = read_trained(path, space.name)
    else:
        loaded = _read(name, space, table, data)
    if name != SURROGATE:
        return LookUp(loaded)
    from lpzero.search.surrogate import Surrogate

    return Surrogate(space, loaded)


def _read(name: str, space: Space[Any], table: str, data: str | None) -> tables.Table:
    """The table in the space; in a part of the table's own space what is known of that part.

    A search confined to the table gets its rows inside the part; a surrogate is fitted to all
    rows, because those outside are neighbours.
    """
    try:
        return tables.load(table, data, space.name)
    except TableError:
        whole = tables.load(table, data)
        inside = whole.rows_in(space)
        if not inside:
            raise
        return whole if name == SURROGATE else whole.only(inside).in_space(space)


def table_of(space: Space[Any]) -> str | None:
    """The first known table of the space, or of a space that it is the known part of."""
    own = user_modules.named_space(space.name)  # a table of it may name it by another address
    sources = (source(name) for name in tables.names())
    return next(
        (
            table.name
            for table in sources
            if space.name in (table.space, table.drawn_from)
            or (own is not None and _is_at(own, table.space))
        ),
        None,
    )


def _is_at(own: Space[Any], address: str) -> bool:
    # The tables that are listed are the package's, those of plug-ins and of `lpzero.yaml`.
    return user_modules.is_address(address) and spaces.load(address) == own


def default(space: Space[Any], table: str | None, data: str | None) -> str:
    """A surrogate if a table is named or available, else the proxy alone."""
    if table is None:
        table = table_of(space)
        if table is None:
            return PROXY
        try:
            locate(source(table), data_root(data))
        except TableError:
            return PROXY
    return SURROGATE


class LookUp:
    """Targets of a table; the mean where an architecture has several rows."""

    name = "table"
    is_free = True

    def __init__(self, table: tables.Table) -> None:
        self.table, self.target = table, table.target
        rows: dict[Any, list[float]] = {}
        for arch, target in zip(table.archs, table.targets, strict=True):
            rows.setdefault(arch, []).append(float(target))
        self._targets = {arch: float(np.mean(targets)) for arch, targets in rows.items()}
        self.pool: Sequence[Any] | None = list(rows)

    def describe(self) -> dict[str, Any]:
        return {"evaluator": self.name} | describe_table(self.table)

    def evaluate(self, archs: Sequence[Any]) -> Iterable[float]:
        return [self._targets[arch] for arch in archs]


def describe_table(table: tables.Table) -> dict[str, Any]:
    """The table that targets come from, as JSON values."""
    return {"table": table.name, "digest": table.digest, "n": len(table)}


class TrainingError(LPZeroError):
    """An architecture could not be trained."""


class Training:
    """Trains each architecture by the recipe of the space's table; several at a time."""

    name = "training"
    is_free = False
    pool: Sequence[Any] | None = None

    def __init__(self, plan: Plan | FunctionPlan, workers: Workers) -> None:
        self.plan, self.workers = plan, workers
        self.target = plan.target_name

    def describe(self) -> dict[str, Any]:
        from spaces.training.recipes import TablePlan

        recipe: dict[str, Any] = {}
        if isinstance(self.plan, TablePlan):
            recipe = {"task": self.plan.task, **dataclasses.asdict(self.plan.recipe)}
        return {"evaluator": self.name, "seeds": self.plan.n_seeds} | recipe

    def evaluate(self, archs: Sequence[Any]) -> Iterable[float | str]:
        return self.train(archs, range(self.plan.n_seeds))

    def train(self, archs: Sequence[Any], seeds: Sequence[int]) -> Iterable[float | str]:
        """The mean target over the seeds of each architecture, or why its training failed."""
        waiting: dict[int, float | str] = {}
        place = 0
        task = _TrainTask(self.plan, tuple(seeds))
        with closing(stream(task, list(archs), self.workers)) as results:
            for index, target in results:
                if isinstance(target, Lost):
                    raise TrainingError(f"training was lost: {target.reason}")
                waiting[index] = target
                while place in waiting:
                    yield waiting.pop(place)
                    place += 1


@dataclass(frozen=True, slots=True)
class _TrainTask:
    """Runs in a worker: the mean target of one architecture, or why one of its trainings failed."""

    plan: Plan | FunctionPlan
    seeds: tuple[int, ...]

    def __call__(self, arch: Any) -> float | str:
        targets = []
        for seed in self.seeds:
            try:
                training = self.plan.run(arch, seed)
            except SpaceError as error:
                return " ".join(str(error).split())[:_LONGEST]
            if training["target"] is None:
                return str(training["failure"])
            targets.append(training["target"])
        return float(np.mean(targets))


def _function_plan(space: Space[Any], name: str) -> FunctionPlan:
    """Training by the user's function of that name, given as a value or by its address."""
    from spaces.training.recipes import FunctionPlan

    train = _FUNCTIONS.get(name)
    if train is None:
        address = name.removeprefix(BY_FUNCTION)
        train = user_modules.find(address, Callable, "function")  # type: ignore[arg-type]
    return FunctionPlan(user_modules.address_of(space), train)


def _plan(space: Space[Any], steps: int | None) -> Plan:
    """The space's own training, or the recipe of its nano table."""
    from spaces.training.recipes import PLANS, own_plan

    own = own_plan(user_modules.address_of(space))
    if own is not None:
        if steps is not None:
            raise InputError("training steps are for nano spaces; your own train decides its steps")
        return own
    if space.name not in PLANS:
        names = ", ".join(sorted(PLANS))
        raise InputError(f"there is no training recipe for space {space.name}; use {names}")
    plan = PLANS[space.name]
    if steps is not None:
        plan = dataclasses.replace(plan, recipe=dataclasses.replace(plan.recipe, steps=steps))
    return plan


class SupernetEvaluator:
    """Measures every architecture on the data that the supernet's training held out for choices."""

    name = "supernet"
    is_free = False
    pool: Sequence[Any] | None = None

    def __init__(self, space: Space[Any], folder: str) -> None:
        from lpzero.supernet.trained import open_supernet

        self.trained = open_supernet(folder)
        trained_space = self.trained.supernet.space.name
        if trained_space != space.name:
            raise InputError(f"{folder} has a supernet of space {trained_space}, not {space.name}")
        self.folder = folder
        self.target = f"{self.trained.task.target_name} in the supernet"

    def describe(self) -> dict[str, Any]:
        settings = self.trained.request.settings
        return {
            "evaluator": self.name,
            "directory": self.folder,
            "dataset": self.trained.request.dataset,
            "sampler": settings.sampler,
            "steps": settings.steps,
        }

    def evaluate(self, archs: Sequence[Any]) -> Iterable[float]:
        return (self.trained.measure(arch).value for arch in archs)
