"""How networks are built and run for proxies, and the values already known of them.

A value depends on the architecture, the seeds, the loss and the measure alone, so it is kept on
disk under these and never computed twice: one file per architecture and seeds, written whole, in
`proxies/` of the cache folder.
"""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lpzero.errors import InputError
from lpzero.parallel import Lost, Workers, stream
from lpzero.proxies.registry import Measure
from lpzero.sketches.sketch import SketchOptions, address
from lpzero.sketches.store import Store, default_folder
from spaces.base import Space

if TYPE_CHECKING:
    from lpzero.proxies.network import Network

logger = logging.getLogger(__name__)
_ENDING = ".json"


@dataclass(frozen=True, slots=True)
class Record:
    """One measure of one network: the sum of its terms, their number, and by block.

    A score that is not finite is NaN. `seconds` of processor time include the shared passes.
    """

    score: float
    count: int = 1
    blocks: tuple[float, ...] | None = None
    seconds: float = 0.0


MISSING = Record(math.nan)


@dataclass(frozen=True)
class Context:
    """Seeds of weights and batch, loss, device, sequences per pass, cache folder, workers."""

    seed: int = 0
    batch_seed: int = 0
    loss: str = "auto"
    device: str = "cpu"
    chunk: int | None = None
    folder: Path = field(default_factory=default_folder)
    workers: Workers = field(default_factory=Workers)
    label: str | None = None
    _known: dict[tuple[str, str], Record] = field(default_factory=dict, repr=False, compare=False)
    memory: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def options(self) -> SketchOptions:
        """What decides the values of a network's measures."""
        return SketchOptions(None, self.loss, self.seed, self.batch_seed)

    def measure(
        self, space: Space[Any], archs: Sequence[Any], measures: Sequence[Measure]
    ) -> dict[str, list[Record]]:
        """The records of every measure, in the order of the architectures.

        What is not in the cache is computed first, all measures of an architecture together. An
        architecture that fails has no scores, a warning, and is tried again next time.
        """
        addresses = [address(space, arch, self.options) for arch in archs]
        todo = self._missing(space, addresses, measures)
        if todo:
            known = dict(zip(addresses, archs, strict=True))
            order = sorted(todo, key=lambda name: (-space.flops(known[name]), name))
            task = _MeasureTask(
                space, tuple(measures), self.options, self.device, self.chunk, self._store
            )
            tasks = [(name, known[name]) for name in order]
            self._store.sweep()
            with closing(stream(task, tasks, self.workers, self.label)) as results:
                for index, result in results:
                    self._note(order[index], measures, result)
        return {
            m.name: [self._known.get((name, _key(m)), MISSING) for name in addresses]
            for m in measures
        }

    @property
    def _store(self) -> Store:
        return Store(self.folder / "proxies")

    def _missing(
        self, space: Space[Any], addresses: Sequence[str], measures: Sequence[Measure]
    ) -> list[str]:
        """The addresses of which some measure is neither in memory nor on disk."""
        keys = [_key(measure) for measure in measures]
        missing = []
        for name in dict.fromkeys(addresses):
            if all((name, key) in self._known for key in keys):
                continue
            records = _read(self._store, space.name, name)
            self._known.update({(name, key): record for key, record in records.items()})
            if not all(key in records for key in keys):
                missing.append(name)
        return missing

    def _note(
        self, name: str, measures: Sequence[Measure], result: dict[str, Record] | str | Lost
    ) -> None:
        if isinstance(result, dict):
            self._known.update({(name, key): record for key, record in result.items()})
            return
        reason = result.reason if isinstance(result, Lost) else result
        logger.warning("architecture %s has no scores: %s", name[:12], reason)
        self._known.update({(name, _key(m)): MISSING for m in measures})


@dataclass(frozen=True, slots=True)
class _MeasureTask:
    """Runs in a worker: every missing measure of one architecture, kept in the cache."""

    space: Space[Any]
    measures: tuple[Measure, ...]
    options: SketchOptions
    device: str
    chunk: int | None
    store: Store

    def __call__(self, task: tuple[str, Any]) -> dict[str, Record] | str:
        from lpzero.statistics.errors import StatisticsError
        from lpzero.statistics.isolation import single_thread

        name, arch = task
        records = _read(self.store, self.space.name, name)
        todo = [measure for measure in self.measures if _key(measure) not in records]
        try:
            with single_thread():
                network = self._network(arch)
                records |= {_key(measure): evaluate(measure, network) for measure in todo}
        except (StatisticsError, InputError):  # what no architecture could use
            raise
        except Exception as error:  # one architecture's failure is a result, not the end
            return f"{type(error).__name__}: {error}"
        _write(self.store, self.space.name, name, records)
        return records

    def _network(self, arch: Any) -> Network:
        from lpzero.proxies.network import Network
        from lpzero.statistics.isolation import resolve_device

        model = self.space.build(arch, self.options.seed).to(resolve_device(self.device))
        seed = self.options.batch_seed
        tokens = self.space.batch(seed)
        return Network(model, tokens, self.options.loss, seed=seed, chunk=self.chunk)


def evaluate(measure: Measure, network: Network) -> Record:
    """The measure of one network, any model's, with what it cost."""
    network.used.clear()
    before = dict(network.seconds)
    start = time.process_time()
    value = measure.function(network)
    own = time.process_time() - start
    new = sum(s for name, s in network.seconds.items() if name not in before)
    seconds = round(own - new + sum(network.seconds[name] for name in network.used), 4)
    if isinstance(value, list):
        blocks = tuple(math.fsum(terms) for terms in value)
        count = sum(len(terms) for terms in value)
        return _record(math.fsum(blocks), max(count, 1), blocks, seconds)
    return _record(float(value), 1, None, seconds)


def _record(score: float, count: int, blocks: tuple[float, ...] | None, seconds: float) -> Record:
    if not math.isfinite(score):
        return Record(math.nan, count, None, seconds)
    return Record(score, count, blocks, seconds)


def _key(measure: Measure) -> str:
    return f"{measure.name}/{measure.version}"


def _read(store: Store, space: str, name: str) -> dict[str, Record]:
    """What the file holds; nothing if there is none or it cannot be read."""
    try:
        found = json.loads(store.path(space, name, _ENDING).read_bytes())
        return {
            key: Record(
                math.nan if score is None else float(score),
                int(count),
                None if blocks is None else tuple(map(float, blocks)),
                float(seconds),
            )
            for key, (score, count, blocks, seconds) in found.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _write(store: Store, space: str, name: str, records: dict[str, Record]) -> None:
    value = {
        key: [None if math.isnan(r.score) else r.score, r.count, r.blocks, r.seconds]
        for key, r in sorted(records.items())
    }
    text = json.dumps(value, allow_nan=False)
    store.replace(store.path(space, name, _ENDING), text.encode())
