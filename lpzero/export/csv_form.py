"""Formulas as CSV, a row for each formula and table, and back.

The formula column goes through the parser; missing columns have default values, so the hall of fame
of a campaign directory can be read too.
"""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

from lpzero.errors import InputError
from lpzero.export.fields import check_text, read_text
from lpzero.export.record import Exported, Exporter, Figures, Provenance
from lpzero.files import guarded, to_csv, unguarded
from lpzero.judgement.table import SPLIT_PARTS
from lpzero.sketches.sketch import SketchOptions
from lpzero.statistics import OURS
from primitives.parser import parse

_MAX_ROWS = 1000


def write(exported: list[Exported]) -> str:
    """The text of a CSV file with a header."""
    rows = []
    for record in exported:
        for figures in record.provenance.figures or (None,):
            rows.append(_row(record, figures))
    return to_csv(rows)


def load(path: str | Path) -> list[Exported]:
    """The formulas of a CSV file, each once."""
    place = Path(path)
    try:
        rows = list(csv.DictReader(io.StringIO(read_text(place), newline=""), strict=True))
    except csv.Error as error:
        raise InputError(f"{place} is not a CSV file: {error}") from None
    if not rows or "formula" not in rows[0]:
        raise InputError(f"{place} has no column 'formula', or no rows")
    if len(rows) > _MAX_ROWS:
        raise InputError(f"{place} has {len(rows)} rows, expected at most {_MAX_ROWS}")
    by_name: dict[str, Exported] = {}
    for number, row in enumerate(rows, 2):
        record = _read(row, f"{place}: line {number}", place.stem)
        by_name.setdefault(f"{record.name} {record.formula}", record)
    return list(by_name.values())


def _row(record: Exported, figures: Figures | None) -> dict[str, Any]:
    options, source = record.options, record.provenance
    if options.batch is not None:
        raise InputError("a CSV row cannot say which batch was chosen; use --to json")
    if options.definitions != OURS:
        raise InputError("a CSV row cannot say how H, W and G are defined; use --to json")
    row: dict[str, Any] = {
        "name": guarded(record.name),
        "formula": str(record.formula),
        "complexity": record.formula.complexity,
        "table": figures and figures.table,
        "split_seed": figures and figures.split_seed,
    }
    for part in SPLIT_PARTS:
        low, high = (figures.rho_ci.get(part) if figures else None) or (None, None)
        row[f"rho_{part}"] = figures and figures.rho.get(part)
        row |= {f"rho_{part}_low": low, f"rho_{part}_high": high}
        row[f"rho_{part}_given_params"] = figures and figures.rho_given_params.get(part)
    return row | {
        "limit": "all" if options.limit is None else options.limit,
        "loss": options.loss,
        "seed": options.seed,
        "batch_seed": options.batch_seed,
        "engine": source.engine,
        "campaign": source.campaign,
        "id": source.id,
        "generation": source.generation,
    }


def _read(row: dict[Any, Any], where: str, stem: str) -> Exported:
    if None in row or None in row.values():
        raise InputError(f"{where} has more or fewer cells than the header")
    name = row.get("name") or (f"{stem}-{row['id']}" if row.get("id") else stem)
    name = check_text(unguarded(name), f"{where}: name")
    defaults = SketchOptions()
    limit = row.get("limit") or str(defaults.limit)
    options = SketchOptions(
        None if limit == "all" else _number(limit, f"{where}: limit"),
        row.get("loss") or defaults.loss,
        _number(row.get("seed") or "0", f"{where}: seed"),
        _number(row.get("batch_seed") or "0", f"{where}: batch_seed"),
    )
    return Exported(name, parse(unguarded(row["formula"])), Provenance("file"), options)


def _number(text: str, where: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 18):
        raise InputError(f"{where} is {text!a:.40}, expected a whole number")
    return int(text)


EXPORTER = Exporter(
    "csv", "a row for each formula and table", lambda found, _: write(found.entries)
)
