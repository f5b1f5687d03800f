"""The file format of an architecture's branch table, stored next to its sketch.

A file is a sealed envelope (`lpzero.files`), the numbers little-endian float64. Its name is the
sketch's address and the digest of the chain set, so different chains, rules or definitions of a
chain use different files; the header states both, and a file under another name is not used.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Sequence
from math import prod

import numpy as np

from lpzero import files
from lpzero.arrays import FloatArray
from lpzero.errors import EnvelopeError, LPZeroError
from lpzero.scores.chains import ChainSet
from lpzero.scores.tabulation import Tabulated
from lpzero.sketches.store import Store
from spaces.regular_files import NotRegularError, read_regular

MAGIC = b"LPZBRT02"
_WITHOUT_ADDRESS = b"LPZBRT01"  # the format before 02: rebuilt without a note
logger = logging.getLogger(__name__)


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
    counts = {name: tuple(found) for name, found in header["counts"].items()}
    numbers = np.frombuffer(data, dtype="<f8", offset=start)
    means, products = {}, {}
    ends = [(end, name) for end, name in header["ends"]]
    parts = _parts(numbers, _shapes(chains, counts, ends))
    for name in chains.chains:
        means[name] = next(parts)
    for pair in chains.pairs:
        products[pair] = next(parts)
    of_ends = {position: next(parts) for position in ends}
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


def _parts(numbers: FloatArray, shapes: Iterator[tuple[int, ...]]) -> Iterator[FloatArray]:
    start = 0
    for shape in shapes:
        size = prod(shape)
        yield numbers[start : start + size].reshape(shape)
        start += size


def load(store: Store, space: str, address: str, chains: ChainSet) -> Tabulated | None:
    """The stored table; None if it is missing or broken."""
    path = store.path(space, address, ending(chains))
    try:
        data = read_regular(path)
        if data.startswith(_WITHOUT_ADDRESS):
            return None
        return decode(data, chains, address)
    except FileNotFoundError:
        return None
    except (BranchFileError, NotRegularError) as error:
        logger.warning("%s: %s; rebuilding it", path, error)
        return None
