"""Measurements of networks in a context, cached on disk and in memory.

A measure's value depends only on the architecture, the seeds, the loss and the measure, so it is
cached on disk under these and never computed twice: one file per architecture and seeds, written
atomically and sealed with its address (`lpzero.files`), in `proxies/` of the cache folder.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lpzero.errors import EnvelopeError, InputError, UnsealedError
from lpzero.files import read_sealed, write_sealed
from lpzero.parallel import Lost, Workers, stream
from lpzero.proxies.base import Measure
from lpzero.scores.branch_table import branch_table
from lpzero.scores.chains import surviving
from lpzero.scores.values import Values
from lpzero.sketches.builder import Builder, Sketches, sketches
from lpzero.sketches.sketch import SketchOptions, address
from lpzero.sketches.store import Store, cache_folder
from lpzero.statistics import OURS, StatisticsError
from spaces.base import Space
from spaces.errors import BatchError
from spaces.flexibert import FlexiBertSpace
from spaces.gpt2 import Gpt2Space
from spaces.minibatch import Minibatch

if TYPE_CHECKING:  # torch is imported when networks are measured, not for scores of sketches
    from torch import Tensor

    from lpzero.proxies.network import Network
    from lpzero.statistics.objective import Loss
    from lpzero.supernet.released import ReleasedSelector
    from lpzero.supernet.saliency import Saliency

logger = logging.getLogger(__name__)
_ENDING = ".json"
_QUICK = "quick 2"  # another one whenever the passes of quick networks change
_SEQUENCES, _ENCODED = 16, 128


@dataclass(frozen=True, slots=True)
class Context:
    """Seeds of weights and batch, loss, device, sequences per pass, cache folder, workers, batch.

    `batch` is its size, length and text where they are not the space's own; `definitions` of H, W
    and G are for formulas alone. `is_quick`: networks as a search has them, with weights drawn by
    name (`spaces.initialisation.ByName`) and less exact passes (`Network.is_quick`). Their scores
    are cached apart from the others. Once `stops` is true no further network is run.
    """

    seed: int = 0
    batch_seed: int = 0
    loss: str = "auto"
    device: str = "cpu"
    chunk: int | None = None
    folder: Path = field(default_factory=cache_folder)
    workers: Workers = field(default_factory=Workers)
    label: str | None = None
    batch: Minibatch | None = None
    definitions: str = OURS
    is_quick: bool = False
    stops: Callable[[], bool] = lambda: False

    def address(self, space: Space[Any], arch: Any) -> str:
        """The name under which the measures of the architecture's network are cached."""
        found = address(space, arch, self.options)
        return sha256(f"{_QUICK} {found}".encode()).hexdigest() if self.is_quick else found

    @property
    def options(self) -> SketchOptions:
        """The options that determine the values of a network's measures."""
        return SketchOptions(None, self.loss, self.seed, self.batch_seed, self.batch)


@dataclass(frozen=True, slots=True)
class Record:
    """One measure of one network: the sum of its terms, their number, and the sum of each block.

    A score that is not finite is NaN. `seconds` of processor time include the shared passes.
    `failure` says why there is no score to cache.
    """

    score: float
    count: int = 1
    blocks: tuple[float, ...] | None = None
    seconds: float = 0.0
    failure: str | None = None


NOT_MEASURED = "not measured yet"
MISSING = Record(math.nan, failure=NOT_MEASURED)
# What is wrong for every architecture: it ends the measuring.
REFUSALS = (StatisticsError, InputError, BatchError)


class Architectures(NamedTuple):
    """Architectures of a space, in the form that `sketches` expects."""

    space: Space[Any]
    archs: Sequence[Any]


@dataclass(frozen=True, slots=True)
class _Known:
    """Measurements so far; a key includes everything the value depends on, seeds included."""

    records: dict[tuple[str, str], Record] = field(default_factory=dict)
    values: dict[tuple[Any, ...], tuple[Values, list[int]]] = field(default_factory=dict)
    supernets: dict[tuple[Space[Any], SketchOptions], Saliency] = field(default_factory=dict)
    selectors: dict[tuple[Space[Any], int], ReleasedSelector] = field(default_factory=dict)


class Measurements:
    """Measures of networks, scores of formulas and passes of supernets in one context.

    Each is computed when a proxy first needs it, then cached: measures and sketches on disk, the
    rest for as long as this object lives.
    """

    def __init__(self, context: Context | None = None) -> None:
        self.context = context or Context()
        self._known = _Known()

    def at(self, context: Context) -> Measurements:
        """Measurements with the same cache folder and memory in a context with other seeds."""
        other = Measurements(context)
        other._known = self._known
        return other

    def records(
        self, space: Space[Any], archs: Sequence[Any], measures: Sequence[Measure]
    ) -> dict[str, list[Record]]:
        """The records of each measure, in the order of the architectures.

        Missing records are computed first, all measures of an architecture together. An
        architecture that fails gets no scores and a warning, and is retried next time.
        """
        context, store = self.context, self._store
        batches = {} if context.batch else {m: own_batch(m, space) for m in measures}
        if any(batches.values()):
            found: dict[str, list[Record]] = {}
            for batch in dict.fromkeys(batches.values()):
                same = [m for m in measures if batches[m] == batch]
                other = self if batch is None else self.at(replace(context, batch=batch))
                found |= other.records(space, archs, same)
            return found
        addresses = [context.address(space, arch) for arch in archs]
        todo = self._missing(space, addresses, measures)
        if todo and not context.stops():
            known = dict(zip(addresses, archs, strict=True))
            order = sorted(todo, key=lambda name: (-space.flops(known[name]), name))
            context.options.check_batch(space, known[order[0]], context.chunk)
            how = context.options, context.device, context.chunk, context.is_quick
            task = _MeasureTask(space, tuple(measures), *how, store)
            tasks = [(name, known[name]) for name in order]
            store.sweep()
            with closing(stream(task, tasks, context.workers, context.label)) as results:
                for index, result in results:
                    self._note(order[index], measures, result)
                    if context.stops():
                        break
        records = self._known.records
        return {
            m.name: [records.get((name, _key(m)), MISSING) for name in addresses] for m in measures
        }

    def failed_sketches(
        self, space: Space[Any], archs: Sequence[Any], options: SketchOptions
    ) -> dict[int, str]:
        """Why an architecture has no sketch, by its place; missing sketches are built first."""
        if self.context.stops():
            return dict.fromkeys(range(len(archs)), NOT_MEASURED)
        return self._sketches(space, archs, options).failed

    def values(
        self, space: Space[Any], archs: Sequence[Any], options: SketchOptions
    ) -> tuple[Values, list[int]]:
        """Values from sketches of the architectures, and the indices that have a sketch."""
        key = (space, tuple(archs), options)
        if key not in self._known.values:
            found = self._sketches(space, archs, options)
            if not found.usable:
                reason = next(iter(found.failed.values()), "there are no architectures")
                raise InputError(f"no architecture has a sketch: {reason}")
            table = branch_table(found, surviving(1), found.usable, self.context.workers)
            self._known.values[key] = Values(table), found.usable
        return self._known.values[key]

    def saliency(self, space: Space[Any]) -> Saliency:
        """The saliency from one pass of the space's supernet."""
        from lpzero.supernet.saliency import Saliency

        context = self.context
        key = (space, context.options)
        if key not in self._known.supernets:
            self._known.supernets[key] = Saliency.of(
                space,
                seed=context.seed,
                batch_seed=context.batch_seed,
                images=context.options.tokens(space),
                loss=context.loss,
                device=context.device,
                chunk=context.chunk,
            )
        return self._known.supernets[key]

    def released_selector(self, space: Space[Any]) -> ReleasedSelector:
        """The pass of PreNAS's public selector."""
        from lpzero.supernet.released import ReleasedSelector

        key = (space, self.context.seed)
        if key not in self._known.selectors:
            self._known.selectors[key] = ReleasedSelector.of(space, self.context.seed)
        return self._known.selectors[key]

    def _sketches(
        self, space: Space[Any], archs: Sequence[Any], options: SketchOptions
    ) -> Sketches:
        context = self.context
        builder = Builder(
            options,
            Store(context.folder),
            context.workers,
            context.device,
            context.chunk,
            label=None if context.label is None else "sketches",
            is_lazy=True,
        )
        return sketches(Architectures(space, archs), builder)

    @property
    def _store(self) -> Store:
        return Store(self.context.folder / "proxies")

    def _missing(
        self, space: Space[Any], addresses: Sequence[str], measures: Sequence[Measure]
    ) -> list[str]:
        """The addresses for which a measure is neither in memory nor on disk."""
        keys = [_key(measure) for measure in measures]
        missing = []
        for name in dict.fromkeys(addresses):
            if all((name, key) in self._known.records for key in keys):
                continue
            records = _read(self._store, space.name, name)
            self._known.records.update({(name, key): record for key, record in records.items()})
            if not all(key in records for key in keys):
                missing.append(name)
        return missing

    def _note(
        self, name: str, measures: Sequence[Measure], result: dict[str, Record] | str | Lost
    ) -> None:
        if isinstance(result, Lost):
            result = result.reason
        if isinstance(result, str):
            result = {_key(m): Record(math.nan, failure=result) for m in measures}
        self._known.records.update({(name, key): record for key, record in result.items()})
        for reason in dict.fromkeys(record.failure for record in result.values()):
            if reason is not None:
                logger.warning("architecture %s has no scores: %s", name[:12], reason)


@dataclass(frozen=True, slots=True)
class _MeasureTask:
    """Runs in a worker: computes and caches every missing measure of one architecture."""

    space: Space[Any]
    measures: tuple[Measure, ...]
    options: SketchOptions
    device: str
    chunk: int | None
    is_quick: bool
    store: Store

    def __call__(self, task: tuple[str, Any]) -> dict[str, Record] | str:
        from lpzero.statistics.isolation import single_thread

        name, arch = task
        records = _read(self.store, self.space.name, name)
        todo = [measure for measure in self.measures if _key(measure) not in records]
        failed: dict[str, Record] = {}
        try:
            with single_thread():
                network = self._network(arch)
                for measure in todo:
                    try:
                        records[_key(measure)] = evaluate(measure, network)
                    except REFUSALS:
                        raise
                    except Exception as error:  # nor one measure's that of the others
                        failed[_key(measure)] = Record(math.nan, failure=_reason(error))
        except REFUSALS:
            raise
        except Exception as error:  # one architecture's failure must not end the run
            return _reason(error)
        _write(self.store, self.space.name, name, records)
        return records | failed

    def _network(self, arch: Any) -> Network:
        from lpzero.proxies.network import Network
        from lpzero.statistics.inputs import read_inputs
        from lpzero.statistics.isolation import resolve_device
        from lpzero.statistics.layout_finder import layout_for
        from lpzero.statistics.objective import named_loss
        from spaces.initialisation import ByName

        seed = ByName(self.options.seed) if self.is_quick else self.options.seed
        model = self.space.build(arch, seed).to(resolve_device(self.device))
        tokens, wide = _batches(self.space, self.options)
        sizes = {"blocks": self.space.block_sizes(arch), "ends": self.space.end_sizes(arch)}
        layout = layout_for(self.space, model, tokens)
        loss: str | Loss = self.options.loss
        if layout is not None:
            loss = named_loss(model, loss, read_inputs(tokens, model))
        return Network(
            model,
            tokens,
            loss,
            layout=layout,
            seed=self.options.batch_seed,
            chunk=self.chunk,
            sizes=sizes,
            wide_tokens=wide,
            is_quick=self.is_quick,
        )


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


@lru_cache(maxsize=2)
def _batches(space: Space[Any], options: SketchOptions) -> tuple[Tensor, Tensor]:
    """The batch of every network of the space, and the wide one."""
    tokens = options.tokens(space)
    # A batch that was chosen is that of every proxy.
    return tokens, space.wide_batch(options.batch_seed) if options.batch is None else tokens


def evaluate(measure: Measure, network: Network) -> Record:
    """The record of one measure of one network, which may be any model."""
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
    """The file's content; empty if it is missing, or with a note if it is not as written."""
    path = store.path(space, name, _ENDING)
    try:
        found = read_sealed(path, name)
        return {key: _from_json(row) for key, row in found["records"].items()}
    except (FileNotFoundError, UnsealedError):
        return {}
    except (EnvelopeError, LookupError, TypeError, ValueError, AttributeError) as error:
        logger.warning("%s: %s; measuring the architecture again", path, error)
        return {}


def _from_json(row: Sequence[Any]) -> Record:
    score, count, blocks, seconds = row
    return Record(
        math.nan if score is None else float(score),
        int(count),
        None if blocks is None else tuple(map(float, blocks)),
        float(seconds),
    )


def _write(store: Store, space: str, name: str, records: dict[str, Record]) -> None:
    rows = {
        key: [None if math.isnan(r.score) else r.score, r.count, r.blocks, r.seconds]
        for key, r in sorted(records.items())
    }
    write_sealed(store.path(space, name, _ENDING), name, {"records": rows}, indent=None)


def released_batch(space: Space[Any]) -> Minibatch | None:
    """16 sequences as long as the models read (GPT-2), 128 (encoders), else the space's own."""
    if isinstance(space, Gpt2Space):
        return Minibatch(_SEQUENCES, space.context)
    return Minibatch(_ENCODED) if isinstance(space, FlexiBertSpace) else None


def own_batch(measure: Measure, space: Space[Any]) -> Minibatch | None:
    """The batch that the measure runs on unless another is chosen; None for the space's own."""
    if measure.has_own_batch:
        return released_batch(space)
    is_too_few = space.batch_shape[0] < measure.n_inputs
    return Minibatch(measure.n_inputs) if is_too_few else None
