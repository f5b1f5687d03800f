"""Plug-ins that a user names: Python files or modules, which are run in this process.

A plug-in declares primitives with `@unary` and `@binary`, proxies with `@proxy`, spaces as
`SPACES`, tables as `SOURCES` or as `TABLES` (the fields of `lpzero.yaml`), loops as `LOOPS`. One
that fails is named, what it declared is removed, and only what needs it stops. Workers run the same
text (`lpzero.parallel.tasks`). Installed packages use entry points: `spaces.declarations`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from lpzero.errors import InputError
from primitives import registry as primitives
from spaces import user_modules
from spaces.tables import registry as tables
from spaces.tables.project_file import sources_of
from spaces.untrusted import user_path

logger = logging.getLogger(__name__)
_GIVEN: list[str] = []
_TAKERS: list[tuple[str, Callable[[str, Any], None]]] = []

user_modules.on_forget(primitives.forget_module)


def load(name: str) -> None:
    """Run the plug-in and declare what it offers; log one line if it fails.

    Raises UserCodeError if there is no such file.
    """
    if (name.endswith(".py") or "/" in name) and not user_path(name).is_file():
        raise user_modules.UserCodeError(f"there is no plug-in {name}: the file does not exist")
    try:
        module = user_modules.load(name)
        _declare(name, module)
    except Exception as error:
        tables.forget(name)
        reason = " ".join(str(error).split())[:300]
        logger.warning("plug-in %s is ignored: %s", name, reason)
        return
    if name not in _GIVEN:
        _GIVEN.append(name)
        for constant, take in _TAKERS:
            _offer(name, constant, take)


def given() -> list[str]:
    """The plug-ins that were loaded, as they were named."""
    return list(_GIVEN)


def own_primitives() -> dict[str, str]:
    """The digest of the source of every primitive that is not the package's own, by name."""
    return {name: digest for name, (_, digest) in sorted(primitives.foreign().items())}


def _declare(name: str, module: ModuleType) -> None:
    for space in _constant(module, "SPACES"):
        attributes = [key for key, value in vars(module).items() if value is space]
        user_modules.remember_space(f"{name}:{attributes[0]}" if attributes else space.name, space)
    for source in _constant(module, "SOURCES"):
        tables.add(source)
    declared = getattr(module, "TABLES", None)
    if declared is not None:
        path = Path(module.__file__ or name)
        for source in sources_of(declared, path, name).values():
            tables.add(source)


def each(constant: str, take: Callable[[str, Any], None]) -> None:
    """Call `take` with the name and each offer of a plug-in under the constant, now and later."""
    _TAKERS.append((constant, take))
    for name in _GIVEN:
        _offer(name, constant, take)


def _offer(name: str, constant: str, take: Callable[[str, Any], None]) -> None:
    for offered in _constant(user_modules.load(name), constant):
        try:
            take(name, offered)
        except InputError as error:  # stops only what asks for it
            logger.warning("%s", error)


def _constant(module: ModuleType, name: str) -> tuple[Any, ...]:
    value = getattr(module, name, ())
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)
