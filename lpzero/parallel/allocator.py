"""The C library's allocator in a worker: memory that was freed is used again.

By itself it gives arrays of a megabyte back to the system when they are freed, and the next one
costs page faults, millions of them for all products of two terms. Dask starts its workers with
MALLOC_TRIM_THRESHOLD_=65536, with which they take three times as long (experiments/cluster).
"""

from __future__ import annotations

import ctypes
from functools import lru_cache

# Of <malloc.h>: how much free memory a process keeps, and from which size on an array is a mapping
# of its own. The values are the largest that glibc's own, dynamic thresholds reach.
_SETTINGS = {-1: 64 << 20, -3: 32 << 20}


@lru_cache(maxsize=1)
def keep_freed_memory() -> None:
    """Set the thresholds, once per process, where the C library has them."""
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):  # macOS, musl
        return
    for name, value in _SETTINGS.items():
        mallopt(name, value)
