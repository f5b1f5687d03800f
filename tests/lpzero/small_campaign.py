"""A small made-up table with random sketches, and campaigns on it that take a second."""

from __future__ import annotations

import random
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import spaces
from lpzero.discover.discovery import Campaign
from lpzero.sketches.sketch import Sketch
from spaces.tables.table import Table, make_table
from tests.lpzero import random_sketches

N = 40


@lru_cache(maxsize=4)
def table(n: int = N, name: str = "made-up") -> Table:
    """Architectures of nano-gpt2 whose target is their depth and some noise."""
    space = spaces.get("nano-gpt2")
    rng = random.Random(7)
    archs = [space.sample(rng) for _ in range(n)]
    rows = [
        (str(i), arch, space.depth(arch) + rng.gauss(0, 1.0 + len(name) / 10))
        for i, arch in enumerate(archs)
    ]
    return make_table(name, space, rows, "made up", "none")


@lru_cache(maxsize=4)
def sketches(n: int = N) -> list[Sketch]:
    """A random sketch for each architecture, with as many blocks as it has."""
    made = table(n)
    return [random_sketches.sketch(i, made.space.depth(arch)) for i, arch in enumerate(made.archs)]


def discovery(out: Path | str | None = None, **options: Any) -> Campaign:
    """A campaign on the table: few generations of chains of one, unless told otherwise."""
    asked = {"generations": 6, "population": 12, "offspring": 12, "unaries": 1, "seed": 3}
    asked |= {"terms": 1, "choose": "valid"}
    asked |= options
    given = asked.pop("table", None) or table()
    given = given if isinstance(given, list) else [given]
    return Campaign(given, out=out, sketches=[sketches(len(t)) for t in given], **asked)


def run_or_resume(folder: Path, generations: int, seconds: float = 0.0) -> None:
    """The campaign of that folder, resting after each generation, for tests that kill it."""
    rest = {"callbacks": [lambda progress: time.sleep(seconds)]}
    discovery(folder, resume=True, generations=generations, **rest).run()
