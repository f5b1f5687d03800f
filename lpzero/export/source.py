"""The source of an export: a campaign directory, a file, a formula's name or a formula.

The files of a run's directory are untrusted input.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import spaces
from lpzero.errors import InputError
from lpzero.export import csv_form, json_form, sympy_form
from lpzero.export.fields import Fields, check_number, check_text, read_text
from lpzero.export.latex_form import CounterFigures
from lpzero.export.record import (
    Batch,
    Exported,
    ExportedPredictor,
    Figures,
    Formulas,
    Provenance,
    batch_of,
)
from lpzero.judgement.counters import BEST_COUNT
from lpzero.judgement.measures import RHO, RHO_GIVEN_PARAMS
from lpzero.runs.config import with_article
from lpzero.runs.formula_run import FormulaRun
from lpzero.runs.layout import PREDICTOR, RESULT
from lpzero.runs.run import open_run, report_unexpected_content
from lpzero.runs.run import read_file as sealed_file
from primitives.classics import CLASSICS, Fidelity
from primitives.parser import parse
from spaces.errors import UnknownNameError
from spaces.minibatch import Minibatch

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
        reference = _REFERENCE.fullmatch(self.formula or "")
        if reference is None:
            raise InputError(
                f"--formula is {self.formula!a:.40}; use a position (3) or an id (id:57)"
            )
        number = int(reference[2])
        if reference[1]:
            named = [entry for entry in entries if entry.provenance.id == number]
        else:
            named = list(entries[number - 1 : number]) if number else []
        if not named:
            raise InputError(f"{where} contains {len(entries)} formulas and none is {reference[0]}")
        return named[0]


@dataclass(frozen=True, slots=True)
class Selection:
    """Formulas to export, and the counters to compare them with.

    With the name of an `ensemble`, they are its members and are exported as one proxy. `remarks`
    say what is missing or broken in the run that they come from, `winner` is the formula that it
    chose. `predictor` reads the predictor beside it, None if there is none.
    """

    entries: list[Exported]
    counters: list[CounterFigures] = field(default_factory=list)
    ensemble: str | None = None
    remarks: list[str] = field(default_factory=list)
    winner: Exported | None = None
    predictor: Callable[[], ExportedPredictor | None] | None = None


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


def _chosen(formulas: Formulas, choice: Choice, where: str) -> Selection:
    if formulas.ensemble is not None and replace(choice, members=False) == Choice():
        return Selection(formulas.entries, ensemble=formulas.ensemble)
    entries = choice.of(formulas.entries, None, where)
    return Selection(
        entries, predictor=None if formulas.predictor is None else lambda: formulas.predictor
    )


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
        raise InputError(f"{folder} is {with_article(run.kind)}, which has no formulas to export")
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
                    f"{folder} has no ensemble, which only campaigns with --choose nested or"
                    " stable have: choose its members with --top or --all"
                )
        else:
            entries = choice.of(records.hall() if is_chosen else [], chosen, str(folder))
        return Selection(
            entries,
            records.counters(),
            remarks=run.remarks,
            winner=chosen,
            predictor=records.predictor,
        )


def exact(entries: Sequence[Exported]) -> list[Exported]:
    """The formulas with whole tensors instead of cut ones."""
    return [replace(entry, options=replace(entry.options, limit=None)) for entry in entries]


Line = Mapping[str, Any]


class RunRecords:
    """The formulas of a campaign or an exhaustive run, with the run's results for them."""

    def __init__(self, run: FormulaRun) -> None:
        self.run, self.folder = run, run.folder
        sketch = Fields(run.request["sketch"], f"{self.folder}: sketch")
        self.options = json_form.options(sketch)
        self.batches = _batches([table["space"] for table in run.tables], self.options.batch)

    def chosen(self) -> Exported | None:
        """The winner; None before there is one."""
        return None if self.run.best is None else self._judged(self.run.best)

    def hall(self) -> list[Exported]:
        """The hall of fame; reported formulas have all figures, the rest only those of train."""
        return [self._entry(row["formula"]) for row in self.run.hall]

    def members(self) -> list[Exported]:
        """The members of the ensemble that the result reports, best first; none without one.

        Those that are not in the hall of fame have no figures.
        """
        ensemble = None if self.run.result is None else self.run.result.get("ensemble")
        return [] if ensemble is None else [self._entry(text) for text in ensemble["members"]]

    def predictor(self) -> ExportedPredictor | None:
        """The predictor beside the winner; None if the run has none."""
        remarks: list[str] = []
        value = sealed_file(self.run.config, PREDICTOR, remarks)
        if remarks:
            raise InputError(f"{self.folder}: {remarks[0]}")
        if value is None:
            return None
        from lpzero.export import predictor_fields  # it needs scipy, which a help text does not

        fields = Fields(value, f"{self.folder / PREDICTOR}")
        formula = parse(fields.take("formula"))
        space = check_text(self.run.tables[0]["space"], f"{self.folder}: space")
        return predictor_fields.read(fields, formula, space, self.options)

    def _entry(self, formula: str) -> Exported:
        """A formula with all that the run says about it."""
        if formula in self._reported:
            return self._judged(self._reported[formula])
        row = self._rows.get(formula)
        return self._record({"formula": formula}, []) if row is None else self._unjudged(row)

    @cached_property
    def _reported(self) -> dict[str, Line]:
        lines = [] if self.run.result is None else self.run.result["top"]
        best = [] if self.run.best is None else [self.run.best]
        return {line["formula"]: line for line in (*lines, *best)}

    @cached_property
    def _rows(self) -> dict[str, Line]:
        return {row["formula"]: row for row in self.run.hall}

    def counters(self) -> list[CounterFigures]:
        """The best count, if the result has one, and the counters, table by table."""
        where = f"{self.folder}: counters"
        figures = []
        for name in (table["name"] for table in self.run.tables):
            figures += [_counter_figures(line, where) for line in self._count(name)]
            figures += [_counter_figures(line, where) for line in self.run.counters(name)]
        return figures

    def _count(self, table: str) -> list[Line]:
        """The best count on a table as a counter's line; none if the result has none there."""
        count = self.run.count
        if count is None or table not in count["judged"]:
            return []
        formula = count.get("formula_by_table", {}).get(table, count["formula"])
        rho = count.get("rho_by_table", {}).get(table, count["rho"])
        line = {"proxy": BEST_COUNT, "table": table, "judged": count["judged"][table]}
        return [line | {"rho": rho, "formula": formula}]

    def _judged(self, line: Line) -> Exported:
        names = [table["name"] for table in self.run.tables]
        rhos = line["rho_by_table"] if len(names) > 1 else {names[0]: line["rho"]}
        figures = []
        for name in names:
            judged = line.get("judged", {}).get(name, {})
            parts = {part: judgement for part, judgement in judged.items() if part != "all"}
            given = {part: judgement["rho_given_params"] for part, judgement in parts.items()}
            figures.append(
                self._figures(
                    name,
                    n=self.run.summary(name)["n"],
                    rho=rhos[name],
                    rho_ci={part: judgement["rho_ci"] for part, judgement in parts.items()},
                    rho_given_params={p: value for p, value in given.items() if value is not None},
                )
            )
        return self._record(line, figures)

    def _unjudged(self, row: Line) -> Exported:
        figures = []
        for table in self.run.tables:
            name = table["name"]
            summary = self.run.summary(name)
            figures.append(
                self._figures(
                    name,
                    n={"train": summary["n_fitness"]} if summary else {},
                    rho={"train": row[f"{name} {RHO}"]},
                    rho_ci={},
                    rho_given_params={"train": row[f"{name} {RHO_GIVEN_PARAMS}"]},
                )
            )
        return self._record(row, figures)

    def _figures(self, name: str, **numbers: Any) -> Figures:
        table = next(t for t in self.run.tables if t["name"] == name)
        is_of_whole = self.run.settings.get("whole_table", False)
        seed = None if is_of_whole else self.run.request["split_seed"]
        about = {"table": name, "split_seed": seed}
        about |= {field: table[field] for field in ("space", "target", "digest")}
        return json_form.figures(Fields({**about, **numbers}, f"{self.folder}: {name!a:.40}"))

    def _record(self, line: Line, figures: Sequence[Figures]) -> Exported:
        fields = Fields({"id": None, "generation": None, **line}, str(self.folder))
        settings = Fields(
            {"method": None, "seed": None, "choose": "train", **self.run.settings},
            f"{self.folder}: settings",
        )
        number = fields.optional_integer("id", 0)
        formula = parse(fields.take("formula"))
        provenance = Provenance(
            self.run.kind,
            campaign=check_text(self.run.config.hash, f"{self.folder}: hash"),
            method=settings.optional_text("method"),
            seed=settings.optional_integer("seed"),
            chosen_on=settings.text("choose"),
            id=number,
            generation=fields.optional_integer("generation", 0),
            figures=tuple(figures),
        )
        parts = [table["name"] for table in self.run.tables]
        parts += [] if number is None else [str(number)]
        name = check_text("-".join(parts), f"{self.folder}: name")
        return Exported(name, formula, provenance, self.options, batches=self.batches)


def _counter_figures(line: Line, where: str) -> CounterFigures:
    test = line["judged"]["test"]
    low, high = (check_number(x, where, 1.0) for x in test["rho_ci"])
    given = test["rho_given_params"]
    return CounterFigures(
        check_text(line["proxy"], where),
        check_text(line["table"], where),
        {part: check_number(value, where, 1.0) for part, value in line["rho"].items()},
        (low, high),
        None if given is None else check_number(given, where, 1.0),
        parse(line["formula"]) if "formula" in line else None,
    )


def _batches(names: Sequence[str], chosen: Minibatch | None) -> tuple[Batch, ...]:
    """How the spaces draw their inputs; spaces unknown to this version are omitted."""
    batches = []
    for name in dict.fromkeys(names):
        try:
            batches.append(batch_of(spaces.get(name), chosen))
        except UnknownNameError:
            continue
    return tuple(batches)
