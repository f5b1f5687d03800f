"""One target under libFuzzer, in a process of its own: `atheris.Fuzz` never returns.

Inputs that are read in a wrong way are written to the folder of findings, the first of each kind;
libFuzzer writes those that end the process or hang. Those that an earlier run has left there are
tried again first.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

INSTRUMENTED = ["lpzero", "primitives", "spaces", "yaml"]
REASON = ".txt"  # beside an input: what was wrong
_N_MUTATIONS = 300  # of valid files, for libFuzzer to start from
_LONGEST, _LONGEST_WORD = 16_384, 64  # bytes; libFuzzer's own limit of a word
_HANGS_AFTER, _MOST_MEMORY = 30, 4096  # seconds and megabytes, where the process is ended


def fuzz() -> None:
    """Run the target for so many seconds; the arguments are its name, these, and the folder."""
    import atheris  # the extra `fuzz`

    _, name, seconds, kept_in = sys.argv
    findings = Path(kept_in)
    with tempfile.TemporaryDirectory(dir=_memory_folder()) as made:
        folder, inputs = Path(made), Path(made) / "inputs"
        inputs.mkdir()
        with atheris.instrument_imports(include=INSTRUMENTED):
            from tests.fuzz import targets

            target = targets.TARGETS[name]
            corpus = target.corpus()
            for data in corpus:  # imports whatever reading needs
                targets.problem(target, data, folder)
        seen: set[str] = set()

        def read(data: bytes) -> None:
            found = targets.problem(target, data, folder)
            if found is not None and (kind := found.partition(": ")[0]) not in seen:
                seen.add(kind)
                _keep(findings, data, found)

        changed = targets.mutations(corpus, _N_MUTATIONS, seed=0)
        for number, data in enumerate([*_earlier(findings), *corpus, *changed]):
            (inputs / str(number)).write_bytes(data)
        words = folder / "words"
        words.write_text(dictionary(targets.words(corpus)))
        options = {
            "max_total_time": seconds,
            "max_len": _LONGEST,
            "timeout": _HANGS_AFTER,
            "rss_limit_mb": _MOST_MEMORY,
            "dict": words,
            "artifact_prefix": f"{findings}/",
            "seed": 1,
        }
        given = [f"-{option}={value}" for option, value in options.items()]
        atheris.Setup([sys.argv[0], *given, str(inputs)], read)
        atheris.Fuzz()


def dictionary(words: Sequence[bytes]) -> str:
    """The words as libFuzzer reads them: quoted, a line each."""
    short = [word for word in words if 0 < len(word) <= _LONGEST_WORD]
    quoted = ("".join(f"\\x{byte:02x}" for byte in word) for word in short)
    return "".join(f'"{word}"\n' for word in quoted)


def _keep(findings: Path, data: bytes, found: str) -> None:
    path = findings / hashlib.sha256(data).hexdigest()[:12]
    path.write_bytes(data)
    path.with_suffix(REASON).write_text(f"{found}\n")


def _earlier(findings: Path) -> list[bytes]:
    """The inputs in the folder, which is empty afterwards."""
    paths = sorted(findings.iterdir())
    inputs = [path.read_bytes() for path in paths if path.suffix != REASON]
    for path in paths:
        path.unlink()
    return inputs


def _memory_folder() -> str | None:
    """A folder in memory where there is one: every input is written to a file."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None
