"""Trained tables: the project's own, small members of three families, and those of users.

One JSON file each: {"schema": 1, "name", "space", "target", "licence", "provenance", "noise",
"rows": [{"arch", "target", "runs": [{"seed", "target", "seconds", "steps"}, ...]}, ...]}, and, if
trainings failed, "failures": [{"arch", "seed", "steps", "failure"}, ...].
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import spaces
from spaces.tables.readers import architecture_of, field, read_json, refuse
from spaces.tables.source import Source
from spaces.untrusted import open_regular

if TYPE_CHECKING:
    from spaces.tables.table import Table

SCHEMA = 1
_START, _START_BYTES = re.compile(rb'\s*\{\s*"schema"\s*:\s*\d+\s*,\s*"name"'), 200
DATA = Path(__file__).parent.parent / "data"


def read(source: Source, path: Path) -> Table:
    """The table, with the number of runs and the training seconds as extra columns."""
    document = _document(path)
    for name, expected in (("name", source.name), ("space", source.space)):
        given = field(document, name, str, str(path))
        if given != expected:
            refuse(str(path), f"{name} = {given!r}, expected {expected!r}")
    return _table(path, document, source.name, spaces.get(source.space))


def is_trained(path: Path) -> bool:
    """Whether the file is a table that `lpzero train` wrote."""
    try:
        with open_regular(path) as file:
            return _START.match(file.read(_START_BYTES)) is not None
    except OSError:
        return False


def read_trained(path: Path, space: str | None = None) -> Table:
    """The table in a file that `lpzero train` wrote, in its own space or in the one named."""
    document = _document(path)
    found = spaces.get(space or field(document, "space", str, str(path)))
    return _table(path, document, path.stem, found)


def _table(path: Path, document: Any, name: str, space: Any) -> Table:
    from spaces.tables.table import make_table

    where = str(path)
    rows = []
    extra: dict[str, list[float]] = {"runs": [], "seconds": []}
    for index, record in enumerate(document["rows"]):
        place = f"{path}: row {index}"
        runs = field(record, "runs", list, place)
        with architecture_of(place):
            arch = space.from_json(field(record, "arch", dict, place))
        rows.append((str(index), arch, field(record, "target", float, place)))
        extra["runs"].append(float(len(runs)))
        extra["seconds"].append(sum(field(run, "seconds", float, place) for run in runs))
    target, licence = (field(document, name, str, where) for name in ("target", "licence"))
    noise = field(document, "noise", dict, where)
    has_ceiling = "rho_between_targets" in noise
    ceiling = field(noise, "rho_between_targets", float, f"{where}: noise") if has_ceiling else None
    failed = len(document.get("failures", ()))
    return make_table(name, space, rows, target, licence, extra, ceiling, failed)


def count(path: Path) -> int:
    """The number of rows."""
    return len(_document(path)["rows"])


def _document(path: Path) -> Any:
    document = read_json(path)
    schema = field(document, "schema", int, str(path))
    if schema != SCHEMA:
        refuse(str(path), f"schema = {schema}, expected {SCHEMA}: use the version that wrote it")
    if not field(document, "rows", list, str(path)):
        refuse(str(path), "rows is empty, expected at least one architecture")
    return document


def _source(name: str, n: int, target: str, digest: str) -> Source:
    path = DATA / f"{name}.json"
    return Source(name, name, n, target, "Apache-2.0", path, read, count, shipped_digest=digest)


SOURCES = (
    _source(
        "nano-gpt2",
        104,
        "minus validation loss",
        "2a04b04af2b709c8233d35218fdcc7a462fcab30d629dee2856df46d7078adb7",
    ),
    _source(
        "nano-flexibert",
        96,
        "held-out balanced accuracy",
        "6e19ee3a704e9c24ec9bec86816dab8e6b9b0bfafedd76be8f715516bc58c70e",
    ),
    _source(
        "nano-rnn",
        96,
        "minus validation loss",
        "1e54429d601fce9e95d2c3b5e15a17ea8000989dde2141e3960a3391daba876c",
    ),
)
