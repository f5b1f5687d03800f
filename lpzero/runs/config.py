"""What a run was asked to do, as config.json keeps it: the same file for every kind of run.

`request` decides the run's course and is fixed for good, except for the fields that may grow; its
hash names the run. A directory written by another schema is refused in one line that says which
version of the engine wrote it.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from lpzero import files
from lpzero.errors import RunError
from lpzero.runs.layout import CONFIG
from lpzero.version import VERSION

# Raised whenever a file of a run's directory changes its meaning.
SCHEMA = 2
_EARLIER = "run.json"  # of exhaustive runs before schema 2
_FIELDS = {"schema", "kind", "hash", "versions", "request"}
_LIBRARIES = ("deap", "numpy")


@dataclass(frozen=True, slots=True)
class RunConfig:
    """A kind of run ("campaign", "search", ...) and its request as JSON values.

    `growing` are the paths of request fields that may differ when the run is resumed, such as
    ("settings", "generations").
    """

    kind: str
    request: Mapping[str, Any]
    growing: tuple[tuple[str, ...], ...] = ()

    @property
    def hash(self) -> str:
        """A name for everything that decides the run's course."""
        fixed = json.loads(json.dumps(self.request))
        for *path, last in self.growing:
            holder = fixed
            for name in path:
                holder = holder[name]
            del holder[last]
        content = json.dumps([SCHEMA, self.kind, fixed], sort_keys=True)
        return hashlib.sha256(content.encode()).hexdigest()

    def to_json(self) -> dict[str, Any]:
        """The content of config.json."""
        return {
            "schema": SCHEMA,
            "kind": self.kind,
            "hash": self.hash,
            "versions": versions(),
            "request": json.loads(json.dumps(self.request)),
        }


@dataclass(frozen=True, slots=True)
class StoredConfig:
    """The config.json of a run's directory."""

    folder: Path
    kind: str
    hash: str
    versions: Mapping[str, str]
    request: Mapping[str, Any]

    def check_kind(self, kind: str) -> None:
        """Raise RunError if the directory holds another kind of run."""
        if self.kind != kind:
            raise RunError(f"{self.folder} holds a {self.kind}, not a {kind}: choose another --out")

    def check_same(self, config: RunConfig) -> None:
        """Raise RunError that names what differs between this run and the one asked for."""
        self.check_kind(config.kind)
        if self.hash == config.hash:
            return
        before = _digests(self.request)
        for table, digest in _digests(config.request).items():
            if before.get(table, digest) != digest:
                raise RunError(
                    f"table {table} has changed since the {self.kind} in {self.folder} began:"
                    " restore the old table, or start again in another directory"
                )
        new = dict(_flat(json.loads(json.dumps(config.request))))
        old = dict(_flat(self.request))
        differing = [
            f"{name} {old.get(name)!r}, not {value!r}"
            for name, value in new.items()
            if old.get(name) != value
        ]
        raise RunError(
            f"the {self.kind} in {self.folder} was started with"
            f" {'; '.join(differing) or 'another configuration'}: leave these options out to resume"
            " it, or choose another --out"
        )

    def changed_versions(self) -> list[str]:
        """Remarks on libraries that are not what they were when the run started."""
        return [
            f"{name} was {self.versions.get(name)} when the {self.kind} started and is {now}: what"
            " follows may differ from an uninterrupted run"
            for name, now in versions().items()
            if self.versions.get(name) != now
        ]


def versions() -> dict[str, str]:
    """The versions that the numbers may depend on."""
    found = {"lpzero": VERSION, "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found


def read_config(folder: Path) -> StoredConfig | None:
    """The config of the run in the folder; None if the folder holds no run."""
    path = folder / CONFIG
    if not path.exists():
        earlier = files.read_object(folder / _EARLIER)
        if earlier is not None and "schema" in earlier:
            _check_schema(folder / _EARLIER, earlier)
        return None
    found = files.read_object(path)
    if found is not None:
        _check_schema(path, found)
    if found is None or not found.keys() >= _FIELDS or not isinstance(found["request"], dict):
        raise RunError(f"{path} is broken: restore it, or start again in another directory")
    stored = found["versions"] if isinstance(found["versions"], dict) else {}
    kind, name = str(found["kind"]), str(found["hash"])
    return StoredConfig(folder, kind, name, stored, found["request"])


def _check_schema(path: Path, found: Mapping[str, Any]) -> None:
    schema = found.get("schema")
    if schema == SCHEMA and not isinstance(schema, bool):
        return
    stored = found.get("versions")
    engine = stored.get("lpzero") if isinstance(stored, dict) else found.get("version")
    writer = f"lpzero {engine}" if engine else "an unknown version of lpzero"
    raise RunError(
        f"{path} was written by {writer} with schema {schema!r:.40}, this version reads schema"
        f" {SCHEMA}: use that version for it, or start again in another directory"
    )


def _digests(request: Mapping[str, Any]) -> dict[str, str]:
    tables = request.get("tables", [])
    return {str(table["name"]): str(table["digest"]) for table in tables if "digest" in table}


def _flat(request: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The fields with those of inner objects in their place."""
    for name, value in request.items():
        if isinstance(value, Mapping):
            yield from _flat(value)
        else:
            yield name, value


def table_entries(tables: Sequence[Any]) -> list[dict[str, str]]:
    """What a request says of each table: name, space, target and digest."""
    return [
        {"name": t.name, "space": t.space.name, "target": t.target, "digest": t.digest}
        for t in tables
    ]
