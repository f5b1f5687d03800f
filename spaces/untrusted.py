"""The only opener of files that may be a stranger's: regular files of a limited size, as data.

A path that the user names (a table, a corpus, weights) may be a link; a file inside a directory
that may come from somebody else (a run's, the cache) may not. Sizes are checked before anything is
read, the number of JSON values before anything is parsed. Whatever is wrong with a file is one
class of error and one line, and its exit code is that of wrong input.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from spaces.errors import SpaceError

LARGEST = 1 << 30  # bytes that are read at once, where a reader has no limit of its own
# An empty list takes 80 bytes of memory and 3 of the file.
MOST_VALUES = 3_000_000
_PIECE = 1 << 20
_ZIP, _BYTES = b"PK\x03\x04", b"bytearray"


class UntrustedError(SpaceError, OSError, ValueError):
    """A file that cannot be used as data; `strerror` is the message without the file's name."""

    def __init__(self, path: Path | str, reason: str) -> None:
        super().__init__(f"{path} {reason}")
        self.strerror, self._path = reason, str(path)

    def __reduce__(self) -> tuple[type[UntrustedError], tuple[str, str]]:
        return UntrustedError, (self._path, str(self.strerror))


def user_path(text: str | os.PathLike[str]) -> Path:
    """The path that the user wrote with the home folder for `~`; that of an unknown user stays."""
    return Path(os.path.expanduser(text))


def open_regular(path: Path, largest: int | None = None, follow_links: bool = True) -> BinaryIO:
    """The file, opened for reading; raise UntrustedError unless it is a regular file of that size.

    The path is opened without waiting: opening a pipe nobody writes to would never return.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(path, flags if follow_links else flags | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno == errno.ELOOP:
            leads = "leads to itself" if follow_links else "is not followed"
            raise UntrustedError(path, f"is a link, which {leads}") from None
        if error.errno == errno.ENXIO:  # a socket
            raise UntrustedError(path, "is not a regular file") from None
        raise
    about = os.fstat(handle)
    reason = None
    if not stat.S_ISREG(about.st_mode):
        reason = "is not a regular file"
    elif largest is not None and about.st_size > largest:
        reason = f"has {about.st_size:,} bytes, at most {largest:,} are read"
    if reason is not None:
        os.close(handle)
        raise UntrustedError(path, reason)
    return open(handle, "rb")


def read_regular(path: Path, largest: int = LARGEST, follow_links: bool = True) -> bytes:
    """The file's bytes; raise UntrustedError unless it is a regular file of that size."""
    with open_regular(path, largest, follow_links) as file:
        data = file.read(largest + 1)
    if len(data) > largest:  # it has grown
        raise UntrustedError(path, f"has more than {largest:,} bytes")
    return data


def check_regular(path: Path, largest: int | None, follow_links: bool = True) -> None:
    """Raise UntrustedError unless the path is a regular file of at most that size."""
    open_regular(path, largest, follow_links).close()


def pieces_of(path: Path, follow_links: bool = True) -> Iterator[bytes]:
    """The bytes of a regular file of any size, a piece at a time."""
    with open_regular(path, follow_links=follow_links) as file:
        while piece := file.read(_PIECE):
            yield piece


def check_unpacked(file: BinaryIO, path: Path | str) -> None:
    """Raise UntrustedError for a ZIP archive that takes more memory than its own size.

    What this project and torch write into archives is not packed; a packed one of kilobytes could
    hold gigabytes.
    """
    size = file.seek(0, os.SEEK_END)
    try:
        with zipfile.ZipFile(file) as archive:
            unpacked = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError):
        raise UntrustedError(path, "is not a whole archive") from None
    if unpacked > size:
        raise UntrustedError(path, f"unpacks to {unpacked:,} bytes, more than its own {size:,}")
    file.seek(0)


def check_tensors(file: BinaryIO, path: Path | str) -> None:
    """Raise UntrustedError for a file of torch.save that takes more memory than its size.

    The plain values that torch reads include `bytearray`, which makes memory of a number.
    """
    file.seek(0)
    if file.read(len(_ZIP)) == _ZIP:
        check_unpacked(file, path)
    file.seek(0)
    end = b""
    while piece := file.read(_PIECE):
        if _BYTES in end + piece:
            raise UntrustedError(path, "has more than tensors in plain containers")
        end = piece[1 - len(_BYTES) :]
    file.seek(0)


def read_tail(path: Path, most: int) -> bytes:
    """The last bytes of a file in a run's directory; raise UntrustedError or OSError."""
    with open_regular(path, follow_links=False) as file:
        file.seek(max(0, os.fstat(file.fileno()).st_size - most))
        return file.read(most)


def read_json(path: Path, largest: int = LARGEST, follow_links: bool = True) -> Any:
    """The file's JSON value; raise UntrustedError if it has too many, or is not JSON."""
    return parse_json(read_regular(path, largest, follow_links), path)


def parse_json(data: bytes | str, path: Path | str) -> Any:
    """The JSON value in the content of the file."""
    check_values(data, path)
    try:
        return json.loads(data)
    except json.JSONDecodeError as error:
        place = f"at line {error.lineno} column {error.colno}"
        raise UntrustedError(path, f"has broken or truncated JSON {place}: {error.msg}") from None
    except UnicodeDecodeError as error:
        raise UntrustedError(path, f"is not UTF-8 text (byte {error.start})") from None
    except RecursionError:
        raise UntrustedError(path, "has JSON that is nested too deeply") from None
    except ValueError:  # Python converts no text of thousands of digits
        raise UntrustedError(path, "has an integer of thousands of digits") from None


def check_values(data: bytes | str, path: Path | str) -> None:
    """Raise UntrustedError for JSON with more values than are read.

    A value follows a comma or begins a list or an object, so counting these bounds the values.
    """
    if len(data) <= MOST_VALUES:
        return
    if isinstance(data, bytes):
        n_values = sum(map(data.count, (b",", b"[", b"{")))
    else:
        n_values = sum(map(data.count, (",", "[", "{")))
    if n_values > MOST_VALUES:
        raise UntrustedError(
            path, f"has {n_values:,} JSON values, at most {MOST_VALUES:,} are read"
        )
