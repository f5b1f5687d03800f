"""How much memory networks and their batches may take, counted before it is taken.

One limit for the process: LPZERO_MEMORY, which the option --memory sets, or half of the memory that
is free. What does not fit raises MemoryLimitError before anything is allocated: batches here, and
networks in `spaces.outlines`. The limit never changes a result: what fits is computed as without.
"""

from __future__ import annotations

import errno
import os
import re
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from spaces.errors import MemoryLimitError

VARIABLE = "LPZERO_MEMORY"
NOT_ENOUGH = "not enough memory: give a smaller --chunk, batch or model, or fewer jobs"
# Torch's allocators, those of C++ and of threads, and the loader of libraries have no class for it.
_FAILURES = (
    "allocate memory",
    "out of memory",
    "not enough memory",
    "bad_alloc",
    "can't start new thread",
    "failed to map segment",
)
_TORCH = 1 << 30  # bytes of address space that torch and a small network take
SHARE = 2  # the default limit is this part of the free memory
UNITS = {"": 1 << 30, "GB": 1 << 30, "G": 1 << 30, "MB": 1 << 20, "M": 1 << 20, "B": 1}


def read_bytes(text: str) -> int:
    """The bytes of an amount such as 4GB, 512MB or 4 (gigabytes)."""
    match = re.fullmatch(r"(\d{1,15}(?:\.\d{1,15})?)\s*([A-Z]*)", text.strip().upper())
    if match is None or match[2] not in UNITS or not float(match[1]):
        raise MemoryLimitError(f"{text[:40]!r} is not an amount of memory; write 4GB or 512MB")
    return int(float(match[1]) * UNITS[match[2]])


def limit() -> int:
    """The bytes that a network with its batch may take."""
    given = os.environ.get(VARIABLE)
    return free() // SHARE if given is None else read_bytes(given)


def free() -> int:
    """The bytes that this process can still take: of the machine, its container and its limits."""
    bounds = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    with suppress(OSError, ValueError, IndexError):
        listed = Path("/proc/meminfo").read_text(encoding="ascii")
        bounds.append(1024 * int(listed.partition("MemAvailable:")[2].split()[0]))
    with suppress(OSError, ValueError):
        bounds.append(int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii")))
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most != resource.RLIM_INFINITY:
        with suppress(OSError, ValueError, IndexError):
            pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
            bounds.append(most - pages * os.sysconf("SC_PAGE_SIZE"))
    return max(min(bounds), 0)


@contextmanager
def limited_to(n_bytes: int | None) -> Iterator[None]:
    """A context with that limit, for this process and those that it starts; None changes none."""
    if n_bytes is None:
        yield
        return
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = f"{n_bytes}B"
    try:
        yield
    finally:
        os.environ.pop(VARIABLE) if before is None else os.environ.update({VARIABLE: before})


def check(n_bytes: int, what: str) -> None:
    """Raise MemoryLimitError if that many bytes are more than the limit."""
    most = limit()
    if n_bytes > most:
        raise MemoryLimitError(
            f"{what} needs about {_shown(n_bytes)} of memory, more than the {_shown(most)} allowed:"
            " make it smaller, or give --memory more"
        )


def _shown(n_bytes: int) -> str:
    return f"{n_bytes / (1 << 30):,.1f} GB" if n_bytes >= 1 << 30 else f"{n_bytes >> 20} MB"


def check_address_space() -> None:
    """Raise MemoryLimitError unless torch can be loaded, which else may end the process."""
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most != resource.RLIM_INFINITY and most < _TORCH:
        raise MemoryLimitError(
            f"the process may take {_shown(most)} of memory (ulimit -v); networks need"
            f" {_shown(_TORCH)}"
        )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether Python, NumPy, torch or the system could not allocate memory."""
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM:
        return True
    text = str(error)
    return isinstance(error, (RuntimeError, ImportError)) and any(
        words in text for words in _FAILURES
    )


def check_batch(shape: tuple[int, ...], n_bytes: int = 8) -> None:
    """Raise MemoryLimitError if a batch of that shape, so many bytes per number, is too large."""
    for side in shape:
        n_bytes *= side
    check(n_bytes, f"a batch of {' x '.join(f'{side:,}' for side in shape)}")
