"""Builds the missing sketches of many architectures in parallel and stores them.

In: a space, its architectures, options. Out: a `BuildReport`, and `Sketches`, which loads each file
when it is accessed. A stored sketch is verified, not rebuilt; `Builder.is_lazy` leaves that to the
first access.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, overload

import numpy as np

from lpzero.parallel import Lost, Workers, stream
from lpzero.sketches.sketch import (
    CAPABILITY,
    Sketch,
    SketchError,
    SketchOptions,
    address,
    encode,
    identity,
    statistics_in_order,
)
from lpzero.sketches.store import Buffer, Failure, Store, StoreError, cache_folder
from lpzero.statistics import StatisticsError
from spaces.errors import BatchError

if TYPE_CHECKING:
    from spaces.base import Space

logger = logging.getLogger(__name__)
_READERS = 2  # threads that verify stored sketches


class HasArchitectures(Protocol):
    """The part of a table that building sketches needs."""

    @property
    def space(self) -> Space[Any]: ...
    @property
    def archs(self) -> Sequence[Any]: ...


@dataclass(slots=True)
class BuildReport:
    """What `build` did; `failed` maps the index of an architecture to the reason.

    `capabilities` counts the sketches by the vector instructions they were computed with, as far as
    they say so.
    """

    n: int
    built: int = 0
    present: int = 0
    corrupt: int = 0
    failed: dict[int, str] = field(default_factory=dict)
    capabilities: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Builder:
    """How sketches are built: options, store, workers, device, sequences per pass.

    With `is_lazy` a stored sketch's numbers are verified when they are read, not at once: whoever
    has the branch tables often reads no sketch at all.
    """

    options: SketchOptions = field(default_factory=SketchOptions)
    store: Store = field(default_factory=lambda: Store(cache_folder()))
    workers: Workers | None = None
    device: str = "cpu"
    chunk: int | None = None
    retry_failed: bool = False
    label: str | None = None
    is_lazy: bool = False


class Sketches(Sequence[Sketch]):
    """The sketches of a list of architectures, in its order; each is read when accessed.

    `usable` are the indices that have a sketch, `failed` maps the others to the reason. One that is
    broken when it is read is rebuilt as `source` says: its architectures and how they are built.
    Only file names are sent to a worker, so a broken sketch is an error there.
    """

    def __init__(
        self,
        store: Store,
        space: str,
        addresses: Sequence[str],
        report: BuildReport,
        source: tuple[HasArchitectures, Builder] | None = None,
    ) -> None:
        self.store, self.space, self.addresses = store, space, tuple(addresses)
        self.report, self._source = report, source
        self.failed = dict(report.failed)
        self.usable = [i for i in range(len(self.addresses)) if i not in self.failed]

    def __len__(self) -> int:
        return len(self.addresses)

    @overload
    def __getitem__(self, index: int) -> Sketch: ...
    @overload
    def __getitem__(self, index: slice) -> list[Sketch]: ...
    def __getitem__(self, index: int | slice) -> Sketch | list[Sketch]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        where = range(len(self))[index]
        if where in self.failed:
            raise SketchError(f"architecture {where} has no sketch: {self.failed[where]}")
        try:
            return self.store.load(self.space, self.addresses[where])
        except SketchError:
            if not self.repair([where]):
                raise
            return self.store.load(self.space, self.addresses[where])

    def alike(self, indices: Iterable[int]) -> list[int]:
        """The indices, similar architectures next to each other where they are known."""
        if self._source is None:
            return list(indices)
        archs = self._source[0].archs
        return sorted(indices, key=lambda index: str(archs[index]))

    def in_turn(self, indices: Sequence[int]) -> Iterator[Sketch]:
        """Each of these sketches, which lasts until the next one is taken: they share memory."""
        buffer = Buffer()
        for index in indices:
            if index in self.failed:
                raise SketchError(f"architecture {index} has no sketch: {self.failed[index]}")
            try:
                sketch = self.store.load(self.space, self.addresses[index], buffer)
            except SketchError:
                sketch = self[index]  # rebuilds it
            yield sketch

    def repair(self, indices: Sequence[int]) -> int:
        """Rebuild the broken ones among these sketches; return how many were rebuilt."""
        if self._source is None:
            return 0
        table, builder = self._source
        archs = [table.archs[i] for i in indices if i not in self.failed]
        report, _ = build(table.space, archs, replace(builder, is_lazy=False))
        for reason in report.failed.values():
            raise SketchError(f"a broken sketch could not be rebuilt: {reason}")
        return report.built

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_source": None}

    def __iter__(self) -> Iterator[Sketch]:
        return (self[i] for i in range(len(self)))


def sketches(table: HasArchitectures, builder: Builder | None = None) -> Sketches:
    """The sketches of a table's architectures; missing ones are built first."""
    builder = builder or Builder()
    report, addresses = build(table.space, table.archs, builder)
    return Sketches(builder.store, table.space.name, addresses, report, (table, builder))


def build(
    space: Space[Any], archs: Sequence[Any], builder: Builder
) -> tuple[BuildReport, list[str]]:
    """Build every missing sketch; return the report and the address of each architecture."""
    start = time.perf_counter()
    report = BuildReport(len(archs))
    addresses = [address(space, arch, builder.options) for arch in archs]
    by_address = dict(zip(addresses, archs, strict=True))
    builder.store.sweep()
    missing, reasons = _find_missing(space, by_address, builder, report)
    if missing:
        # The most expensive first, so that no worker has a long task at the end.
        order = sorted(missing, key=lambda name: (-space.flops(by_address[name]), name))
        reasons |= _build_missing(space, [(name, by_address[name]) for name in order], builder)
        for name in sorted(missing - reasons.keys()):
            _count(report, builder.store.load(space.name, name).header)
        builder.store.sweep()
    _warn_if_mixed(space, report)
    report.failed = {i: reasons[name] for i, name in enumerate(addresses) if name in reasons}
    report.built = sum(name in missing and name not in reasons for name in addresses)
    report.present = report.n - report.built - len(report.failed)
    report.bytes = sum(builder.store.size(space.name, name) for name in by_address)
    report.seconds = time.perf_counter() - start
    return report, addresses


def _count(report: BuildReport, header: Mapping[str, Any]) -> None:
    if CAPABILITY in header:  # files of earlier versions do not say it
        report.capabilities[header[CAPABILITY]] += 1


def _warn_if_mixed(space: Space[Any], report: BuildReport) -> None:
    if len(report.capabilities) > 1:
        counts = sorted(report.capabilities.items())
        told = ", ".join(f"{n} with {capability}" for capability, n in counts)
        logger.warning(
            "sketches of %s were computed with different vector instructions (%s), so their last"
            " digits differ: see docs/statistics.md",
            space.name,
            told,
        )


def _find_missing(
    space: Space[Any], by_address: dict[str, Any], builder: Builder, report: BuildReport
) -> tuple[set[str], dict[str, str]]:
    """The addresses without a valid sketch, and the reasons of those that failed before."""
    missing: set[str] = set()
    reasons: dict[str, str] = {}
    present = [name for name in by_address if builder.store.has(space.name, name)]

    def verify(name: str) -> Mapping[str, Any] | SketchError:
        try:
            if builder.is_lazy:
                return builder.store.header(space.name, name)
            return builder.store.load(space.name, name).header
        except SketchError as error:
            return error

    # Reading and hashing numbers, which takes the time, does not hold the interpreter.
    with ThreadPoolExecutor(1 if builder.is_lazy else _READERS) as readers:
        for name, state in zip(present, readers.map(verify, present), strict=True):
            if isinstance(state, SketchError):
                logger.warning("%s; rebuilding it", state)
                report.corrupt += 1
                missing.add(name)
            else:
                _count(report, state)
    there = set(present)
    for name in (name for name in by_address if name not in there):
        failure = builder.store.failure(space.name, name)
        if failure is None or builder.retry_failed:
            missing.add(name)
        else:
            reasons[name] = failure.reason
    return missing, reasons


def _build_missing(
    space: Space[Any], tasks: list[tuple[str, Any]], builder: Builder
) -> dict[str, str]:
    """Build these sketches; return the reasons of those that failed, by address."""
    reasons: dict[str, str] = {}
    builder.options.check_batch(space, tasks[0][1], builder.chunk)
    task = _SketchTask(space, builder.options, builder.store, builder.device, builder.chunk)
    with closing(stream(task, tasks, builder.workers, builder.label)) as outcomes:
        for index, outcome in outcomes:
            name = tasks[index][0]
            if isinstance(outcome, Lost):
                outcome = task.fail(*tasks[index], outcome.reason)
            if outcome is not None:
                reasons[name] = outcome
            elif not builder.store.has(space.name, name):
                raise StoreError(
                    f"a worker wrote its sketch but {builder.store.folder} has no {name[:12]}:"
                    " workers on other machines need the same shared folder"
                )
    return reasons


def build_sketch(
    space: Space[Any],
    arch: Any,
    options: SketchOptions,
    device: str = "cpu",
    chunk: int | None = None,
) -> Sketch:
    """The sketch of one architecture; its network is built and run once."""
    # Imported here so that code that only reads sketches does not load torch.
    from lpzero.statistics.extraction import of_architecture
    from lpzero.statistics.isolation import capability

    statistics = of_architecture(
        space,
        arch,
        seed=options.seed,
        batch_seed=options.batch_seed,
        loss=options.loss,
        device=device,
        chunk=chunk,
        limit=options.limit,
        batch=options.tokens(space),
        definitions=options.definitions,
    )
    shapes: dict[int | str, dict[str, list[list[int]]]] = {}
    numbers = []
    for position, name, pieces in statistics_in_order(statistics.blocks, statistics.ends):
        where = f"block {position}" if isinstance(position, int) else f"the {position}"
        # An end may have no weights; every block has every statistic that its space has.
        is_expected = isinstance(position, int) and name not in space.absent_statistics
        if not pieces and is_expected:
            raise SketchError(f"statistic {name} of {where} is empty: the block has no tap")
        of_position = shapes.setdefault(position, {})
        of_position[name] = [[*piece.values.shape, piece.true_columns] for piece in pieces]
        for piece in pieces:
            values = piece.values.float().cpu().numpy()
            if not np.isfinite(values).all():
                raise SketchError(f"statistic {name} of {where} is not finite")
            numbers.append(values.ravel())
    header = {
        **identity(space, arch, options),
        "blocks": [shapes[index] for index in range(len(statistics.blocks))],
        "ends": {end: shapes[end] for end in statistics.ends},
        "sizes": {"blocks": space.block_sizes(arch), "ends": space.end_sizes(arch)},
        # Not part of the address: it changes the last digits only (docs/statistics.md).
        CAPABILITY: capability(device),
    }
    return Sketch(header, np.concatenate(numbers))


@dataclass(frozen=True, slots=True)
class _SketchTask:
    """Runs in a worker: builds one sketch and writes it; returns the reason if that fails."""

    space: Space[Any]
    options: SketchOptions
    store: Store
    device: str
    chunk: int | None

    def __call__(self, task: tuple[str, Any]) -> str | None:
        name, arch = task
        try:
            sketch = build_sketch(self.space, arch, self.options, self.device, self.chunk)
        except (StatisticsError, BatchError):  # what no architecture could use
            raise
        except Exception as error:  # one architecture's failure does not end the build
            return self.fail(name, arch, f"{type(error).__name__}: {_first_line(error)}")
        self.store.write(self.space.name, name, encode(sketch))
        return None

    def fail(self, name: str, arch: Any, reason: str) -> str:
        """Record the reason and return it."""
        failure = Failure(reason, identity(self.space, arch, self.options))
        self.store.record_failure(self.space.name, name, failure)
        return reason


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else "no message"
