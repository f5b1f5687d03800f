"""Runs a request: sets up the environment, runs the loop, describes the result."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lpzero.judgement import counters
from lpzero.parallel import Workers
from lpzero.parallel.workers import LOCAL
from lpzero.proxies import Context, Measurements
from lpzero.runs.config import SCHEMA
from lpzero.runs.journal import Journal
from lpzero.search import QUICK, answers, evaluators
from lpzero.search import ledger as facts
from lpzero.search.confirmation import confirmation
from lpzero.search.constraints import COUNTED, Stopwatch
from lpzero.search.cost import Cost, estimate, n_cores
from lpzero.search.environment import Begin, Entry, Environment, Sampler
from lpzero.search.evaluators import Evaluator
from lpzero.search.ledger import Deadline, Ledger, TimeUpError
from lpzero.search.request import Request
from lpzero.search.scorer import Scorer
from lpzero.search.search_run import publish, search_directory, stored_request
from lpzero.search.surrogate import Surrogate
from lpzero.sketches.store import cache_folder

# With a time limit, so many architectures per process are scored before the clock is read.
_AT_ONCE = 4
# Scoring that takes less than these seconds in one process is done before others have started.
_LONG = 30.0
# Called with every entry of the trace when it is added.
Show = Callable[[Entry], None]


@dataclass(frozen=True)
class Resources:
    """Where a search runs; nothing here changes its result, except for latencies.

    `jobs` None is every core if the networks take long, else one process.
    """

    data: str | None = None
    cache: Path = field(default_factory=cache_folder)
    device: str = "cpu"
    jobs: int | None = 1
    backend: str = LOCAL
    scheduler: str | None = None
    label: str | None = None
    show: Show = lambda entry: None
    begin: Begin = lambda number, archs: None
    lock: bool = True
    # Told, in a line each, what the search will cost and how well its surrogate fits.
    say: Callable[[str], None] | None = None

    @property
    def workers(self) -> Workers:
        return Workers(self.jobs or 1, self.backend, self.scheduler)

    def workers_for(self, cost: Cost | None) -> Workers:
        """The workers for scoring that costs so much."""
        if self.jobs is None and self.backend == LOCAL and cost is not None and cost.total >= _LONG:
            return Workers(n_cores())
        return self.workers


@dataclass(frozen=True)
class SearchOutcome:
    """The result of a search, as in result.json, and the seconds that this process took."""

    result: dict[str, Any]
    seconds: float

    @property
    def best(self) -> dict[str, Any]:
        best: dict[str, Any] = self.result["best"]
        return best

    @property
    def trace(self) -> list[Entry]:
        trace: list[Entry] = self.result["trace"]
        return trace


def run(
    request: Request,
    resources: Resources | None = None,
    out: Path | None = None,
    resume: bool = False,
    time_limit: float | None = None,
) -> SearchOutcome:
    """Run the search, in memory or in the directory `out`, for at most `time_limit` seconds.

    A search that the limit ends gives the best so far; its facts are the first of those that the
    whole search finds, and resuming it finds the rest.
    """
    resources = resources or Resources()
    start = time.monotonic()
    deadline = (
        None
        if time_limit is None
        else Deadline(time_limit, _AT_ONCE * (resources.jobs or n_cores()))
    )
    evaluator = evaluators.make(
        request.evaluator,
        request.made_space,
        request.table,
        request.training_steps,
        resources.data,
        resources.workers,
    )
    made_in = time.monotonic() - start
    is_started = out is not None and resume and stored_request(out) is not None
    if not is_started:
        pool = None if evaluator is None else evaluator.pool
        clock = Stopwatch(request.made_space, resources.device)
        request.constraints.check(request.made_space, clock, pool)
    with ExitStack() as stack:
        directory = None
        if out is not None:
            directory = stack.enter_context(search_directory(out, request, resume, resources.lock))
            directory.log_remarks()
        journal = None if directory is None else directory.journal
        environment = _environment(request, evaluator, resources, journal, deadline)
        cost = None
        if resources.say is not None or resources.jobs is None:
            cost = estimate(request, environment)
        workers = resources.workers_for(cost)
        environment.scorer.run_on(workers)
        if resources.say is not None:
            _announce(environment, made_in, cost, workers.jobs, resources.say)
        is_over, confirmed = False, None
        try:
            winner = request.made_loop.run(environment)
            confirmed = confirmation(environment, request.confirm)
        except TimeUpError:
            is_over = True
            winner = environment.best_so_far(request.made_loop.by_proxy)
        # A plug-in's loop may not be a `Loop`.
        conclude = getattr(request.made_loop, "conclude", None)
        concluded = {} if conclude is None else conclude(environment)
        result = _result(request, environment, winner, is_over) | concluded
        result |= {} if confirmed is None else {"confirmed": confirmed}
        seconds = time.monotonic() - start
        if directory is not None:
            publish(directory, result, seconds)
    return SearchOutcome(result, seconds)


def _announce(
    environment: Environment,
    made_in: float,
    cost: Cost | None,
    jobs: int,
    say: Callable[[str], None],
) -> None:
    """Say how well the surrogate fits, and what the search will cost."""
    made = environment.evaluator
    if isinstance(made, Surrogate):
        rows = f"{len(made.table):,} rows of {made.table.name}"
        say(f"surrogate of {rows}, in {made_in:.1f} s: cross-validated rho {made.rho:.3f}")
    if cost is not None:
        say(cost.text(jobs))


def _environment(
    request: Request,
    evaluator: Evaluator | None,
    resources: Resources,
    journal: Journal | None,
    deadline: Deadline | None,
) -> Environment:
    space = request.made_space
    ledger = Ledger(space, journal, deadline)
    stopwatch = Stopwatch(space, resources.device)

    def timed(archs: Iterable[Any]) -> Iterable[float]:
        return (stopwatch(arch) for arch in archs)

    def clock(arch: Any) -> float:
        latency: float = ledger.find(facts.LATENCY, [arch], timed)[0]
        return latency

    context = Context(
        seed=request.weights_seed,
        device=resources.device,
        folder=resources.cache,
        workers=resources.workers,
        label=resources.label,
        batch=request.batch,
        is_quick=request.networks == QUICK,
    )
    pool = None if evaluator is None else evaluator.pool
    is_inside = None
    if request.inside_table and isinstance(evaluator, Surrogate):
        is_inside = evaluator.is_inside
    sampler = Sampler(space, request.constraints, clock, pool, is_inside)
    scorer = Scorer(request.made_proxy, space, Measurements(context), ledger, pool)
    return Environment(
        sampler,
        scorer,
        evaluator,
        ledger,
        random.Random(request.seed),
        resources.show,
        resources.begin,
    )


def _result(
    request: Request, environment: Environment, winner: Any, is_over: bool
) -> dict[str, Any]:
    ledger = environment.ledger
    # When the time is over nothing new is computed, and without a proxy no random number.
    if environment.is_guided and not is_over:
        environment.scores([winner])
    best = _described(environment, winner)
    if best.get("target", 0) is None and environment.evaluator and environment.evaluator.is_free:
        [best["target"]] = environment.evaluator.evaluate([winner])
    if isinstance(environment.evaluator, Surrogate):
        best["outside_table"] = environment.evaluator.outside(winner)
    latency = ledger.get(facts.LATENCY, winner)
    if latency is not None:
        best["latency"] = latency
    environment.settle_trace()
    scored = ledger.archs(facts.SCORE)
    second = answers.runner_up(environment, winner)
    beside = answers.place_and_interval(environment, best.get("target"))
    if second is not None:
        beside["runner_up"] = _described(environment, second)
    return {
        "schema": SCHEMA,
        **request.to_json(),
        "evaluator": {"evaluator": evaluators.PROXY}
        if environment.evaluator is None
        else environment.evaluator.describe() | {"target": environment.evaluator.target},
        "best": best,
        **beside,
        "scored": len(scored),
        "without_score": sum(None in ledger.get(facts.SCORE, arch) for arch in scored),
        "evaluations": len(environment.observed) if environment.evaluator is not None else 0,
        "trace": environment.trace,
        **({"remarks": environment.remarks} if environment.remarks else {}),
        **({"stopped_by": "time limit"} if is_over else {}),
    }


def _described(environment: Environment, arch: Any) -> dict[str, Any]:
    """The architecture, its score, its target if architectures are evaluated, and its sizes."""
    space = environment.space
    described = {"arch": space.to_json(arch), "score": environment.score(arch)}
    if environment.evaluator is not None:
        described["target"] = environment.target(arch)
    for cost in COUNTED:
        described[cost.replace("-", "_")] = int(counters.get(cost)(space, arch))
    return described | {"depth": space.depth(arch), "width": space.width(arch)}
