"""What a local worker process does first: it ignores signals and watches its driver.

The driver handles Ctrl-C and SIGTERM for all of its workers. A driver that is killed cannot end
them, so each worker looks for it and ends when it is gone.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path

from joblib.externals.loky import process_executor

from lpzero.parallel.allocator import keep_freed_memory

_WATCH_SECONDS = 0.5
_ORPHANED: list[Path] = []


def prepare(driver: int) -> None:
    """Ignore Ctrl-C and SIGTERM, and end this process soon after the driver has ended."""
    # Where psutil is installed, loky replaces a worker that has grown by 300 MB since its first
    # item, as one does whose later networks are larger: each new one imports torch again. A search
    # had a new process for every third network.
    process_executor._MAX_MEMORY_LEAK_SIZE = sys.maxsize
    keep_freed_memory()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Thread(target=_watch, args=(driver,), daemon=True).start()


def remove_if_orphaned(folder: Path) -> None:
    """Remove the driver's folder when the driver has ended without doing so."""
    _ORPHANED.append(folder)


def _watch(driver: int) -> None:
    # The parent of an orphan is another process. Linux can send a signal instead
    # (PR_SET_PDEATHSIG), but sends it when the thread that started the worker ends.
    while os.getppid() == driver:
        time.sleep(_WATCH_SECONDS)
    for folder in _ORPHANED:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)  # at once: nobody is left to read the result of the task
