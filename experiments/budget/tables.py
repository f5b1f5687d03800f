"""How many trainings find one of the best, on tables as look-ups: the loop `budget` and its rivals.

    python -m experiments.budget.tables --seeds 30

A search ends with one of the best three rows of a table, or of the best 1%, or after 64 trainings.
Ratios are paired: trainings of the rival over those of the loop from the same seed, geometric means
over seeds and then over tables; intervals resample tables, and seeds within each. No network is
built. Every seed of a table is kept in --out, so that a stopped run continues.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from statistics import median
from typing import Any

import click
import numpy as np
from scipy.stats import norm

from experiments.budget.optuna_rows import Choices, by_tpe
from experiments.measured import prints_measured
from experiments.reproduction import markdown
from experiments.resumable import resume
from lpzero.arrays import FloatArray
from lpzero.cli.options import data_option
from lpzero.proxies import Measurements, Proxy, find
from lpzero.scores.features import Features, describe_quickly
from lpzero.scores.gaussian import one_thread
from lpzero.search.constraints import Constraints
from lpzero.search.environment import Environment, Sampler
from lpzero.search.improvement import Candidates, choose
from lpzero.search.ledger import Ledger
from lpzero.search.loops import Loop
from lpzero.search.loops.budget import Budget
from lpzero.search.loops.etas import Etas
from lpzero.search.scorer import NoProxy, Scorer
from spaces.base import Space
from spaces.tables import load

TABLES = (
    "flexibert",
    "gpt2-wt103",
    "transformer-xl",
    "openlm",
    *(f"{space}-{images}-kd" for space in ("autoformer", "pit") for images in ("c100", "flowers")),
    "autoformer-chaoyang-kd",
    "pit-chaoyang-kd",
    "rnn-ptb",
    "rnn-wikitext2",
    "nano-gpt2",
    "nano-flexibert",
    "nano-rnn",
)
LOOP = "loop"
N_START = 6
MOST = 64  # trainings: a search that needs more counts as if it had needed no more
_BEST, _SHARE = 3, 0.01
_TREES = 50
_AT_ONCE = 3
_RESAMPLES = 2000
_PATIENCE = 300  # draws without a new mutant; a table has few
_FEW_MUTANTS, _ITERATIONS = 30, 12  # of ETAS on a table: 100 mutants are all that there is

Train = Callable[[int], float]


class ReachedError(Exception):
    """One of the best was trained, or as many as are counted."""


@dataclass(frozen=True, eq=False)
class Instance:
    """A table as a problem: architectures, their targets (n,), and which rows are good enough."""

    space: Space[Any]
    archs: Sequence[Any]
    targets: FloatArray

    @cached_property
    def goal(self) -> frozenset[int]:
        """The rows that end a search."""
        n = max(_BEST, round(_SHARE * len(self.targets)))
        return frozenset(np.argsort(-self.targets, kind="stable")[:n].tolist())

    @cached_property
    def features(self) -> FloatArray:
        """The features (n, F) that the loop has."""
        rows = describe_quickly(self.space, self.archs)
        return Features.of(rows)(rows)

    @cached_property
    def choices(self) -> Choices:
        """The rows as Optuna sees them, by the choices of the space or by the features."""
        return Choices.of([self.space.to_json(arch) for arch in self.archs], self.features)

    @cached_property
    def sampler(self) -> Sampler:
        return _Hasty(self.space, Constraints(), lambda arch: 0.0, self.archs)


class _Hasty(Sampler):
    """Gives up sooner where mutants are no longer new."""

    def draw(
        self, n: int, make: Callable[[], Any], taken: Any = (), patience: int = _PATIENCE
    ) -> list[Any]:
        return super().draw(n, make, taken, patience)


@cache
def instance(name: str, data: str | None) -> Instance:
    """The table; the mean where an architecture has several rows."""
    table = load(name, data)
    rows: dict[Any, list[float]] = {}
    for arch, target in zip(table.archs, table.targets, strict=True):
        rows.setdefault(arch, []).append(float(target))
    targets = np.array([np.mean(values) for values in rows.values()])
    return Instance(table.space, list(rows), targets)


class Trainings:
    """Looks targets up and counts; raises ReachedError at one of the goal or after the most."""

    def __init__(self, table: Instance) -> None:
        self.table, self.n = table, 0

    def __call__(self, row: int) -> float:
        self.n += 1
        if row in self.table.goal or self.n == MOST:
            raise ReachedError
        return float(self.table.targets[row])


class _LookUp:
    """The evaluator of a loop."""

    name, target, is_free = "look-up", "target", True

    def __init__(self, table: Instance, train: Train) -> None:
        self.pool: Sequence[Any] | None = table.archs
        self._rows = {arch: row for row, arch in enumerate(table.archs)}
        self._train = train

    def describe(self) -> dict[str, Any]:
        return {}

    def evaluate(self, archs: Sequence[Any]) -> Iterable[float]:
        return (self._train(self._rows[arch]) for arch in archs)


def run_loop(
    loop: Loop, table: Instance, seed: int, train: Train, proxy: Proxy | None = None
) -> None:
    """Run a loop of the project on the table."""
    ledger = Ledger(table.space)
    scorer = Scorer(proxy or NoProxy(seed), table.space, Measurements(), ledger, table.archs)
    evaluator = _LookUp(table, train)
    loop.run(Environment(table.sampler, scorer, evaluator, ledger, random.Random(seed)))


def by_loop(table: Instance, seed: int, train: Train) -> None:
    run_loop(Budget(budget=len(table.archs)), table, seed, train)


def by_loop_with_sept(table: Instance, seed: int, train: Train) -> None:
    run_loop(Budget(budget=len(table.archs)), table, seed, train, find("sept"))


def by_loop_at_once(table: Instance, seed: int, train: Train) -> None:
    run_loop(Budget(budget=len(table.archs), at_once=_AT_ONCE), table, seed, train)


def by_start(table: Instance, seed: int, train: Train) -> None:
    n = len(table.archs)
    run_loop(Budget(budget=n, starts=n), table, seed, train)


def by_etas(table: Instance, seed: int, train: Train) -> None:
    proxy = find("sept")
    seen: set[int] = set()

    def first_time(row: int) -> float:
        seen.add(row)
        return train(row)

    of_paper: Any = Etas.of_space(table.space)
    loop = Etas(
        samples=of_paper.samples,
        mutants=_FEW_MUTANTS,
        probability=of_paper.probability,
        iterations=_ITERATIONS,
        patience=_ITERATIONS,
    )
    run_loop(loop, table, seed, first_time, proxy)
    scores = proxy.score(table.space, table.archs, Measurements())
    for row in np.argsort(-scores, kind="stable"):
        if int(row) not in seen:
            train(int(row))


def by_parameters(table: Instance, seed: int, train: Train) -> None:
    sizes = np.array([table.space.parameters(arch) for arch in table.archs])
    for row in np.argsort(-sizes, kind="stable"):
        train(int(row))


def at_random(table: Instance, seed: int, train: Train) -> None:
    for row in _shuffled(table, seed):
        train(row)


def by_process(table: Instance, seed: int, train: Train) -> None:
    """The loop's Gaussian process without prior and start."""
    candidates = Candidates(table.features, np.zeros(len(table.archs)))
    rows, targets = _begun(table, seed, train)
    while len(rows) < len(table.archs):
        [row] = choose(candidates, rows, np.array(targets), 1)
        rows.append(row)
        targets.append(train(row))


def by_forest(table: Instance, seed: int, train: Train) -> None:
    """Expected improvement by the mean and the deviation over trees of a random forest."""
    from sklearn.ensemble import RandomForestRegressor

    rows, targets = _begun(table, seed, train)
    while len(rows) < len(table.archs):
        forest = RandomForestRegressor(_TREES, random_state=seed, n_jobs=1)
        forest.fit(table.features[rows], targets)
        every = np.array([tree.predict(table.features) for tree in forest.estimators_])
        ahead = every.mean(axis=0) - max(targets)
        deviation = np.maximum(every.std(axis=0), 1e-12)
        gain = ahead * norm.cdf(ahead / deviation) + deviation * norm.pdf(ahead / deviation)
        gain[rows] = -np.inf
        rows.append(int(np.argmax(gain)))
        targets.append(train(rows[-1]))


def _begun(table: Instance, seed: int, train: Train) -> tuple[list[int], list[float]]:
    rows = _shuffled(table, seed)[:N_START]
    return rows, [train(row) for row in rows]


def _shuffled(table: Instance, seed: int) -> list[int]:
    return [int(row) for row in np.random.default_rng(seed).permutation(len(table.archs))]


def by_cold_tpe(table: Instance, seed: int, train: Train) -> None:
    by_tpe(table.choices, seed, train)


def by_warm_tpe(table: Instance, seed: int, train: Train) -> None:
    """Given the loop's first trainings."""
    rows: list[int] = []

    def note(row: int) -> float:
        rows.append(row)
        return 0.0

    run_loop(Budget(budget=N_START, starts=N_START), table, seed, note)
    by_tpe(table.choices, seed, train, rows)


@dataclass(frozen=True)
class Rival:
    """A way to choose what is trained; `run` trains rows until it is stopped."""

    name: str
    run: Callable[[Instance, int, Train], None]


RIVALS = (
    Rival(LOOP, by_loop),
    Rival("random", at_random),
    Rival("forest, expected improvement", by_forest),
    Rival("Optuna TPE, cold", by_cold_tpe),
    Rival("Optuna TPE, the same six starts", by_warm_tpe),
    Rival("Gaussian process on features, cold", by_process),
    Rival("ETAS with SEPT", by_etas),
    Rival("parameters in order", by_parameters),
    Rival("the start repeated", by_start),
    Rival("loop with --proxy sept", by_loop_with_sept),
    Rival(f"loop with --at-once {_AT_ONCE}", by_loop_at_once),
)


def n_trainings(rival: Rival, table: Instance, seed: int) -> int:
    """The trainings until one of the goal, at most `MOST`."""
    trainings = Trainings(table)
    try:
        rival.run(table, seed, trainings)
    except ReachedError:
        return trainings.n
    raise AssertionError(f"{rival.name} left rows untrained")


def summary(rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Each rival against the loop: the ratio of trainings with its interval, and by table."""
    names = list(dict.fromkeys(row["table"] for row in rows))
    logs = {
        rival.name: [
            np.log([row[rival.name] / row[LOOP] for row in rows if row["table"] == name])
            for name in names
        ]
        for rival in RIVALS
    }
    for rival in RIVALS:
        of_tables = logs[rival.name]
        rng = np.random.default_rng(0)
        drawn = []
        for _ in range(_RESAMPLES):
            picked = [of_tables[i] for i in rng.integers(len(names), size=len(names))]
            drawn.append(np.mean([rng.choice(values, len(values)).mean() for values in picked]))
        low, high = np.exp(np.quantile(drawn, [0.025, 0.975]))
        yield {
            "rival": rival.name,
            "ratio": float(np.exp(np.mean([values.mean() for values in of_tables]))),
            "interval": [float(low), float(high)],
            "ahead on": sum(float(values.mean()) > 0 for values in of_tables),
        }


def medians(rows: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The median trainings of each rival on each table."""
    for name in dict.fromkeys(row["table"] for row in rows):
        of_table = [row for row in rows if row["table"] == name]
        yield {"table": name, "seeds": len(of_table)} | {
            rival.name: median(row[rival.name] for row in of_table) for rival in RIVALS
        }


@click.command()
@click.option("--seeds", default=30, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/budget-tables"))
@data_option
@prints_measured
def main(seeds: int, out: Path, data: str | None) -> None:
    """Print the ratios to the loop, and the median trainings by table."""

    def work(key: str) -> Iterator[dict[str, Any]]:
        seed, name = key.split(" ", 1)
        table = instance(name, data)
        with one_thread():
            found = {rival.name: n_trainings(rival, table, int(seed)) for rival in RIVALS}
        yield {"table": name, "seed": int(seed), **found}

    keys = [f"{seed} {name}" for seed in range(seeds) for name in TABLES]
    rows = resume(out / "rows.jsonl", keys, work)
    click.echo(markdown(list(summary(rows)), ("rival", "ratio", "interval", "ahead on")))
    click.echo(markdown(list(medians(rows)), ("table", "seeds", *(r.name for r in RIVALS))))


if __name__ == "__main__":
    main()
