"""The OpenLM table: decoders with the final loss of several trainings (Gadre et al., 2024).

One JSON object, from a run's name to its loss. A name has the architecture, batch, learning rate,
weight decay, the batch again, tokens, steps of warm-up and the final rate:
`d=96_l=4_h=4-8-0.003-0.033-8-1000-100-3e-05`. Batches grow with the networks.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import spaces
from spaces.errors import shown
from spaces.tables.readers import architecture_of, field, read_json, refuse
from spaces.tables.source import Origin, Source

if TYPE_CHECKING:
    from spaces.tables.table import Table

_NUMBER = r"\d+(?:\.\d+)?(?:e-?\d+)?"
_RUN = re.compile(
    r"(?P<arch>d=(?P<width>\d{1,9})_l=(?P<depth>\d{1,9})_h=(?P<heads>\d{1,9}))"
    rf"-(?P<batch>\d{{1,9}})-{_NUMBER}-{_NUMBER}-(?P=batch)-(?P<tokens>\d{{1,18}})"
    rf"-(?P<warmup>\d{{1,9}})-{_NUMBER}"
)


class Run(NamedTuple):
    """One training of an architecture."""

    loss: float
    batch: int
    warmup: int
    tokens: int


def read(source: Source, path: Path) -> Table:
    """The table: of each architecture minus the lowest loss; its runs, batch and warm-up beside.

    `runs` is how many there are, `batch` and `warmup` (steps) are those of the best one.
    """
    from spaces.tables.table import make_table

    space = spaces.get(source.space)
    rows, extra = [], dict[str, list[float]](runs=[], batch=[], warmup=[])
    for row, runs in runs_by_architecture(path).items():
        match = _RUN.fullmatch(next(iter(runs)))
        assert match is not None, "the names were read before"
        with architecture_of(f"{path}: {row}"):
            arch = space.from_json({name: int(match[name]) for name in ("width", "depth", "heads")})
        best = min(runs.values(), key=lambda run: run.loss)
        rows.append((row, arch, -best.loss))
        extra["runs"].append(len(runs))
        extra["batch"].append(best.batch)
        extra["warmup"].append(best.warmup)
    return make_table(source.name, space, rows, source.target, source.licence, extra)


def runs_by_architecture(path: Path) -> dict[str, dict[str, Run]]:
    """By the beginning of their names, which is the architecture, all runs by name."""
    losses = read_json(path)
    if not isinstance(losses, dict) or not losses:
        refuse(str(path), "expected names of runs with their losses")
    runs: dict[str, dict[str, Run]] = {}
    for name, loss in losses.items():
        match = _RUN.fullmatch(name)
        if match is None:
            refuse(str(path), f"{shown(name)} is not the name of a run")
        numbers = (int(match[part]) for part in ("batch", "warmup", "tokens"))
        run = Run(field({"loss": loss}, "loss", float, f"{path}: {name}"), *numbers)
        runs.setdefault(match["arch"], {})[name] = run
    return runs


def count(path: Path) -> int:
    """The number of architectures."""
    return len(runs_by_architecture(path))


SOURCES = (
    Source(
        name="openlm",
        space="openlm",
        n=130,
        target="minus the lowest final loss",
        licence="MIT",
        path=Path("openlm/grid.json"),
        read=read,
        count=count,
        origin=Origin(
            repository="mlfoundations/scaling",
            commit="a003c4913793ac2ae7ef87b28ecb562955d026d5",
            path="exp_data/grid.json",
            digest="ca332946e0f359950c47a115662e8fdea40e33807fc6bb8ebb0adc4a17521050",
        ),
    ),
)
