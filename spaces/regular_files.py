"""Reading files whose content is not trusted: regular files of a limited size only."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

from spaces.errors import SpaceError


class NotRegularError(SpaceError, OSError):
    """The path is a pipe, a device, a folder or a file that is too large."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.strerror = reason


def open_regular(path: Path) -> BinaryIO:
    """The file, opened for reading; raise NotRegularError for anything but a regular file.

    The path is opened without waiting: opening a pipe nobody writes to would never return.
    """
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise NotRegularError("not a regular file")
    return open(handle, "rb")


def read_regular(path: Path, largest: int | None = None) -> bytes:
    """The file's bytes; raise NotRegularError for anything but a regular file of that size."""
    with open_regular(path) as file:
        data = file.read() if largest is None else file.read(largest + 1)
    if largest is not None and len(data) > largest:
        raise NotRegularError(f"more than {largest:,} bytes")
    return data


def check_regular(path: Path, largest: int) -> None:
    """Raise NotRegularError unless the path is a regular file of at most that size."""
    about = os.stat(path)
    if not stat.S_ISREG(about.st_mode):
        raise NotRegularError("not a regular file")
    if about.st_size > largest:
        raise NotRegularError(f"more than {largest:,} bytes")
