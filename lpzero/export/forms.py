"""The forms by name, and writing one to a file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lpzero import files
from lpzero.errors import InputError
from lpzero.export import csv_form, json_form, latex_form, sympy_form
from lpzero.export.source import Selection


def _python(selection: Selection) -> str:
    from lpzero.export import python_form  # needs torch, which the other forms do not

    return python_form.write(selection.entries)


FORMS: dict[str, Callable[[Selection], str]] = {
    "json": lambda found: json_form.write(found.entries),
    "python": _python,
    "latex": lambda found: latex_form.write(found.entries, found.beside),
    "sympy": lambda found: sympy_form.write(found.entries),
    "csv": lambda found: csv_form.write(found.entries),
}


def export(selection: Selection, form: str) -> str:
    """The text of the formulas in that form."""
    if form not in FORMS:
        raise InputError(f"no form is called {form!r}; use one of {', '.join(FORMS)}")
    if not selection.entries:
        raise InputError("there is no formula to export")
    return FORMS[form](selection)


def write_file(path: Path, text: str, force: bool = False) -> None:
    """Write the file whole or not at all; one that is there stays unless forced."""
    if "\0" in str(path) or path.is_dir():
        raise InputError(f"{str(path)!a} cannot be a file; give --out a file name")
    if (path.exists() or path.is_symlink()) and not force:
        raise InputError(f"{path} is there already; choose another --out, or give --force")
    if not path.parent.is_dir():
        raise InputError(f"there is no directory {path.parent}; make it first")
    files.write_text(path, text)
