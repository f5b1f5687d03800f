"""The directory of a campaign or of an exhaustive run as records to export.

Its files may come from a stranger.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import spaces
from lpzero.errors import InputError
from lpzero.export import json_form
from lpzero.export.latex_form import Beside
from lpzero.export.record import Batch, Exported, Figures, Provenance, batch_of
from lpzero.export.untrusted import Fields, check_number, check_text, read_json, read_text
from lpzero.judgement.measures import RHO, RHO_GIVEN_PARAMS
from lpzero.runs import directory as files
from primitives.formula import Formula
from primitives.parser import parse
from spaces.errors import UnknownNameError


def read_object(folder: Path, name: str) -> dict[str, Any]:
    """The object in one of the directory's files."""
    path = folder / name
    value = read_json(read_text(path), str(path))
    if not isinstance(value, dict):
        raise InputError(f"{path} holds no object")
    return value


class Campaign:
    """The files of a campaign directory as records."""

    def __init__(self, folder: Path, config: dict[str, Any], result: dict[str, Any] | None) -> None:
        self.folder, self.config, self.result = folder, config, result
        self.options = json_form.options(Fields(config["sketch"], f"{folder}: sketch"))
        self.batches = _batches([table["space"] for table in config["tables"]])
        self.tables = {table["name"]: table for table in (result or {"tables": []})["tables"]}

    def hall(self) -> list[Exported]:
        """The hall of fame; what the report judged has its figures, the rest those of train."""
        path = self.folder / files.HALL
        rows = read_json(read_text(path), str(path))
        judged = {} if self.result is None else {line["id"]: line for line in self.result["top"]}
        return [
            self.entry(judged[row["id"]]) if row["id"] in judged else self._unjudged(row)
            for row in rows
        ]

    def entry(self, line: dict[str, Any]) -> Exported:
        """A line of the report."""
        names = [table["name"] for table in self.config["tables"]]
        rhos = line["rho_by_table"] if len(names) > 1 else {names[0]: line["rho"]}
        figures = []
        for name in names:
            judged = line.get("judged", {}).get(name, {})
            parts = {part: found for part, found in judged.items() if part != "all"}
            given = {p: f["rho_given_params"] for p, f in parts.items()
                     if f["rho_given_params"] is not None}  # fmt: skip
            rho_ci = {part: found["rho_ci"] for part, found in parts.items()}
            n = self.tables[name]["n"]
            figures.append(self._figures(name, n=n, rho=rhos[name], rho_ci=rho_ci,
                                         rho_given_params=given))  # fmt: skip
        return self._exported(line, figures)

    def _unjudged(self, row: dict[str, Any]) -> Exported:
        figures = []
        for table in self.config["tables"]:
            name = table["name"]
            known = self.tables.get(name)
            figures.append(
                self._figures(
                    name,
                    n={} if known is None else {"train": known["n_fitness"]},
                    rho={"train": row[f"{name} {RHO}"]},
                    rho_ci={},
                    rho_given_params={"train": row[f"{name} {RHO_GIVEN_PARAMS}"]},
                )
            )
        return self._exported(row, figures)

    def _figures(self, name: str, **numbers: Any) -> Figures:
        table = next(t for t in self.config["tables"] if t["name"] == name)
        known = {"table": name, "split_seed": self.config["split_seed"]}
        known |= {field: table[field] for field in ("space", "target", "digest")}
        return json_form.figures(Fields({**known, **numbers}, f"{self.folder}: {name!a:.40}"))

    def _exported(self, line: dict[str, Any], figures: Sequence[Figures]) -> Exported:
        fields = Fields(line, str(self.folder))
        number = fields.integer("id", 0)
        formula = parse(fields.take("formula"))
        settings = Fields(self.config["settings"], f"{self.folder}: settings")
        provenance = Provenance(
            "campaign",
            campaign=check_text(self.config["hash"], f"{self.folder}: hash"),
            method=settings.text("method"),
            seed=settings.integer("seed"),
            chosen_on=settings.text("choose"),
            id=number,
            generation=fields.integer("generation", 0),
            figures=tuple(figures),
        )
        name = "-".join([*(f.table for f in figures), str(number)])
        return self._record(name, formula, provenance)

    def _record(self, name: str, formula: Formula, provenance: Provenance) -> Exported:
        name = check_text(name, f"{self.folder}: name")
        return Exported(name, formula, provenance, self.options, batches=self.batches)

    def beside(self) -> list[Beside]:
        """The sizes that the report judged."""
        lines = [] if self.result is None else self.result["counters"]
        return [_beside(line, f"{self.folder}: counters") for line in lines]


class Exhaustive(Campaign):
    """The files of an exhaustive run, in which nothing has an id and one table is searched."""

    def __init__(self, folder: Path, run: dict[str, Any], result: dict[str, Any]) -> None:
        target = result["target"]
        table = {"name": run["table"], "target": target}
        table |= {field: run[field] for field in ("space", "digest")}
        config = {field: run[field] for field in ("sketch", "split_seed")} | {"tables": [table]}
        best = {**result["best"], "judged": {run["table"]: result["best"]["judged"]}}
        tables = [{"name": run["table"], "n": result["n"]}]
        super().__init__(folder, config, {**result, "best": best, "tables": tables})

    def hall(self) -> list[Exported]:
        """The best formulas as the last answer had them."""
        assert self.result is not None
        best = self.result["best"]
        same = [line["formula"] == best["formula"] for line in self.result["top"]]
        lines = [best if is_best else line
                 for line, is_best in zip(self.result["top"], same, strict=True)]  # fmt: skip
        return [self.entry(line) for line in lines]

    def _exported(self, line: dict[str, Any], figures: Sequence[Figures]) -> Exported:
        provenance = Provenance("exhaustive run", chosen_on="train", figures=tuple(figures))
        return self._record(figures[0].table, parse(line["formula"]), provenance)


def _beside(line: dict[str, Any], where: str) -> Beside:
    test = line["judged"]["test"]
    low, high = (check_number(x, where, 1.0) for x in test["rho_ci"])
    given = test["rho_given_params"]
    return Beside(
        check_text(line["proxy"], where),
        check_text(line["table"], where),
        {part: check_number(value, where, 1.0) for part, value in line["rho"].items()},
        (low, high),
        None if given is None else check_number(given, where, 1.0),
    )


def _batches(names: Sequence[Any]) -> tuple[Batch, ...]:
    """How the spaces draw their inputs; a space that is not ours is left out."""
    found = []
    for name in dict.fromkeys(names):
        try:
            found.append(batch_of(spaces.get(name)))
        except UnknownNameError:
            continue
    return tuple(found)
