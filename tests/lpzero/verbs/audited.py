"""Commands under an audit hook: what they run, fetch, start and write outside their folder.

`main` runs in a fork of the tests' process, because a hook cannot be removed, and writes what it
saw to FOLDER/seen.json.
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
_CODE = (str(ROOT), sys.prefix, sys.base_prefix, *sysconfig.get_paths().values())
_STARTS = {"subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "os.fork", "os.forkpty"}
_NETWORK = {"socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "urllib.Request"}
_CHANGES = {
    "os.rename",
    "os.remove",
    "os.mkdir",
    "os.rmdir",
    "os.truncate",
    "os.link",
    "os.symlink",
}
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_ANYWHERE = ("/dev/", "/proc/")
HERE = "127.0.0.1"  # the dashboard's own address


class Audit:
    """A hook that notes what no command may do with untrusted files; off until `watching`.

    Files may be written below `folder` alone. No file of it may be run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        self.seen: list[str] | None = None
        sys.addaudithook(self._hook)

    @contextmanager
    def watching(self) -> Iterator[list[str]]:
        """A list that fills with what is done meanwhile."""
        self.seen = seen = []
        try:
            yield seen
        finally:
            self.seen = None

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.seen is None:
            return
        problem = None
        if event == "exec":
            problem = self._run(getattr(arguments[0], "co_filename", ""))
        elif event in _STARTS:
            problem = _started(arguments)
        elif event in _NETWORK:
            problem = _fetched(event, arguments)
        elif event == "pickle.find_class":
            problem = f"unpickles {'.'.join(map(str, arguments))}"
        elif event == "open":
            path, _, flags = arguments
            problem = self._written(path) if isinstance(flags, int) and flags & _WRITES else None
        elif event in _CHANGES:
            problem = self._written(arguments[0])
        if problem is not None and self.seen is not None:
            self.seen.append(problem)

    def _run(self, file: str) -> str | None:
        path = os.path.abspath(file)
        is_installed = path.startswith(_CODE) and not path.startswith(f"{self.folder}/")
        return None if file.startswith("<") or is_installed else f"runs {file}"

    def _written(self, path: Any) -> str | None:
        if not isinstance(path, (str, bytes, os.PathLike)):
            return None  # a descriptor, whose file was opened before
        real = os.path.realpath(os.fsdecode(path))
        is_allowed = real.startswith((f"{self.folder}/", *_ANYWHERE)) or real == self.folder
        return None if is_allowed else f"writes {real}"


def _started(arguments: tuple[Any, ...]) -> str | None:
    """What is started; None for the engine's own processes with limits."""
    from spaces import limited_process, tokenizer
    from spaces.tables import parquet_rows

    programs = (tokenizer.PROGRAM, parquet_rows.PROGRAM)
    started = list(arguments[1])[:3] if len(arguments) > 1 else []
    is_ours = started in [limited_process.words(program) for program in programs]
    return None if is_ours else f"starts {arguments[0]!r:.80}"


def _fetched(event: str, arguments: tuple[Any, ...]) -> str | None:
    address = arguments[1] if event == "socket.connect" else arguments[0]
    is_here = address == HERE or (isinstance(address, tuple) and address[0] == HERE)
    return None if is_here else f"asks {address!r:.80}"


def main(folder: Path) -> int:
    """Attack every verb in the folder."""
    places = ("HOME", "LPZERO_CACHE", "MPLCONFIGDIR", "XDG_CACHE_HOME")
    os.environ |= {**dict.fromkeys(places, str(folder)), "TMPDIR": str(folder / "tmp")}
    tempfile.tempdir = None  # it is asked for anew
    sys.dont_write_bytecode = True
    os.chdir(folder)
    from tests.lpzero.verbs import attacks

    found = attacks.perform(folder, Audit(folder))
    (folder / "seen.json").write_text(json.dumps(found))
    return 0
