"""Calls a verb, so that the directory of its run keeps the command."""

from __future__ import annotations

from typing import Any

from lpzero.errors import InputError
from lpzero.options import chosen, make, options
from lpzero.runs.config import Command, command_of, read_config, started_by, stored_command
from lpzero.verbs import Outcome, Screen, module
from spaces.memory import check_address_space, limited_to
from spaces.untrusted import user_path


def call(name: str, request: Any, screen: Screen | None = None) -> Outcome:
    """What the verb gives for the request; without a screen nothing is shown."""
    declared = module(name)
    if hasattr(declared, "KIND") and getattr(request, "out", None) is not None:
        _check_text(chosen(request))
    limit = chosen(request).get("memory")
    if any(entry.name == "device" for entry in options(request)):
        check_address_space()
    with started_by(command(name, request)), limited_to(limit):
        outcome: Outcome = declared.run(request, screen or Screen())
    return outcome


def _check_text(values: Any) -> None:
    """Raise InputError for the name of a file that the JSON of a run's directory cannot keep."""
    for name, value in values.items():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and not text.isascii():
                try:
                    text.encode()
                except UnicodeEncodeError:
                    raise InputError(
                        f"{name} is {text!r}, which is not text in UTF-8: rename the file"
                    ) from None


def request_of(name: str, *arguments: Any, **values: Any) -> Any:
    """The request of a verb with these arguments and options."""
    kind = module(name).Request
    names = [entry.name for entry in options(kind) if entry.is_argument]
    return make(kind, {**dict(zip(names, arguments, strict=False)), **values})


def command(name: str, request: Any) -> Command | None:
    """The command to keep: that of the run to resume, with what is given now, or this one."""
    declared = module(name)
    if not hasattr(declared, "KIND"):
        return None
    kind = (declared.kind(request) if hasattr(declared, "kind") else declared.KIND).name
    now = command_of(kind, name, request)
    if now is None or not getattr(request, "resume", False):
        return now
    config = read_config(user_path(str(request.out)))
    if config is None:
        return now
    before = stored_command(config)
    if before is None or before.kind != kind:
        return None  # what it was started with is not known
    return Command(kind, name, {**before.options, **now.options})
