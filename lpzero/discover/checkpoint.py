"""The saved state of a campaign, and what it was configured with.

Everything else follows from the journal: the state says how many of its lines it stands for, so
that a campaign killed at any moment goes on as if it had not been.
"""

from __future__ import annotations

import hashlib
import json
import platform
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from lpzero.discover.generation import State
from lpzero.discover.journal import Journal
from lpzero.discover.settings import Settings
from lpzero.runs import directory as files
from lpzero.runs.errors import RunError
from lpzero.version import VERSION

SCHEMA = 1
_LIBRARIES = ("deap", "numpy")


@dataclass(frozen=True, slots=True)
class Config:
    """Settings and tables; the number of generations may grow, all else is fixed for good."""

    settings: Settings
    tables: tuple[dict[str, Any], ...]
    split_seed: int
    sketch: dict[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The content of config.json."""
        return {
            "schema": SCHEMA,
            "hash": self.hash,
            "versions": versions(),
            "tables": list(self.tables),
            "split_seed": self.split_seed,
            "sketch": self.sketch,
            "settings": self.settings.to_json(),
        }

    @property
    def hash(self) -> str:
        """A name for everything that decides the campaign's course."""
        settings = {k: v for k, v in self.settings.to_json().items() if k != "generations"}
        content = [SCHEMA, list(self.tables), self.split_seed, self.sketch, settings]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def versions() -> dict[str, str]:
    """What the numbers may depend on."""
    found = {"lpzero": VERSION, "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def read_config(folder: Path) -> dict[str, Any] | None:
    """The content of config.json, None if there is no campaign in the folder."""
    path = folder / files.CONFIG
    if not path.exists():
        return None
    found = files.read_json(path)
    if found is not None:
        _check_schema(path, found)
    if found is None or not found.keys() >= {"hash", "tables", "split_seed", "sketch", "settings"}:
        raise RunError(f"{path} is broken: restore it, or start again in another directory")
    return found


def check_same(folder: Path, found: Mapping[str, Any], config: Config) -> None:
    """An error that names what differs between the campaign in the folder and this one."""
    if found.get("hash") == config.hash:
        return
    mine = json.loads(json.dumps(config.to_json()))
    for before, now in zip(found["tables"], mine["tables"], strict=False):
        if before["name"] == now["name"] and before["digest"] != now["digest"]:
            raise RunError(
                f"table {now['name']} has changed since the campaign in {folder} began:"
                " bring the old table back, or start a new campaign in another directory"
            )
    old, new = dict(found["settings"]), dict(mine["settings"])
    for part in ("tables", "split_seed", "sketch"):
        old[part], new[part] = found[part], mine[part]
    odd = [f"{k} {old.get(k)!r}, not {new.get(k)!r}" for k in new if old.get(k) != new.get(k)]
    raise RunError(
        f"the campaign in {folder} was begun with {'; '.join(odd) or 'another configuration'}:"
        " leave these options out to go on with it, or choose another --out"
    )


def save(folder: Path, config: Config, state: State, rng: random.Random, journal: Journal) -> None:
    """Write the state; the journal reaches the disk first."""
    journal.sync()
    kind, numbers, gauss = rng.getstate()
    value = {
        "schema": SCHEMA,
        "versions": versions(),
        "config": config.hash,
        "tables": {table["name"]: table["digest"] for table in config.tables},
        "next_generation": state.generation,
        "journal_lines": journal.n_lines,
        "exhausted": state.exhausted,
        "population": [candidate.id for candidate in state.population],
        "random": [kind, list(numbers), gauss],
    }
    files.write_json(folder / files.STATE, value, indent=None)


def restore(folder: Path, config: Config, journal: Journal, rng: random.Random) -> State | None:
    """The saved state, with `rng` and the journal put where it left them.

    None if there is none that fits: the campaign then begins again and runs over its journal.
    """
    path = folder / files.STATE
    found = files.read_json(path)
    if found is None:
        return None
    _check_schema(path, found)
    try:
        return _restored(found, config, journal, rng)
    except (KeyError, IndexError, TypeError, ValueError):
        return None  # readable, but not what we write


def _restored(
    found: dict[str, Any], config: Config, journal: Journal, rng: random.Random
) -> State | None:
    if found["config"] != config.hash or found["journal_lines"] > len(journal):
        return None
    lines = journal.candidates(stop=found["journal_lines"])
    kind, numbers, gauss = found["random"]
    state = State(
        found["next_generation"],
        len(lines),
        tuple(lines[number] for number in found["population"]),
        {line.key: line.id for line in lines if line.key is not None},
        tuple(lines),
        found["exhausted"],
    )
    rng.setstate((kind, tuple(numbers), gauss))
    journal.go_to(len(lines))
    return state


def changed_versions(found: Mapping[str, Any]) -> Sequence[str]:
    """Remarks on what is not as it was when the campaign began."""
    now, then = versions(), found.get("versions", {})
    return [
        f"{name} was {then.get(name)} when the campaign began and is {now[name]}: what follows"
        " may differ from an uninterrupted run"
        for name in now
        if then.get(name) != now[name]
    ]


def _check_schema(path: Path, found: Mapping[str, Any]) -> None:
    schema = found.get("schema")
    if not isinstance(schema, int) or schema > SCHEMA:
        raise RunError(
            f"{path} has schema {schema!r}, this version reads up to {SCHEMA}: update lpzero"
        )
