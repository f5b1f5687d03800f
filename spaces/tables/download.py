"""One URL to one file, resumable: bytes gather in a `.part` file that a later call continues.

urllib rather than pooch: pooch starts every download from zero and checks the bytes of the
archive, which are not stable upstream.
"""

from __future__ import annotations

import http.client
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from spaces.errors import FetchError

Progress = Callable[[int, "int | None"], None]
_CHUNK = 1 << 16
_LARGEST = 2 << 30


def download(url: str, part: Path, timeout: float, progress: Progress) -> bool:
    """Bring `part` to the whole content of the URL; whether earlier bytes were continued.

    A server that ignores the range, or refuses it, makes the download start from zero.
    """
    part.parent.mkdir(parents=True, exist_ok=True)
    start = part.stat().st_size if part.exists() else 0
    try:
        return _transfer(url, part, start, timeout, progress)
    except HTTPError as error:
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and start:
            part.unlink()
            return download(url, part, timeout, progress)
        raise FetchError(
            f"{url}: the server answered {error.code} {error.reason}; check the address"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        # Our own words, or a file of ours that cannot be written: not the server's fault.
        if isinstance(error, FetchError) or getattr(error, "filename", None):
            raise
        reason = getattr(error, "reason", None) or error or type(error).__name__
        raise FetchError(f"{url}: {reason}; run the same command again to resume") from error


def _transfer(url: str, part: Path, start: int, timeout: float, progress: Progress) -> bool:
    request = Request(url, headers={"User-Agent": "lpzero"})
    if start:
        request.add_header("Range", f"bytes={start}-")
    with urlopen(request, timeout=timeout) as response:
        resumed = response.status == http.HTTPStatus.PARTIAL_CONTENT and _begins(response, start)
        start = start if resumed else 0
        length = response.headers.get("Content-Length")
        total = start + int(length) if length is not None and length.isdigit() else None
        with part.open("ab" if resumed else "wb") as file:
            done = _copy(url, response, file, start, total, progress)
            file.flush()
            os.fsync(file.fileno())
    if total is not None and done != total:
        raise FetchError(
            f"{url}: the connection closed after {done} of {total} bytes; "
            "run the same command again to resume"
        )
    return resumed


def _begins(response: Any, start: int) -> bool:
    """Whether a partial answer continues exactly where the file ends."""
    match = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    if not match or int(match[1]) != start:
        raise FetchError(f"{response.url}: the server sent another range than asked; try later")
    return True


def _copy(
    url: str, response: Any, file: Any, done: int, total: int | None, progress: Progress
) -> int:
    while chunk := response.read(_CHUNK):
        done += len(chunk)
        if done > _LARGEST:
            raise FetchError(f"{url}: more than {_LARGEST} bytes; this is not the expected file")
        file.write(chunk)
        progress(done, total)
    return done
