"""The command that started a run, stored in its directory: the options as they were given.

A verb runs inside `started_by`; the directory of its run then keeps the command (`store`), and
pages print it from there (`Run.command`). Options that are local, such as the number of processes,
are not part of it, so that equal runs have equal files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from lpzero import files, plugins
from lpzero.errors import EnvelopeError, InputError
from lpzero.options import chosen, options
from lpzero.runs.config import StoredConfig
from lpzero.runs.layout import COMMAND, place
from primitives.errors import did_you_mean

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

    def words(self) -> list[str]:
        """The command line, without the run's directory; raise InputError if it cannot be read."""
        known = {
            entry.name: entry for entry in options(import_module(VERBS).module(self.verb).Request)
        }
        given = dict(self.options)
        words = ["lpzero", self.verb]
        for path in given.pop("plugins", []):
            words += ["--plugin", str(path)]
        for name, value in given.items():
            if name not in known:
                raise InputError(f"unknown option {name!r}; {did_you_mean(name, known)}")
            known[name].kind.check(name, value)
        for is_argument in (True, False):
            for name, entry in known.items():
                if name in given and entry.is_argument is is_argument:
                    words += entry.words(given[name])
        return words


def command_of(kind: str, name: str, request: Any) -> Command | None:
    """The command of a verb's request; None if a value is not one that can be written down."""
    given = chosen(request)
    kept = [e.name for e in options(request) if not e.is_local and e.name not in _NOT_STORED]
    found = {name: given[name] for name in kept if name in given}
    found |= {"plugins": plugins.given()} if plugins.given() else {}
    return Command(kind, name, found) if _is_plain(found) else None


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


def store(folder: Path, kind: str, run: str) -> None:
    """Write the command that is running, if it starts runs of that kind; `run` is the hash."""
    command = _current.get()
    if command is not None and command.kind == kind:
        value = {"verb": command.verb, "options": dict(command.options)}
        files.write_sealed(folder / COMMAND, place(run, COMMAND), value)


def stored(config: StoredConfig) -> Command | None:
    """The command of the run with that config; None if it was not stored, or is not readable."""
    try:
        found = files.read_sealed(config.folder / COMMAND, place(config.hash, COMMAND))
    except (FileNotFoundError, EnvelopeError):
        return None
    name, given = found.get("verb"), found.get("options")
    if (
        name not in import_module(VERBS).commands()
        or not isinstance(given, dict)
        or not _is_plain(given)
    ):
        return None
    return Command(config.kind, str(name), given)
