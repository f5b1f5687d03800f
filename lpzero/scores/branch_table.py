"""The branch table of many architectures: the means from which formulas are scored, and its files.

The table of an architecture is stored next to its sketch: a sealed envelope (`lpzero.files`) with
numbers in little-endian float64. A file's name is the sketch's address and the digest of the chain
set, so different chains, rules or definitions of a chain use different files; the header states
both, and a file under another name is not used.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from lpzero import files
from lpzero.arrays import BoolArray, FloatArray, IntArray
from lpzero.errors import EnvelopeError, LPZeroError
from lpzero.files import write_bytes
from lpzero.parallel import Lost, Workers, stream
from lpzero.scores.chains import Chain, ChainSet, Pair, surviving
from lpzero.scores.tabulation import PRODUCTS, Tabulated, tabulate
from lpzero.sketches.builder import Sketches
from lpzero.sketches.sketch import Sketch, SketchError
from lpzero.sketches.store import Store
from spaces.untrusted import UntrustedError, read_regular

R = TypeVar("R")
_TOGETHER = 8  # sketches of similar architectures, which share weights
_LAST_BATCHES = 16  # in which what is left would be done: batches become smaller
MAGIC = b"LPZBRT02"
_WITHOUT_ADDRESS = b"LPZBRT01"  # the format before 02: rebuilt without a note
logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class BranchTable:
    """The means of A architectures with at most B blocks and T tensors, padded with zeros.

    n_blocks: (A,). counts: tensors per block (A, B) of each statistic. means: (chains, A, B, T),
    NaN where a chain overflowed. products: (mul and matmul, left chains, right chains, A) of
    each aligned pair, summed over blocks. ends: (chains, A) of each (end, statistic) that every
    architecture has. sizes: (A, B) of each size, end_sizes: (A,) of each (end, size); none where an
    architecture does not state its sizes. `rows` (A,) of `sketches` are the architectures, from
    whose tensors formulas are scored that the table cannot answer.
    """

    chains: ChainSet
    n_blocks: IntArray
    counts: dict[str, IntArray]
    means: dict[str, FloatArray]
    products: dict[Pair, FloatArray]
    ends: dict[tuple[str, str], FloatArray] = field(default_factory=dict)
    sizes: dict[str, FloatArray] = field(default_factory=dict)
    end_sizes: dict[tuple[str, str], FloatArray] = field(default_factory=dict)
    sketches: Sequence[Sketch] = ()
    rows: Sequence[int] = ()

    @property
    def n_archs(self) -> int:
        return len(self.n_blocks)

    @cached_property
    def has_block(self) -> BoolArray:
        """Which of (A, B) there are."""
        return np.asarray(np.arange(self.n_blocks.max()) < self.n_blocks[:, np.newaxis])

    @cached_property
    def absent(self) -> frozenset[str]:
        """The statistics that the networks do not have."""
        return frozenset(name for name, counts in self.counts.items() if not counts.any())

    @property
    def nbytes(self) -> int:
        """The memory of the means and products in bytes."""
        return sum(array.nbytes for part in (self.means, self.products) for array in part.values())

    @cached_property
    def block_means(self) -> dict[str, FloatArray]:
        """The mean over each block's tensors (chains, A, B)."""
        return {
            name: over_tensors(means, self.counts[name])
            for name, means in self.means.items()
            if name not in self.absent
        }

    @cached_property
    def totals(self) -> dict[str, FloatArray]:
        """The block means summed over blocks (chains, A)."""
        return {name: over_blocks(means) for name, means in self.block_means.items()}

    def product(
        self, operation: str, left: tuple[str, Chain], right: tuple[str, Chain]
    ) -> FloatArray | None:
        """The summed product (A,) of two aligned matrix branches; None if not in the table."""
        products = self.products.get((left[0], right[0]))
        rows = self.chains.rows.get(left), self.chains.rows.get(right)
        if products is None or operation not in PRODUCTS or rows[0] is None or rows[1] is None:
            return None
        if rows[0] >= products.shape[1] or rows[1] >= products.shape[2]:
            return None
        return np.asarray(products[PRODUCTS.index(operation), rows[0], rows[1]])


def rows_of(table: BranchTable, rows: IntArray) -> BranchTable:
    """The table of some of its architectures, padded to the largest of these."""
    n_blocks = table.n_blocks[rows]
    most = int(n_blocks.max())
    counts = {name: of[rows, :most] for name, of in table.counts.items()}
    return BranchTable(
        table.chains,
        n_blocks,
        counts,
        {
            name: means[:, rows, :most, : int(counts[name].max())]
            for name, means in table.means.items()
        },
        {pair: products[..., rows] for pair, products in table.products.items()},
        {at: means[:, rows] for at, means in table.ends.items()},
        {name: sizes[rows, :most] for name, sizes in table.sizes.items()},
        {at: sizes[rows] for at, sizes in table.end_sizes.items()},
        table.sketches,
        [table.rows[row] for row in rows] if table.rows else (),
    )


def over_tensors(means: FloatArray, counts: IntArray) -> FloatArray:
    """The unweighted mean over tensors: (..., A, B, T) -> (..., A, B).

    Added in the order of the tensors, as in the naive reference, so results are bit-identical.
    """
    total = means[..., 0].copy()
    for tensor in range(1, means.shape[-1]):
        total += means[..., tensor]
    return np.asarray(total / np.maximum(counts, 1))


def over_blocks(block_means: FloatArray) -> FloatArray:
    """The sum over blocks in their order: (..., A, B) -> (..., A)."""
    total: FloatArray = block_means[..., 0].copy()
    for block in range(1, block_means.shape[-1]):
        total += block_means[..., block]
    return total


def branch_table(
    sketches: Sequence[Sketch],
    chains: ChainSet | None = None,
    rows: Sequence[int] | None = None,
    workers: Workers | None = None,
    label: str | None = None,
) -> BranchTable:
    """The table of the sketches in `rows` (all of them if None), by default of chains of two.

    Tables of stored sketches are built once and stored next to them, and broken sketches are
    rebuilt; others are built in this process and not stored.
    """
    picked = range(len(sketches)) if rows is None else rows
    wanted = chains or surviving(2)
    parts = repaired(sketches, picked, lambda: _parts(sketches, wanted, picked, workers, label))
    return replace(assemble(parts, wanted), sketches=sketches, rows=picked)


def repaired(sketches: Sequence[Sketch], rows: Sequence[int], compute: Callable[[], R]) -> R:
    """What is computed of these sketches, once more if broken ones had to be rebuilt for it."""
    try:
        return compute()
    except SketchError:
        if not (isinstance(sketches, Sketches) and sketches.repair(rows)):
            raise
        return compute()


def _parts(
    sketches: Sequence[Sketch],
    chains: ChainSet,
    picked: Sequence[int],
    workers: Workers | None,
    label: str | None,
) -> list[Tabulated]:
    """The table of each sketch."""
    if not isinstance(sketches, Sketches):
        return [tabulate([sketches[row]], chains)[0] for row in picked]
    for row in picked:
        if row in sketches.failed:
            raise SketchError(f"architecture {row} has no sketch: {sketches.failed[row]}")
    task = _BranchTask(sketches.store, sketches.space, chains)
    alike = dict.fromkeys(sketches.addresses[row] for row in sketches.alike(picked))
    missing = [address for address in alike if not task.has(address)]
    batches = _batches(missing)
    with closing(stream(task, batches, workers, label)) as outcomes:
        for index, outcome in outcomes:
            if isinstance(outcome, Lost):
                names = ", ".join(address[:12] for address in batches[index])
                raise SketchError(f"no branch table of {names}: {outcome.reason}")
    return [task.load(sketches.addresses[row]) for row in picked]


def _batches(addresses: Sequence[str]) -> list[Sequence[str]]:
    """The sketches that are tabulated together: fewer at the end, so that workers end together."""
    batches, start = [], 0
    while start < len(addresses):
        size = min(_TOGETHER, max(1, (len(addresses) - start) // _LAST_BATCHES))
        batches.append(addresses[start : start + size])
        start += size
    return batches


@dataclass(frozen=True, slots=True)
class _BranchTask:
    """Runs in a worker: builds the tables of a few sketches and writes them."""

    store: Store
    space: str
    chains: ChainSet

    def has(self, address: str) -> bool:
        return self._path(address).is_file()

    def load(self, address: str) -> Tabulated:
        """The stored table; a broken one is rebuilt."""
        path = self._path(address)
        try:
            data = read_regular(path, follow_links=False)
            if not data.startswith(_WITHOUT_ADDRESS):
                return decode(data, self.chains, address)
        except FileNotFoundError:
            pass
        except UntrustedError as error:
            logger.warning("%s; rebuilding it", error)
        except BranchFileError as error:
            logger.warning("%s: %s; rebuilding it", path, error)
        return self.build([address])[0]

    def __call__(self, addresses: Sequence[str]) -> None:
        self.build(addresses)

    def build(self, addresses: Sequence[str]) -> list[Tabulated]:
        sketches = [self.store.load(self.space, address) for address in addresses]
        tables = tabulate(sketches, self.chains)
        for address, table in zip(addresses, tables, strict=True):
            data = encode(table, self.chains, address)
            write_bytes(self._path(address), data, is_flushed=False)
        return tables

    def _path(self, address: str) -> Path:
        return self.store.path(self.space, address, ending(self.chains))


def assemble(parts: Sequence[Tabulated], chains: ChainSet) -> BranchTable:
    """One branch table from the tables of the architectures."""
    n_blocks = np.array([len(part.counts[next(iter(part.counts))]) for part in parts])
    counts, means = {}, {}
    for name, rows in chains.chains.items():
        widest = max(max(part.counts[name]) for part in parts)
        counts[name] = np.zeros((len(parts), n_blocks.max()), dtype=np.int64)
        means[name] = np.zeros((len(rows), len(parts), n_blocks.max(), widest))
        for arch, part in enumerate(parts):
            of_arch = part.means[name]
            counts[name][arch, : n_blocks[arch]] = part.counts[name]
            means[name][:, arch, : of_arch.shape[1], : of_arch.shape[2]] = of_arch
    products = {
        pair: np.stack([part.products[pair] for part in parts], axis=-1) for pair in chains.pairs
    }
    shared = set.intersection(*(set(part.ends) for part in parts))
    ends = {at: np.stack([part.ends[at] for part in parts], axis=1) for at in sorted(shared)}
    sizes, end_sizes = state_sizes([part.sizes for part in parts])
    return BranchTable(chains, n_blocks, counts, means, products, ends, sizes, end_sizes)


def state_sizes(
    stated: Sequence[Mapping[str, Any] | None],
) -> tuple[dict[str, FloatArray], dict[tuple[str, str], FloatArray]]:
    """Sizes of blocks (A, B) and of ends (A,), where every architecture states them.

    A size is at least 1: an end that has none of it, as the head of an encoder has no parameters,
    does not have that size.
    """
    of_archs = [sizes for sizes in stated if sizes is not None]
    if len(of_archs) < len(stated):
        return {}, {}
    most_blocks = max(len(of_arch["blocks"]) for of_arch in of_archs)
    sizes = {name: np.zeros((len(of_archs), most_blocks)) for name in of_archs[0]["blocks"][0]}
    for arch, of_arch in enumerate(of_archs):
        for block, of_block in enumerate(of_arch["blocks"]):
            for name, value in of_block.items():
                sizes[name][arch, block] = value
    end_sizes = {
        (end, name): np.array([float(of_arch["ends"][end][name]) for of_arch in of_archs])
        for end, of_end in of_archs[0]["ends"].items()
        for name in of_end
    }
    return sizes, {at: values for at, values in end_sizes.items() if (values >= 1).all()}


class BranchFileError(LPZeroError, RuntimeError):
    """Bytes that are not a complete branch table of the requested chains."""


def ending(chains: ChainSet) -> str:
    """The file's suffix after the sketch's address."""
    return f".{chains.digest[:16]}.branches"


def encode(table: Tabulated, chains: ChainSet, address: str) -> bytes:
    """The file's bytes; `address` is that of the sketch."""
    about = {
        "sketch": address,
        "chains": chains.digest,
        "counts": table.counts,
        "ends": sorted(table.ends),
        "sizes": table.sizes,
    }
    header = json.dumps(about, sort_keys=True).encode()
    arrays = [*(table.means[name] for name in chains.chains)]
    arrays += [table.products[pair] for pair in chains.pairs]
    arrays += [table.ends[position] for position in sorted(table.ends)]
    numbers = b"".join(array.astype("<f8").tobytes() for array in arrays)
    return files.seal(MAGIC, header, numbers)


def decode(data: bytes, chains: ChainSet, address: str) -> Tabulated:
    """The table of that sketch in a file's bytes, verified."""
    try:
        header, start = files.unseal(data, MAGIC)
    except EnvelopeError as error:
        raise BranchFileError(str(error)) from None
    if header["chains"] != chains.digest:
        raise BranchFileError("the branch table has other chains")
    if header["sketch"] != address:
        raise BranchFileError("it is the branch table of another sketch")
    counts = {name: tuple(of) for name, of in header["counts"].items()}
    numbers = np.frombuffer(data, dtype="<f8", offset=start)
    means, products = {}, {}
    ends = [(end, name) for end, name in header["ends"]]
    arrays = _slices(numbers, _shapes(chains, counts, ends))
    for name in chains.chains:
        means[name] = next(arrays)
    for pair in chains.pairs:
        products[pair] = next(arrays)
    of_ends = {position: next(arrays) for position in ends}
    return Tabulated(counts, means, products, of_ends, header["sizes"])


def _shapes(
    chains: ChainSet, counts: dict[str, tuple[int, ...]], ends: Sequence[tuple[str, str]]
) -> Iterator[tuple[int, ...]]:
    for name, rows in chains.chains.items():
        yield len(rows), len(counts[name]), max(counts[name])
    for left, right in chains.pairs:
        yield 2, chains.n_matrices[left], chains.n_matrices[right]
    for _, name in ends:
        yield (len(chains.chains[name]),)


def _slices(numbers: FloatArray, shapes: Iterator[tuple[int, ...]]) -> Iterator[FloatArray]:
    start = 0
    for shape in shapes:
        size = prod(shape)
        yield numbers[start : start + size].reshape(shape)
        start += size
