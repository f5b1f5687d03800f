"""The configuration of a run (config.json), with the command that started it.

`request` determines the run's results. It never changes, except for the fields listed in `growing`,
and its hash identifies the run. A directory with another schema is refused with a message that
says which version of the engine wrote it.

A verb runs inside `started_by`; the config of its run then keeps the command (`write_config`), and
pages print it from there (`Run.command`). Options that are local, such as the number of processes,
are not part of it, so that equal runs have equal files. The command stands in the same file as the
request, so that no failure leaves the one without the other.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from lpzero import files, plugins
from lpzero.errors import EnvelopeError, InputError, RunError
from lpzero.judgement.table import space_name
from lpzero.options import chosen, options, renamed
from lpzero.runs.layout import CONFIG
from lpzero.version import VERSION
from primitives.errors import did_you_mean
from spaces.untrusted import UntrustedError, read_json

# Incremented whenever the format or meaning of a file in a run's directory changes.
SCHEMA = 3
_OLD_CONFIG = "run.json"  # the config of exhaustive runs before schema 2
_FIELDS = {"schema", "kind", "hash", "versions", "request"}
_LIBRARIES = ("deap", "numpy")


@dataclass(frozen=True, slots=True)
class RunConfig:
    """A kind of run ("campaign", "search", ...) and its request as JSON values.

    `growing` are the paths of request fields that may differ when the run is resumed, such as
    ("settings", "generations"). `of_engine` are request fields that the engine sets, not an
    option: a run with other ones is another engine's.
    """

    kind: str
    request: Mapping[str, Any]
    growing: tuple[tuple[str, ...], ...] = ()
    of_engine: tuple[str, ...] = ()

    @property
    def hash(self) -> str:
        """The hash of everything that determines the run's results."""
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
    command: Any = None  # as it was read, see `stored_command`

    def to_json(self) -> dict[str, Any]:
        """The content of config.json."""
        content = {
            "schema": SCHEMA,
            "kind": self.kind,
            "hash": self.hash,
            "versions": self.versions,
            "request": self.request,
        }
        return content if self.command is None else {**content, "command": self.command}

    def check_kind(self, kind: str) -> None:
        """Raise RunError if the directory holds another kind of run."""
        if self.kind != kind:
            raise RunError(
                f"{self.folder} holds {with_article(self.kind)}, not {with_article(kind)}: choose"
                " another --out"
            )

    def check_same(self, config: RunConfig) -> None:
        """Raise RunError, naming the differences, unless `config` describes this run."""
        self.check_kind(config.kind)
        if self.hash == config.hash:
            return
        before = _digests(self.request)
        for table, digest in _digests(config.request).items():
            if before.get(table, digest) != digest:
                raise RunError(
                    f"table {table} has changed since the {self.kind} in {self.folder} started:"
                    " restore the old table, or start again in another directory"
                )
        new = dict(_flat(json.loads(json.dumps(config.request))))
        old = dict(_flat(self.request))
        differing = [
            f"{name} {old.get(name)!r}, not {value!r}"
            for name, value in new.items()
            if old.get(name) != value and name not in config.of_engine
        ]
        engine = [self.request.get(name) == config.request[name] for name in config.of_engine]
        if not differing and not all(engine):
            raise RunError(
                f"the {self.kind} in {self.folder} was started by lpzero"
                f" {self.versions.get('lpzero')}, which measures other formulas than this version,"
                f" {VERSION}: use that version, or choose another --out"
            )
        raise RunError(
            f"the {self.kind} in {self.folder} was started with"
            f" {'; '.join(differing) or 'another configuration'}: leave these options out to resume"
            " it, or choose another --out"
        )

    def changed_versions(self) -> list[str]:
        """Remarks on libraries whose version has changed since the run started."""
        return [
            f"{name} was {self.versions.get(name)} when the {self.kind} started and is {now} now:"
            " results may differ from those of an uninterrupted run"
            for name, now in versions().items()
            if self.versions.get(name) != now
        ]


def with_article(kind: str) -> str:
    """The kind of run with its article, as in "an exhaustive run"."""
    return f"{'an' if kind[:1] in 'aeiou' else 'a'} {kind}"


def versions() -> dict[str, str]:
    """The versions of the engine and of the libraries that results may depend on."""
    by_name = {"lpzero": VERSION, "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            by_name[name] = version(name)
        except PackageNotFoundError:
            by_name[name] = "unknown"
    return by_name


def write_config(folder: Path, config: RunConfig | StoredConfig) -> None:
    """Write the sealed config.json, with the running command if it starts runs of that kind."""
    content, command = config.to_json(), _current.get()
    if command is not None and command.kind == config.kind:
        content["command"] = {"verb": command.verb, "options": dict(command.options)}
    files.write_sealed(folder / CONFIG, CONFIG, content)


def read_config(folder: Path) -> StoredConfig | None:
    """The config of the run in the folder; None if the folder holds no run."""
    path = folder / CONFIG
    content = _read_object(path)
    if content is None:
        old = _read_object(folder / _OLD_CONFIG)
        if isinstance(old, dict) and "schema" in old:
            _check_schema(folder / _OLD_CONFIG, old)
        return None
    if isinstance(content, dict):
        _check_schema(path, content)
    try:
        content = files.unsealed(CONFIG, content)
    except EnvelopeError as error:
        raise RunError(
            f"{path} is broken: {error}; restore it, or start again in another directory"
        ) from None
    if not content.keys() >= _FIELDS or not isinstance(content["request"], dict):
        raise RunError(f"{path} is broken: restore it, or start again in another directory")
    stored = content["versions"] if isinstance(content["versions"], dict) else {}
    kind, name = str(content["kind"]), str(content["hash"])
    return StoredConfig(folder, kind, name, stored, content["request"], content.get("command"))


def _read_object(path: Path) -> Any:
    """The JSON value in a file of a run's directory; None if there is no such file."""
    try:
        return read_json(path, files.LARGEST_JSON, follow_links=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UntrustedError as error:
        raise RunError(
            f"{path} is broken: it {error.strerror}; restore it, or start again in another"
            " directory"
        ) from None


def _check_schema(path: Path, content: Mapping[str, Any]) -> None:
    schema = content.get("schema")
    if schema == SCHEMA and not isinstance(schema, bool):
        return
    stored = content.get("versions")
    engine = stored.get("lpzero") if isinstance(stored, dict) else content.get("version")
    writer = f"lpzero {engine}" if engine else "an unknown version of lpzero"
    raise RunError(
        f"{path} was written by {writer} with schema {schema!r:.40}, but this version reads schema"
        f" {SCHEMA}: use that version, or start again in another directory"
    )


def _digests(request: Mapping[str, Any]) -> dict[str, str]:
    tables = request.get("tables", [])
    return {str(table["name"]): str(table["digest"]) for table in tables if "digest" in table}


def _flat(request: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The fields, with nested objects replaced by their own fields."""
    for name, value in request.items():
        if isinstance(value, Mapping):
            yield from _flat(value)
        else:
            yield name, value


def table_entries(tables: Sequence[Any]) -> list[dict[str, str]]:
    """The entry of each table in a request: name, space, target and digest."""
    return [
        {"name": t.name, "space": space_name(t), "target": t.target, "digest": t.digest}
        for t in tables
    ]


# Resolved when a run is read: the verbs are above this package.
VERBS = "lpzero.verbs"
# Not part of a command: where the run is kept is said when the command is printed.
_NOT_STORED = ("out", "resume")


@dataclass(frozen=True, slots=True)
class Command:
    """A verb with options by name, as JSON values, for runs of one kind."""

    kind: str
    verb: str
    options: Mapping[str, Any]

    def code(self) -> list[str]:
        """The files, modules and addresses of the Python code that the command runs."""
        named = [str(path) for path in self.options.get("plugins", [])]
        for entry in options(import_module(VERBS).module(self.verb).Request):
            named += entry.addresses(self.options.get(entry.name))
        return list(dict.fromkeys(named))

    def words(self) -> list[str]:
        """The command line, without the run's directory; raise InputError if it cannot be read."""
        entries = {
            entry.name: entry for entry in options(import_module(VERBS).module(self.verb).Request)
        }
        given = dict(self.options)
        words = ["lpzero", self.verb]
        for path in given.pop("plugins", []):
            words += ["--plugin", str(path)]
        for name, value in given.items():
            if name not in entries:
                raise InputError(f"unknown option {name!r}; {did_you_mean(name, entries)}")
            entries[name].kind.check(name, value)
        for is_argument in (True, False):
            for name, entry in entries.items():
                if name in given and entry.is_argument is is_argument:
                    words += entry.words(given[name])
        return words


def command_of(kind: str, name: str, request: Any) -> Command | None:
    """The command of a verb's request; None if a value is not one that can be written down."""
    given = chosen(request)
    kept = [e.name for e in options(request) if not e.is_local and e.name not in _NOT_STORED]
    kept_values = {name: given[name] for name in kept if name in given}
    kept_values |= {"plugins": plugins.given()} if plugins.given() else {}
    return Command(kind, name, kept_values) if _is_plain(kept_values) else None


def _is_plain(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(map(_is_plain, value.values()))
    if isinstance(value, list):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (str, int, float))


_current: ContextVar[Command | None] = ContextVar("command", default=None)


@contextmanager
def started_by(command: Command | None) -> Iterator[None]:
    """A context in which the directory of a run of the command's kind keeps the command."""
    token = _current.set(command)
    try:
        yield
    finally:
        _current.reset(token)


def stored_command(config: StoredConfig) -> Command | None:
    """The command of the run with that config; None if it was not stored, or is not readable."""
    content = config.command if isinstance(config.command, dict) else {}
    name, given = content.get("verb"), content.get("options")
    if (
        not isinstance(name, str)
        or name not in import_module(VERBS).commands()
        or not isinstance(given, dict)
        or not _is_plain(given)
        or not isinstance(given.get("plugins", []), list)
        or not given.keys().isdisjoint(_NOT_STORED)
    ):
        return None
    request = import_module(VERBS).module(name).Request
    return Command(config.kind, name, renamed(request, given))
