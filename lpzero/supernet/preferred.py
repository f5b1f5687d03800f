"""The file of preferred architectures: what `lpzero search SPACE --loop prenas` found, or a list.

[{"hidden": 64, ...}, ...]                                a list of architectures
{"preferred": [{"arch": {...}, ...}, ...]}                as this package writes it
{"trace": [{"arch": {...}, ...}, ...], ...}               the JSON output of a search
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from lpzero.errors import InputError
from lpzero.supernet.saliency import Saliency
from lpzero.supernet.selection import candidates, select
from spaces.base import Space
from spaces.errors import ArchitectureError
from spaces.regular_files import NotRegularError, read_regular

_LARGEST = 64 << 20  # bytes
N_BINS = 12


def read_preferred(path: Path, space: Space[Any]) -> list[Any]:
    """The distinct architectures in the file, in its order."""
    try:
        found = json.loads(read_regular(path, _LARGEST))
    except (OSError, NotRegularError) as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    except (ValueError, RecursionError):
        raise InputError(f"{path} is not JSON: give the output of lpzero search") from None
    entries = found
    if isinstance(found, Mapping):
        entries = found.get("preferred", found.get("trace"))
    if not isinstance(entries, list) or not entries:
        raise InputError(f"{path} has no list of architectures, no `preferred` and no `trace`")
    archs: dict[Any, None] = {}
    for index, entry in enumerate(entries):
        fields = entry.get("arch", entry) if isinstance(entry, Mapping) else entry
        try:
            archs[space.from_json(fields)] = None
        except ArchitectureError as error:
            raise InputError(f"{path}, entry {index}: {error}") from None
    return list(archs)


def usual_preferred(space: Space[Any], seed: int = 0) -> list[Any]:
    """The best architecture of each of twelve equal bins of parameters, by PreNAS's selector."""
    saliency = Saliency.of(space, seed=seed)
    sizes = [space.parameters(arch) for arch in candidates(saliency)]
    edges = np.linspace(min(sizes), max(sizes) + 1, N_BINS + 1).tolist()
    return [found.arch for found in select(saliency, edges)]
