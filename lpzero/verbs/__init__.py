"""One module per verb: what it is asked for, what it does, and the kind of run that it leaves.

    Request            a frozen dataclass of options: the command line, the Python function and
                       the printed command are derived from it
    run(request, screen) -> Outcome
    KIND               the kind of run that it leaves in a directory (`lpzero.runs.run.Kind`)

A module with `Request` is a command; its docstring begins with `NAME: ` and the line of `lpzero
--help`. One with `KIND` declares a kind of run. Nothing else lists them.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lpzero.runs.run import Kind


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a verb gives: `result` as JSON values, and what a terminal needs beyond it.

    `then` is called once the result is printed, for what does not end by itself: a server.
    """

    result: Any
    about: Mapping[str, Any] = field(default_factory=dict)
    then: Callable[[], None] | None = None


@dataclass(frozen=True, slots=True)
class Screen:
    """What a verb shows while it works: by default nothing.

    `progress` draws bars, `say` takes lines, `watch` are called with every step of the work,
    `stops` says that the user asked to stop. `is_brief` if only a table is printed at the end.
    """

    progress: bool = False
    is_brief: bool = False
    say: Callable[[str], None] = lambda line: None
    watch: Sequence[Callable[[Any], Any]] = ()
    stops: Callable[[], bool] = lambda: False

    def label(self, text: str) -> str | None:
        """The text beside a bar; None if there is none."""
        return text if self.progress else None


@cache
def commands() -> dict[str, str]:
    """The line of `lpzero --help` of every verb, by name; no verb is imported for it."""
    lines = {}
    for name in _names():
        first = _first_line(name)
        if first.startswith(f'"""{name}: '):
            lines[name] = first.removeprefix(f'"""{name}: ').removesuffix('"""')
    return lines


def _first_line(name: str) -> str:
    for folder in __path__:
        path = Path(folder, f"{name}.py")
        if path.is_file():
            with path.open(encoding="utf-8") as file:
                return file.readline().strip()
    return ""


def _names() -> list[str]:
    return sorted(module.name for module in pkgutil.iter_modules(__path__))


def module(name: str) -> ModuleType:
    """The declaration of that name."""
    return import_module(f"{__name__}.{name}")


@cache
def kinds() -> dict[str, Kind]:
    """Every kind of run, by name."""
    kinds = (getattr(module(name), "KIND", None) for name in _names())
    return {kind.name: kind for kind in kinds if kind is not None}
