"""The declaration of an export format, the formats by name, and writing an export to a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lpzero import files
from lpzero.errors import InputError
from lpzero.options import options
from spaces.declarations import declared

if TYPE_CHECKING:
    from lpzero.export.source import Selection


@dataclass(frozen=True, slots=True)
class NoOptions:
    """The options of a format that has none."""


@dataclass(frozen=True, slots=True)
class Exporter:
    """A module `NAME_form` declares one as `EXPORTER`, and `lpzero export --to NAME` writes it.

    `write` returns the text of the selected formulas. `options` is a dataclass of settings
    (`lpzero.options`) that only this format has; `write` gets an instance of it.
    """

    name: str
    help: str
    write: Callable[[Selection, Any], str]
    options: type[Any] = NoOptions


# The other modules of this package, whose source exported modules contain, may need torch.
EXPORTERS: dict[str, Exporter] = {
    exporter.name: exporter
    for exporter in declared(
        "lpzero.export",
        [str(Path(__file__).parent)],
        "EXPORTER",
        lambda module: module.name.endswith("_form"),
    )
}


def export(selection: Selection, form: str, **given: Any) -> str:
    """The text of the formulas in that format; `given` are options that only this format has."""
    if form not in EXPORTERS:
        raise InputError(f"unknown form {form!r}; use one of {', '.join(EXPORTERS)}")
    if not selection.entries:
        raise InputError("no formula was selected for export")
    for name in given:
        owners = [other for other in EXPORTERS if name in _flags(other)]
        if form not in owners:
            flag = name if not owners else _flags(owners[0])[name]
            raise InputError(f"{flag} is for --to {' or '.join(owners) or 'nothing'}, not {form}")
    return EXPORTERS[form].write(selection, EXPORTERS[form].options(**given))


def _flags(form: str) -> dict[str, str]:
    """The options that only this format has: field and spelling."""
    return {entry.name: entry.flag for entry in options(EXPORTERS[form].options)}


def write_file(path: Path, text: str, force: bool = False) -> None:
    """Write the file atomically; an existing file is replaced only with `force`."""
    if "\0" in str(path) or path.is_dir():
        raise InputError(f"{str(path)!a} is not a file name; give --out a file name")
    if (path.exists() or path.is_symlink()) and not force:
        raise InputError(f"{path} exists; choose another --out, or give --force")
    if not path.parent.is_dir():
        raise InputError(f"there is no directory {path.parent}; create it first")
    files.write_text(path, text)
