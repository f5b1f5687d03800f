"""The loop of a campaign: step, record and show progress until the budget is spent."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lpzero.discover.candidate import Candidate
from lpzero.discover.evolution import Evolution, State
from lpzero.discover.hall_of_fame import HallOfFame, Tally
from lpzero.discover.objective import Objective
from lpzero.discover.storage import Storage
from lpzero.runs.journal import rare_collections

_SAVE_SECONDS = 0.5
_PUBLISH_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Progress:
    """What a callback receives after each generation; rates and times are of this process."""

    generation: int
    generations: int
    best: Candidate
    train: float
    tried: int
    evaluated: int
    repeats: int
    rejected: Counter[str]
    per_second: float
    seconds: float
    seconds_left: float | None
    measure_valid: Callable[[Candidate], float] = field(repr=False)

    @property
    def valid(self) -> float:
        """The best candidate's first objective on the validation rows.

        It is measured when it is read: a generation whose progress is not shown costs nothing.
        """
        return self.measure_valid(self.best)


# A callback that returns True stops the campaign after the generation.
Callback = Callable[[Progress], bool | None]


@dataclass(slots=True)
class CampaignOutcome:
    """The state of a campaign; `stopped` is the reason if it ended before its last generation."""

    state: State
    tally: Tally
    stopped: str | None = None
    seconds: float = 0.0

    @property
    def hall(self) -> HallOfFame:
        """The best formulas and the front."""
        return self.tally.hall


def run(
    evolution: Evolution,
    objective: Objective,
    storage: Storage,
    callbacks: Sequence[Callback] = (),
    time_limit: float | None = None,
) -> CampaignOutcome:
    """Run the campaign to its last generation, or until a callback or the time limit stops it."""
    rng = random.Random(evolution.settings.seed)
    state = storage.restore(rng)
    outcome = CampaignOutcome(state or State(), Tally())
    outcome.tally.count(outcome.state.tried)
    unsaved = storage.after_checkpoint()
    objective.known_verdicts = evolution.replayed(unsaved)
    objective.prepare()
    loop = _Loop(evolution, objective, storage, outcome, rng)
    with rare_collections():
        loop.run(callbacks, time_limit)
    return outcome


class _Loop:
    def __init__(
        self,
        evolution: Evolution,
        objective: Objective,
        storage: Storage,
        outcome: CampaignOutcome,
        rng: random.Random,
    ) -> None:
        self.evolution, self.objective, self.storage = evolution, objective, storage
        self.outcome, self.rng = outcome, rng
        self.start = time.monotonic()
        self.first = outcome.state.generation
        self.evaluated_before = outcome.tally.evaluated

    def run(self, callbacks: Sequence[Callback], time_limit: float | None) -> None:
        outcome, last = self.outcome, self.evolution.settings.generations
        saved = published = self.start
        while outcome.state.generation <= last and not outcome.state.exhausted:
            outcome.state = self.evolution.step(outcome.state, self.rng)
            self.storage.record(outcome.state)
            outcome.tally.count(outcome.state.tried)
            now = time.monotonic()
            if now - saved > _SAVE_SECONDS:
                self.storage.save(outcome.state, self.rng)
                saved = time.monotonic()
            if now - published > _PUBLISH_SECONDS:
                self._publish()
                published = time.monotonic()
            if callbacks and outcome.tally.best is not None:
                progress = self._progress(outcome.tally.best, now - self.start)
                answers = [callback(progress) for callback in callbacks]
                if any(answers):
                    outcome.stopped = "asked to stop"
                    break
            if time_limit is not None and now - self.start > time_limit:
                outcome.stopped = "the time limit"
                break
        if outcome.state.exhausted:
            outcome.stopped = "nothing new in this space"
        elif outcome.state.generation > last:
            outcome.stopped = None
        outcome.seconds = time.monotonic() - self.start
        self.storage.save(outcome.state, self.rng)
        self._publish()

    def _publish(self) -> None:
        names = [fitness.table.name for fitness in self.objective.tables_fitness]
        self.storage.publish(self.outcome.hall.rows(names), self.outcome.tally.history)

    def _progress(self, best: Candidate, seconds: float) -> Progress:
        outcome, tally = self.outcome, self.outcome.tally
        done = outcome.state.generation - self.first
        left = self.evolution.settings.generations + 1 - outcome.state.generation
        return Progress(
            generation=outcome.state.generation - 1,
            generations=self.evolution.settings.generations,
            best=best,
            train=self.objective.train(best),
            tried=tally.tried,
            evaluated=tally.evaluated,
            repeats=tally.repeats,
            rejected=Counter(tally.rejected),
            per_second=(tally.evaluated - self.evaluated_before) / max(seconds, 1e-9),
            seconds=seconds,
            seconds_left=seconds / done * left if done else None,
            measure_valid=self.objective.valid,
        )
