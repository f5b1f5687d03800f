"""Damage to one file: bits, bytes, lines, digits, and files that belong elsewhere."""

from __future__ import annotations

import os
import random
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

Damage = Callable[[Path, Sequence[Path], random.Random], None]


def _bytes(change: Callable[[bytes, random.Random], bytes]) -> Damage:
    def damage(path: Path, others: Sequence[Path], rng: random.Random) -> None:
        _replace(path, change(path.read_bytes(), rng))

    return damage


def _replace(path: Path, data: bytes) -> None:
    """Write a new file: the old one may have a second name."""
    path.unlink()
    path.write_bytes(data)


def _flip(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data or b"\0")
    changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _many_flips(data: bytes, rng: random.Random) -> bytes:
    for _ in range(20):
        data = _flip(data, rng)
    return data


def _zero(data: bytes, rng: random.Random) -> bytes:
    at, length = rng.randrange(len(data) or 1), rng.randrange(1, 600)
    return data[:at] + b"\0" * len(data[at : at + length]) + data[at + length :]


def _digit(data: bytes, rng: random.Random) -> bytes:
    """One digit of the text, if there is any, is another one."""
    places = [found.start() for found in re.finditer(rb"\d", data)]
    if not places:
        return _flip(data, rng)
    at = rng.choice(places)
    other = rng.choice([d for d in b"0123456789" if d != data[at]])
    return data[:at] + bytes([other]) + data[at + 1 :]


def _lines(data: bytes, rng: random.Random) -> bytes:
    """Lines that are lost, repeated or in another order."""
    lines = data.splitlines(keepends=True)
    if len(lines) < 3:
        return data + data
    at = rng.randrange(len(lines) - 1)
    return b"".join(
        rng.choice(
            (
                [*lines[:at], *lines[at + 1 :]],
                [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]],
                [*lines[: at + 1], *lines[at:]],
                lines[: at + 1],
            )
        )
    )


def _swap(path: Path, others: Sequence[Path], rng: random.Random) -> None:
    """The two files have each other's names."""
    if others:
        other = rng.choice(list(others))
        first, second = path.read_bytes(), other.read_bytes()
        _replace(path, second)
        _replace(other, first)
    else:
        _replace(path, b"{}")


def _foreign(path: Path, others: Sequence[Path], rng: random.Random) -> None:
    """The file of another run or table under the same name: see `Target.foreign`."""
    _swap(path, others, rng)


def _huge_integer(data: bytes, rng: random.Random) -> bytes:
    places = [found.span() for found in re.finditer(rb"(?<=[:,\[ ])\d+(?=[,\]}\s])", data)]
    if not places:
        return data + b"9" * 6000
    start, end = rng.choice(places)
    return data[:start] + b"9" * rng.choice((400, 4000, 6000)) + data[end:]


def _pipe(path: Path, others: Sequence[Path], rng: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def _folder(path: Path, others: Sequence[Path], rng: random.Random) -> None:
    path.unlink()
    path.mkdir()


def _device(path: Path, others: Sequence[Path], rng: random.Random) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


DAMAGES: dict[str, Damage] = {
    "bit flipped": _bytes(_flip),
    "bits flipped": _bytes(_many_flips),
    "digit changed": _bytes(_digit),
    "zeros written": _bytes(_zero),
    "cut short": _bytes(lambda data, rng: data[: rng.randrange(len(data) or 1)]),
    "emptied": _bytes(lambda data, rng: b""),
    "bytes added": _bytes(lambda data, rng: data + rng.randbytes(rng.randrange(1, 200))),
    "lines moved": _bytes(_lines),
    "swapped": _swap,
    "of another run": _foreign,
    "huge integer": _bytes(_huge_integer),
    "nested deeply": _bytes(lambda data, rng: rng.choice((b"[", b'{"a":')) * 100_000),
    "removed": lambda path, others, rng: path.unlink(),
    "a pipe": _pipe,
    "a folder": _folder,
    "an endless device": _device,
}
# What happens to files most, and is the hardest to see, is tried most.
WEIGHTS = {"bit flipped": 6, "digit changed": 8, "swapped": 4, "of another run": 4, "cut short": 3,
           "lines moved": 3}  # fmt: skip


def link_tree(source: Path, target: Path) -> None:
    """A copy of the folder whose files share their bytes; `DAMAGES` replace, they never write."""
    shutil.copytree(source, target, copy_function=os.link)
