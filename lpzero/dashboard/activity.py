"""Whether a process works on a run, found without touching the run's lock.

Trying the lock would hold it for a moment, and a run that starts in that moment would be refused.
The kernel's list of locks is read instead.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from lpzero.runs.layout import LOCK

_LOCKS = Path("/proc/locks")
_RECENT = 10.0  # seconds


def is_active(folder: Path, changed: float) -> bool:
    """Whether a process of this machine works in the directory, last changed at that time.

    Where the kernel lists no locks, and for runs started with --no-lock, the process that the lock
    file names must be alive and must have written something a moment ago.
    """
    try:
        inode = os.stat(folder / LOCK, follow_symlinks=False).st_ino
        holder = int((folder / LOCK).read_bytes()[:32])
    except (OSError, ValueError):
        return False  # no lock file, or an empty one: its process ended by itself
    if _is_locked(inode, holder):
        return True
    return time.time() - changed < _RECENT and _is_alive(holder)


def _is_locked(inode: int, holder: int) -> bool:
    """Whether the kernel lists a lock of the process on the file.

    Devices are not compared: some file systems number them differently in the list.
    """
    lines: list[str] = []
    with suppress(OSError):
        lines = _LOCKS.read_text().splitlines()
    # such as "1: FLOCK  ADVISORY  WRITE 3039 fe:00:2285607 0 EOF"
    held = ((words[1], words[4], words[5].rpartition(":")[2]) for line in lines
            if len(words := line.split()) > 5)  # fmt: skip
    return ("FLOCK", str(holder), str(inode)) in held


def _is_alive(process: int) -> bool:
    if process <= 0:
        return False
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True  # another user's
    return True
