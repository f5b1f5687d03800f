"""Seals: digests stored inside a file that bind its content to the place where it belongs.

A seal is the SHA-256 of a place (an address in the cache, or a run and a file's name) and of
the content. A changed digit, a file of another run or a file swapped with its neighbour does not
match it. Seals detect damage and mix-ups; they hold no secret, so they are no defence against
someone who computes them again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lpzero.errors import EnvelopeError, UnsealedError
from lpzero.files import canonical_json, write_json
from spaces.regular_files import read_regular

SEAL = "seal"


def sealed(place: str, content: Mapping[str, Any]) -> dict[str, Any]:
    """The object with its seal as the last field."""
    as_read = json.loads(json.dumps(content))  # keys are texts, tuples are lists
    return {**content, SEAL: _digest(place, canonical_json(as_read))}


def unsealed(place: str, found: Any) -> dict[str, Any]:
    """The object without its seal; raise EnvelopeError unless the seal matches."""
    if not isinstance(found, dict):
        raise EnvelopeError("it is not a JSON object")
    if SEAL not in found:
        raise UnsealedError("it has no seal")
    content = {name: value for name, value in found.items() if name != SEAL}
    if found[SEAL] != _digest(place, canonical_json(content)):
        raise EnvelopeError("its seal does not match: it was changed, or belongs elsewhere")
    return content


def write_sealed(
    path: Path, place: str, content: Mapping[str, Any], indent: int | None = 1
) -> None:
    """Write the object as sealed JSON; raise ValueError if a number is not finite."""
    write_json(path, sealed(place, content), indent)


def read_sealed(path: Path, place: str) -> dict[str, Any]:
    """The verified object; raise FileNotFoundError, or EnvelopeError if it is not as written."""
    try:
        found = json.loads(read_regular(path))
    except FileNotFoundError:
        raise
    except (OSError, ValueError, RecursionError):
        raise EnvelopeError("it cannot be read as JSON") from None
    return unsealed(place, found)


def array_seal(place: str, arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.uint8]:
    """The seal of named arrays (32,): of their names, types, shapes and bytes."""
    digest = hashlib.sha256(f"{place}\n".encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return np.frombuffer(digest.digest(), dtype=np.uint8)


def _digest(place: str, content: bytes) -> str:
    return hashlib.sha256(f"{place}\n".encode() + content).hexdigest()
