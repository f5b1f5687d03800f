"""The export forms by name, and writing an export to a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lpzero import files
from lpzero.errors import InputError
from lpzero.export.exporter import Exporter
from lpzero.export.source import Selection
from lpzero.options import options
from spaces.declarations import declared

# The other modules of this package, whose source exported modules contain, may need torch.
FORMS: dict[str, Exporter] = {
    form.name: form
    for form in declared(
        "lpzero.export",
        [str(Path(__file__).parent)],
        "EXPORTER",
        lambda module: module.name.endswith("_form"),
    )
}


def export(selection: Selection, form: str, **given: Any) -> str:
    """The text of the formulas in that form; `given` are options that only this form has."""
    if form not in FORMS:
        raise InputError(f"unknown form {form!r}; use one of {', '.join(FORMS)}")
    if not selection.entries:
        raise InputError("no formula was selected for export")
    for name in given:
        owners = [other for other in FORMS if name in _own(other)]
        if form not in owners:
            flag = name if not owners else _own(owners[0])[name]
            raise InputError(f"{flag} is for --to {' or '.join(owners) or 'nothing'}, not {form}")
    return FORMS[form].write(selection, FORMS[form].options(**given))


def _own(form: str) -> dict[str, str]:
    """The options that only this form has: field and spelling."""
    return {entry.name: entry.flag for entry in options(FORMS[form].options)}


def write_file(path: Path, text: str, force: bool = False) -> None:
    """Write the file atomically; an existing file is replaced only with `force`."""
    if "\0" in str(path) or path.is_dir():
        raise InputError(f"{str(path)!a} is not a file name; give --out a file name")
    if (path.exists() or path.is_symlink()) and not force:
        raise InputError(f"{path} exists; choose another --out, or give --force")
    if not path.parent.is_dir():
        raise InputError(f"there is no directory {path.parent}; create it first")
    files.write_text(path, text)
