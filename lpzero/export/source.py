"""The source of an export: a campaign directory, a file, a formula's name or a formula."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lpzero.errors import InputError
from lpzero.export import csv_form, json_form, sympy_form
from lpzero.export.exported import Exported, Formulas, Provenance
from lpzero.export.latex_form import CounterFigures
from lpzero.export.run_records import RunRecords
from lpzero.runs.formula_run import FormulaRun
from lpzero.runs.layout import RESULT
from lpzero.runs.run import open_run, report_unexpected_content
from lpzero.untrusted import read_text
from primitives.classics import CLASSICS, Fidelity
from primitives.parser import parse

_REFERENCE = re.compile(r"(id:)?([0-9]{1,12})")


@dataclass(frozen=True, slots=True)
class Choice:
    """Which formulas of a source to export: by default the winner, or the only one.

    `members` are those of the ensemble that a campaign reports.
    """

    top: int | None = None
    all: bool = False
    formula: str | None = None  # a position counted from 1, or id:NUMBER
    members: bool = False

    def of(
        self, entries: Sequence[Exported], chosen: Exported | None, where: str
    ) -> list[Exported]:
        """The selected entries; `entries` must be sorted, best first."""
        if self.all:
            return list(entries)
        if self.top is not None:
            return list(entries[: self.top])
        if self.formula is not None:
            return [self._referred(entries, where)]
        if chosen is not None:
            return [chosen]
        if len(entries) != 1:
            raise InputError(
                f"{where} contains {len(entries)} formulas: choose one with lpzero export {where}"
                " --formula, or several with --top or --all"
            )
        return list(entries)

    def _referred(self, entries: Sequence[Exported], where: str) -> Exported:
        found = _REFERENCE.fullmatch(self.formula or "")
        if found is None:
            raise InputError(
                f"--formula is {self.formula!a:.40}; use a position (3) or an id (id:57)"
            )
        number = int(found[2])
        if found[1]:
            named = [one for one in entries if one.provenance.id == number]
        else:
            named = list(entries[number - 1 : number]) if number else []
        if not named:
            raise InputError(f"{where} contains {len(entries)} formulas and none is {found[0]}")
        return named[0]


@dataclass(frozen=True, slots=True)
class Selection:
    """Formulas to export, and the counters to compare them with.

    With the name of an `ensemble`, they are its members and are exported as one proxy. `remarks`
    say what is missing or broken in the run that they come from, `winner` is the formula that it
    chose.
    """

    entries: list[Exported]
    counters: list[CounterFigures] = field(default_factory=list)
    ensemble: str | None = None
    remarks: list[str] = field(default_factory=list)
    winner: Exported | None = None


def select(
    source: str, choice: Choice | None = None, named: Callable[[str], Formulas] | None = None
) -> Selection:
    """The formulas of the source: a directory, a file, a name or a formula.

    A name is that of a classic proxy, or one that `named` finds formulas for. An ensemble gives all
    its members as an ensemble; members that `choice` selects are formulas of their own.
    """
    choice = choice or Choice()
    if os.path.isdir(source):
        return _run(Path(source), choice)
    if source.endswith((".json", ".csv")) or os.path.exists(source):
        return _chosen(read_file(Path(source)), choice, source)
    if os.sep in source and "(" not in source:
        raise InputError(f"there is no file or directory {source}")
    return _chosen(_named(source, named), choice, "the formula")


def _chosen(found: Formulas, choice: Choice, where: str) -> Selection:
    if found.ensemble is not None and replace(choice, members=False) == Choice():
        return Selection(found.entries, ensemble=found.ensemble)
    return Selection(choice.of(found.entries, None, where))


def from_file(path: Path) -> list[Exported]:
    """The formulas of an exported file of any readable form; of an ensemble its members."""
    return read_file(path).entries


def read_file(path: Path) -> Formulas:
    """What an exported file of any readable form holds."""
    if path.suffix == ".csv":
        return Formulas(csv_form.load(path))
    if path.suffix != ".json" and read_text(path).startswith("# lpzero-sympy"):
        return sympy_form.load(path)
    return json_form.load(path)


def _named(source: str, named: Callable[[str], Formulas] | None) -> Formulas:
    """A formula as it is written, or what is known by the name."""
    if "(" in source:
        return Formulas([Exported("formula", parse(source), Provenance("formula"))])
    for classic in CLASSICS:
        if classic.name == source and classic.formula is not None:
            if classic.fidelity is not Fidelity.EXACT:
                raise InputError(
                    f"proxy {source} has no equivalent formula ({classic.note});"
                    f" {classic.text!r} can be exported instead"
                )
            return Formulas([Exported(source, classic.formula, Provenance("proxy"))])
    if named is None:
        raise InputError(f"{source!a} is not a directory, a file, a formula or a formula's name")
    return named(source)


def _run(folder: Path, choice: Choice) -> Selection:
    """The formulas of a campaign or an exhaustive run."""
    run = open_run(folder)
    if not isinstance(run, FormulaRun):
        raise InputError(f"{folder} is a {run.kind}, which has no formulas to export")
    is_chosen = choice != Choice()
    if run.result is None and not is_chosen:
        raise InputError(
            f"{folder} has no {RESULT}, so there is no winner: finish the run, or choose with"
            " --formula, --top or --all"
        )
    with report_unexpected_content(folder):
        records = RunRecords(run)
        chosen = records.chosen()
        if choice.members:
            entries = records.members()
            if not entries:
                raise InputError(
                    f"{folder} has no ensemble, which only campaigns with --choose stable have:"
                    " choose its members with --top or --all"
                )
        else:
            entries = choice.of(records.hall() if is_chosen else [], chosen, str(folder))
        return Selection(entries, records.counters(), remarks=run.remarks, winner=chosen)


def exact(entries: Sequence[Exported]) -> list[Exported]:
    """The formulas with whole tensors instead of cut ones."""
    return [replace(one, options=replace(one.options, limit=None)) for one in entries]
