"""A command and everything it starts, measured: wall and processor seconds, peak memory.

command, environment  ->  Usage; Linux only, because memory is read from /proc
"""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lpzero.errors import LPZeroError

_EVERY = 0.2  # seconds between two looks at the memory
_SESSION, _USER, _SYSTEM = 3, 11, 12  # fields of /proc/PID/stat after the command's name


class CommandFailedError(LPZeroError, RuntimeError):
    """A timed command that did not exit with 0."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Seconds of wall and processor time, and the peak memory of all processes together in MB.

    `last_line` is what it said last.
    """

    wall: float
    cpu: float
    peak: float
    last_line: str


def run(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> Usage:
    """Run the command in the folder; raise CommandFailedError, with its last lines, if it fails."""
    start = time.perf_counter()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        peak, seconds = 0.0, {}
        while True:
            found, status, used = os.wait4(process.pid, os.WNOHANG)
            if found:
                break
            members = list(_members(process.pid))
            peak = max(peak, sum(_megabytes(pid) for pid in members))
            seconds |= {pid: _seconds(pid) for pid in members}
            time.sleep(min(_EVERY, 0.01 + (time.perf_counter() - start) / 50))
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        lines = said.read().splitlines()
        if process.returncode:
            last = "\n".join(lines[-5:])
            asked = shlex.join(command)
            raise CommandFailedError(f"{asked} exited with {process.returncode}:\n{last}")
    # Workers that nobody waited for are missing in the system's own sum.
    cpu = max(used.ru_utime + used.ru_stime, sum(seconds.values()))
    return Usage(wall, cpu, peak, lines[-1] if lines else "")


def _members(session: int) -> Iterator[int]:
    """The processes of the session."""
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and _stat(int(entry.name))[_SESSION : _SESSION + 1] == [
            str(session)
        ]:
            yield int(entry.name)


def _stat(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:  # it has ended
        return []
    return text.rpartition(")")[2].split()


def _seconds(pid: int) -> float:
    fields = _stat(pid)
    if not fields:
        return 0.0
    return (int(fields[_USER]) + int(fields[_SYSTEM])) / os.sysconf("SC_CLK_TCK")


def _megabytes(pid: int) -> float:
    """Its memory, what it shares with others counted in parts."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:")) / 1024
