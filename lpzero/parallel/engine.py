"""Which code a process runs: the version, and a digest of the source files."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path

from lpzero.version import VERSION

_PACKAGES = ("lpzero", "primitives", "spaces")


@lru_cache(maxsize=1)
def engine() -> str:
    """The version and the source's digest, as in "0.2.0 (source 3f9a1c0b)".

    Two checkouts of one version differ in their source; their results and what they send may, too.
    """
    root, found = Path(__file__).parents[2], hashlib.sha256()
    for package in _PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            found.update(str(path.relative_to(root)).encode())
            found.update(path.read_bytes())
    return f"{VERSION} (source {found.hexdigest()[:8]})"
