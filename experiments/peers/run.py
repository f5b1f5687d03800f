"""Formulas of columns against gplearn, DEAP and pyoperon, and the predictor against boosting.

python -m experiments.peers.run

On every split all fit the same rows (train and valid) and are tested once on the same test rows.
Ours goes first; every peer gets the CPU seconds that our formula took, its cross-validation
included, and one core. Every line is kept in --out as soon as it is there, so that a stopped run
continues. A peer that is not installed is left out: `pip install lpzero[peers]`.
"""

from __future__ import annotations

import operator
import random
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np

from experiments.measured import prints_measured
from experiments.reproduction import markdown
from lpzero import files
from lpzero.arrays import FloatArray, IntArray
from lpzero.cli.options import data_option
from lpzero.cli.output import note
from lpzero.discover.column_levels import column_levels
from lpzero.discover.levels import choose_level
from lpzero.judgement.correlation import spearman, spearman_many
from lpzero.judgement.ranks import rank_targets
from lpzero.runs.journal import Journal
from lpzero.scores.column_predictor import LeftOut, predictor_scores, ridge_scores
from lpzero.scores.columns import select
from lpzero.scores.gaussian import normal_targets
from spaces.tables import ColumnTable, load_any, split

TABLES = {"nasbench301-columns": None, "rnn-columns": 1000}  # the most rows that are fitted
FORMULAS = ("lpzero", "gplearn", "deap", "pyoperon")
OTHERS = ("lpzero-predictor", "ridge", "boosting")
_POPULATION = 500
_SAFE = 1e-9
_SHORT = 5000  # evaluations


class Task(NamedTuple):
    """Points (A, C) of all rows, the rows to fit and their targets as normal scores (n,)."""

    points: FloatArray
    rows: IntArray
    target: FloatArray
    seconds: float
    seed: int

    @property
    def known(self) -> FloatArray:
        """The points (n, C) that are fitted."""
        return self.points[self.rows]


class Fitted(NamedTuple):
    """The scores (A,) of all rows, the formulas evaluated, and the formula as text."""

    scores: FloatArray
    evaluated: int | None = None
    text: str = ""
    folds: Sequence[LeftOut] = ()


@click.command()
@click.option("--table", "tables", multiple=True, type=click.Choice(list(TABLES)))
@click.option("--splits", default=20, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), default=Path("runs/peers"))
@data_option
@prints_measured
def main(tables: tuple[str, ...], splits: int, out: Path, data: str | None) -> None:
    """Print medians of rho on test rows, wins and evaluations per CPU second."""
    out.mkdir(parents=True, exist_ok=True)
    with Journal(out / "splits.jsonl", lambda record, number: "peer" in record) as journal:
        rows = journal.records()
        journal.go_to(len(journal))
        for name in tables or TABLES:
            for seed in range(splits):
                if any((row["table"], row["split"]) == (name, seed) for row in rows):
                    continue
                lines = list(measure(name, seed, data))
                journal.append(lines)
                journal.sync()
                rows += lines
                note(f"{name}, split {seed}: {shown(lines)}")
    text = markdown(list(summary(rows)), ("table", "peer", "splits", "rho", "wins", "per_second"))
    files.write_text(out / "summary.md", text)
    click.echo(text)


def shown(lines: list[dict[str, Any]]) -> str:
    """The rho of each peer."""
    return ", ".join(f"{line['peer']} {line['rho']:.3f}" for line in lines)


def measure(name: str, seed: int, data: str | None) -> Iterator[dict[str, Any]]:
    """A line for each peer on one split."""
    table = load_any(name, data)
    assert isinstance(table, ColumnTable)
    parts = split(table, seed)
    rows = np.sort(np.concatenate([parts.train, parts.valid]))
    most = TABLES[name]
    if most is not None and len(rows) > most:
        rows = np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))
    columns = {
        of: np.asarray(values, dtype=np.float64)
        for of, values in select(table.columns, list(table.columns), name).items()
    }
    test = parts.open_test()

    def line(peer: str, fitted: Fitted, seconds: float) -> dict[str, Any]:
        rho = spearman(fitted.scores[test], table.targets[test])
        rate = None if fitted.evaluated is None else fitted.evaluated / seconds
        return {
            "table": name,
            "split": seed,
            "peer": peer,
            "rho": rho,
            "seconds": seconds,
            "per_second": rate,
            "formula": fitted.text,
        }

    start = time.process_time()
    ours = formula_of_ours(columns, table, rows, seed)
    seconds = time.process_time() - start
    yield line("lpzero", ours, seconds)
    task = Task(
        np.column_stack(list(columns.values())),
        rows,
        normal_targets(table.targets[rows]),
        seconds,
        seed,
    )
    peers: dict[str, Callable[[Task], Fitted]] = {
        "gplearn": by_gplearn,
        "deap": by_deap,
        "pyoperon": by_pyoperon,
        "boosting": by_boosting,
    }
    for peer, fit in peers.items():
        start = time.process_time()
        try:
            fitted = fit(task)
        except ImportError as error:
            note(f"{peer} is left out: {error}")
            continue
        yield line(peer, fitted, time.process_time() - start)
    start = time.process_time()
    predicted = predictor_scores(columns, rows, table.targets, ours.scores, ours.folds)
    yield line("lpzero-predictor", Fitted(predicted), time.process_time() - start)
    ridge = ridge_scores(columns, rows, table.targets)
    yield line("ridge", Fitted(ridge), 0.0)


def formula_of_ours(
    columns: dict[str, FloatArray], table: ColumnTable, rows: IntArray, seed: int
) -> Fitted:
    """The formula of the level that cross-validation takes, fitted on the rows."""
    levels = column_levels(columns, seed)
    choice = choose_level(levels, table.targets, rows, table.twins(), seed)
    assert choice is not None, "columns differ between rows"
    level = choice.level
    best = level.best(table.targets, rows, 1)[0]
    evaluated, text = levels[0].search.evaluated, str(level.formula(best))
    return Fitted(level.scores(best), evaluated, text, choice.folded[0])


def by_gplearn(task: Task) -> Fitted:
    """Symbolic regression with rank correlation as fitness, generation by generation."""
    from gplearn.genetic import SymbolicRegressor

    model = SymbolicRegressor(
        population_size=_POPULATION,
        generations=1,
        metric="spearman",
        function_set=("add", "sub", "mul", "div", "sqrt", "log", "abs", "inv"),
        parsimony_coefficient=0.001,
        warm_start=True,
        random_state=task.seed,
    )
    start, generations = time.process_time(), 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while time.process_time() - start < task.seconds or not generations:
            generations += 1
            model.set_params(generations=generations)
            model.fit(task.known, task.target)
        scores = np.asarray(model.predict(task.points))
        known = scores[task.rows]
    sign = np.sign(spearman(np.nan_to_num(known), task.target)) or 1.0
    return Fitted(sign * np.nan_to_num(scores), generations * _POPULATION, str(model._program))


def by_deap(task: Task) -> Fitted:
    """DEAP's evolution of expression trees, with rank correlation as fitness."""
    from deap import algorithms, base, creator, gp, tools

    primitives = gp.PrimitiveSet("columns", task.points.shape[1])
    for function, arity in (
        (operator.add, 2), (operator.sub, 2), (operator.mul, 2), (_divided, 2),
        (_logarithm, 1), (_root, 1),
    ):  # fmt: skip
        primitives.addPrimitive(function, arity)
    if not hasattr(creator, "PeerFitness"):
        creator.create("PeerFitness", base.Fitness, weights=(1.0,))
        creator.create("PeerTree", gp.PrimitiveTree, fitness=creator.PeerFitness)
    toolbox = base.Toolbox()
    toolbox.register("expr", gp.genHalfAndHalf, pset=primitives, min_=1, max_=3)
    toolbox.register("individual", tools.initIterate, creator.PeerTree, toolbox.expr)
    toolbox.register("population", tools.initRepeat, list, toolbox.individual)
    ranks = rank_targets(task.target)
    evaluated = 0

    def fitness(tree: Any) -> tuple[float]:
        nonlocal evaluated
        evaluated += 1
        with np.errstate(all="ignore"):
            scores = gp.compile(tree, primitives)(*task.known.T)
        scores = np.broadcast_to(np.asarray(scores, dtype=np.float64), ranks.shape)
        [rho] = spearman_many(scores[np.newaxis], ranks).values
        return (abs(float(rho)) - 0.001 * len(tree) if np.isfinite(rho) else -1.0,)

    toolbox.register("evaluate", fitness)
    toolbox.register("select", tools.selTournament, tournsize=3)
    toolbox.register("mate", gp.cxOnePoint)
    toolbox.register("expr_mut", gp.genFull, min_=0, max_=2)
    toolbox.register("mutate", gp.mutUniform, expr=toolbox.expr_mut, pset=primitives)
    limit = gp.staticLimit(key=operator.attrgetter("height"), max_value=8)
    toolbox.decorate("mate", limit)
    toolbox.decorate("mutate", limit)
    random.seed(task.seed)
    population, best = toolbox.population(n=_POPULATION), tools.HallOfFame(1)
    start = time.process_time()
    while time.process_time() - start < task.seconds or not best:
        population, _ = algorithms.eaSimple(
            population, toolbox, 0.7, 0.2, 1, halloffame=best, verbose=False
        )
    with np.errstate(all="ignore"):
        scores = gp.compile(best[0], primitives)(*task.points.T)
    scores = np.nan_to_num(np.broadcast_to(scores, len(task.points)))
    sign = np.sign(spearman(scores[task.rows], task.target)) or 1.0
    return Fitted(sign * scores, evaluated, str(best[0]))


def _divided(x: FloatArray, y: FloatArray) -> FloatArray:
    return np.asarray(x / np.where(np.abs(y) < _SAFE, 1.0, y))


def _logarithm(x: FloatArray) -> FloatArray:
    return np.asarray(np.log(np.abs(x) + _SAFE))


def _root(x: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt(np.abs(x)))


def by_pyoperon(task: Task) -> Fitted:
    """Operon's symbolic regression, whose fitness is R² with fitted constants.

    Its own limit of time is wall-clock: how many evaluations the CPU seconds allow is measured by a
    short run first, which is not counted.
    """
    start = time.process_time()
    short = _operon(task, _SHORT)
    rate = _evaluations(short) / max(time.process_time() - start, 1e-3)
    model = _operon(task, max(_SHORT, round(rate * task.seconds)))
    scores = np.nan_to_num(np.asarray(model.predict(task.points), dtype=np.float64))
    text = model.get_model_string(model.model_, 3)
    return Fitted(scores, _evaluations(model), str(text))


def _evaluations(model: Any) -> int:
    """The evaluations of an Operon run, those for fitting constants included."""
    return int(max(model.stats_["evaluation_count"], model.stats_.get("residual_evaluations", 0)))


def _operon(task: Task, evaluations: int) -> Any:
    """The regressor fitted with so many evaluations."""
    from pyoperon.sklearn import SymbolicRegressor

    model = SymbolicRegressor(
        allowed_symbols="add,sub,mul,div,log,sqrt,tanh,constant,variable",
        population_size=1000,
        pool_size=1000,
        generations=1_000_000,
        max_evaluations=evaluations,
        max_length=40,
        optimizer_iterations=1,
        n_threads=1,
        random_state=task.seed,
    )
    return model.fit(task.known, task.target)


def by_boosting(task: Task) -> Fitted:
    """Gradient boosting of trees; how many are used is chosen by rows held back.

    It reads single precision: columns are given as signed logarithms, which trees split alike.
    """
    from sklearn.ensemble import GradientBoostingRegressor

    model = GradientBoostingRegressor(
        n_estimators=1000,
        learning_rate=0.05,
        max_depth=4,
        subsample=0.7,
        n_iter_no_change=30,
        validation_fraction=0.15,
        random_state=task.seed,
    )
    points = np.sign(task.points) * np.log1p(np.abs(task.points))
    model.fit(points[task.rows], task.target)
    return Fitted(np.asarray(model.predict(points)))


def summary(rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Medians over splits by table and peer; wins are against ours of the same kind."""
    for table in TABLES:
        here = [row for row in rows if row["table"] == table]
        by_peer = {
            peer: {row["split"]: row for row in here if row["peer"] == peer}
            for peer in (*FORMULAS, *OTHERS)
        }
        for peer, lines in by_peer.items():
            if not lines:
                continue
            own = by_peer["lpzero" if peer in FORMULAS else "lpzero-predictor"]
            rates = [line["per_second"] for line in lines.values() if line["per_second"]]
            wins = sum(own[at]["rho"] > line["rho"] for at, line in lines.items())
            yield {
                "table": table,
                "peer": peer,
                "splits": len(lines),
                "rho": f"{np.median([line['rho'] for line in lines.values()]):.3f}",
                "wins": "" if lines is own else f"ours ahead in {wins}",
                "per_second": f"{np.median(rates):,.0f}" if rates else "",
            }


if __name__ == "__main__":
    main()
