"""A process with limits of time and memory, for libraries that read untrusted files in C or Rust.

Such a file of kilobytes can ask them for any time and memory, and what they panic about they print.
The program is Python code with a function `answer(data)` from bytes to bytes. Its process imports
nothing else than this one would.
"""

from __future__ import annotations

import os
import subprocess
import sys

_LIMITS = """
import sys
sys.path[:] = sys.argv[3:]
import resource
resource.setrlimit(resource.RLIMIT_CPU, (int(sys.argv[1]),) * 2)
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]),) * 2)
"""
_ANSWER = """
try:
    answered, code = answer(sys.stdin.buffer.read()), 0
except MemoryError:
    answered, code = b"", 4
except BaseException as error:
    answered, code = str(error).encode("utf-8", "replace")[:2000], 3
sys.stdout.buffer.write(answered)
sys.stdout.flush()
sys.exit(code)
"""
_FAILED = 3
_ENVIRONMENT = {
    **dict.fromkeys(("OMP_NUM_THREADS", "RAYON_NUM_THREADS", "MALLOC_ARENA_MAX"), "1"),
    "TOKENIZERS_PARALLELISM": "false",
    "ARROW_DEFAULT_MEMORY_POOL": "system",  # others reserve address space, which is limited
}


class LimitError(Exception):
    """The process took more than it may, or crashed."""


class ProgramError(Exception):
    """The program raised an error; the message is its first line."""


def run(program: str, data: bytes, seconds: int, memory: int) -> bytes:
    """What the program answers; at most that many seconds of the processor, and bytes of memory."""
    done = subprocess.run(
        [*words(program), str(seconds), str(memory), *filter(None, sys.path)],
        input=data,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **_ENVIRONMENT},
        check=False,
    )
    if done.returncode == 0:
        return done.stdout
    if done.returncode != _FAILED:
        raise LimitError
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    raise ProgramError((lines or ["no reason given"])[0][:120])


def words(program: str) -> list[str]:
    """The beginning of the command that runs the program."""
    return [sys.executable, "-c", f"{_LIMITS}{program}{_ANSWER}"]
