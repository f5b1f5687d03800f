"""The formulas of a run's directory as records to export; its files are untrusted input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import spaces
from lpzero.export import json_form
from lpzero.export.exported import Batch, Exported, Figures, Provenance, batch_of
from lpzero.export.latex_form import CounterFigures
from lpzero.judgement.counters import BEST_COUNT
from lpzero.judgement.measures import RHO, RHO_GIVEN_PARAMS
from lpzero.runs.formula_run import FormulaRun
from lpzero.untrusted import Fields, check_number, check_text
from primitives.parser import parse
from spaces.errors import UnknownNameError
from spaces.minibatch import Minibatch

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
        found = None if self.run.result is None else self.run.result.get("ensemble")
        return [] if found is None else [self._entry(text) for text in found["members"]]

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
        found = []
        for name in (table["name"] for table in self.run.tables):
            found += [_counter_figures(line, where) for line in self._count(name)]
            found += [_counter_figures(line, where) for line in self.run.counters(name)]
        return found

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
            parts = {part: found for part, found in judged.items() if part != "all"}
            given = {part: found["rho_given_params"] for part, found in parts.items()}
            figures.append(
                self._figures(
                    name,
                    n=self.run.summary(name)["n"],
                    rho=rhos[name],
                    rho_ci={part: found["rho_ci"] for part, found in parts.items()},
                    rho_given_params={p: value for p, value in given.items() if value is not None},
                )
            )
        return self._record(line, figures)

    def _unjudged(self, row: Line) -> Exported:
        figures = []
        for table in self.run.tables:
            name = table["name"]
            known = self.run.summary(name)
            figures.append(
                self._figures(
                    name,
                    n={"train": known["n_fitness"]} if known else {},
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
        known = {"table": name, "split_seed": seed}
        known |= {field: table[field] for field in ("space", "target", "digest")}
        return json_form.figures(Fields({**known, **numbers}, f"{self.folder}: {name!a:.40}"))

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
    found = []
    for name in dict.fromkeys(names):
        try:
            found.append(batch_of(spaces.get(name), chosen))
        except UnknownNameError:
            continue
    return tuple(found)
