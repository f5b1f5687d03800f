"""Formulas as JSON, and back: every field is checked and every score recomputed.

One formula is an object with `format` "lpzero-formula"; several are the list `formulas` of an
object with `format` "lpzero-formulas"; an ensemble has `format` "lpzero-ensemble", its `name`, how
it combines its members, and the list `members`; a predictor has `format` "lpzero-predictor", its
`space`, its whole `formula`, and what it was fitted to. Unknown fields are rejected. In a file
without `format` (a plain file) `formula` and, if present, `name` are read and everything else is
ignored.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lpzero.errors import InputError
from lpzero.export import synthetic_networks
from lpzero.export.fields import Fields, check_number, check_text, read_json, read_text
from lpzero.export.record import Batch, Exported, Exporter, Figures, Formulas, Provenance
from lpzero.judgement.table import SPLIT_PARTS
from lpzero.options import Switch, option
from lpzero.sketches.sketch import SketchOptions
from lpzero.statistics import DEFINITIONS, LOSSES, OURS
from primitives.formula import Formula
from primitives.parser import parse
from primitives.reductions import POSITION_REDUCTIONS
from spaces.minibatch import PATHS, Minibatch

if TYPE_CHECKING:
    from lpzero.export.source import Selection

ONE, SEVERAL, ENSEMBLE = "lpzero-formula", "lpzero-formulas", "lpzero-ensemble"
PREDICTOR = "lpzero-predictor"
SCHEMA = 1
_PLAIN_SCHEMA = 1
_MAX_FORMULAS = 1000
_MAX_BYTES = 8_000_000  # a predictor of 2,000 labelled rows
_COMBINED_BY = "rank-mean"
_EACH = {"n": None, "rho": 1.0, "rho_ci": 1.0, "rho_given_params": 1.0}


def write(exported: list[Exported], ensemble: str | None = None) -> str:
    """The text of a JSON file; with a name, of the ensemble of the formulas."""
    values = [to_value(record) for record in exported]
    if ensemble is not None:
        whole = _ensemble_value(ensemble, values)
    elif len(values) == 1:
        whole = values[0]
    else:
        whole = {"format": SEVERAL, "schema": SCHEMA, "formulas": values}
    return json.dumps(whole, indent=1, allow_nan=False, ensure_ascii=True) + "\n"


def _ensemble_value(name: str, members: list[dict[str, Any]]) -> dict[str, Any]:
    value = {"format": ENSEMBLE, "schema": SCHEMA, "name": name, "combine": _COMBINED_BY}
    value |= {"members": members}
    return {**value, "sha256": _digest(value)}


def _write_selection(selection: Selection, options: JsonOptions) -> str:
    if not options.predictor:
        return write(selection.entries, selection.ensemble)
    value = predictor_value(selection)
    return json.dumps(value, allow_nan=False, ensure_ascii=True) + "\n"


def predictor_value(selection: Selection) -> dict[str, Any]:
    """The predictor of the only selected formula as JSON values, with their digest."""
    predictor = None if selection.predictor is None else selection.predictor()
    if predictor is None:
        raise InputError("there is no predictor: campaigns with --choose nested have one")
    entries = selection.entries
    is_same = len(entries) == 1 and entries[0].formula == predictor.predictor.formula
    if not is_same or selection.ensemble is not None or entries[0].options != predictor.options:
        raise InputError("a predictor is of the winner as it was found: leave the other choices")
    value = {
        "format": PREDICTOR,
        "schema": SCHEMA,
        "space": predictor.space,
        "formula": to_value(entries[0]),
        "n_seeds": predictor.n_seeds,
        **predictor.predictor.to_json(),
    }
    return {**value, "sha256": _digest(value)}


def to_value(record: Exported) -> dict[str, Any]:
    """The formula as JSON values, with their digest."""
    value: dict[str, Any] = {
        "format": ONE,
        "schema": SCHEMA,
        "name": record.name,
        "formula": str(record.formula),
        "reduction": _reduction(record.formula),
        "sign": record.formula.sign,
        "sketch": _sketch(record.options),
        "batches": [asdict(batch) for batch in record.batches],
        "provenance": asdict(record.provenance),
        "trial": {"limit": synthetic_networks.LIMIT, "scores": list(record.trial)},
    }
    value = json.loads(json.dumps(value, allow_nan=False))
    return {**value, "sha256": _digest(value)}


def _reduction(formula: Formula) -> str | None:
    """The reduction of a single term; None where each term has its own."""
    return formula.term.reduction if formula.is_term else None


def load(path: str | Path) -> Formulas:
    """The formulas of a file, verified; a plain file gives one with default options."""
    place = Path(path)
    value = read_json(read_text(place, _MAX_BYTES), str(place))
    if not isinstance(value, dict):
        raise InputError(f"{place} contains no formula; expected an object with 'formula'")
    if "format" not in value:
        return Formulas([_plain(value, place)])
    return from_value(value, str(place))


def from_value(value: dict[str, Any], where: str) -> Formulas:
    """The formulas in an object with `format`."""
    kind = value["format"]
    if kind not in (ONE, SEVERAL, ENSEMBLE, PREDICTOR):
        formats = f"{ONE!r}, {SEVERAL!r}, {ENSEMBLE!r} or {PREDICTOR!r}"
        raise InputError(f"{where}: format is {kind!a:.60}, expected {formats}")
    schema = value.get("schema")
    if schema != SCHEMA or isinstance(schema, bool):
        raise InputError(
            f"{where} has schema {schema!a:.60}, this version reads {SCHEMA}; update lpzero"
        )
    if kind == ONE:
        return Formulas([_exported(value, where)])
    fields = Fields(value, where)
    fields.take("format"), fields.take("schema")
    if kind == PREDICTOR:
        return _predictor(value, fields)
    name = None
    if kind == ENSEMBLE:
        _check_digest(value, fields)
        name = fields.text("name")
        fields.choice("combine", [_COMBINED_BY])
    items = fields.items("formulas" if kind == SEVERAL else "members")
    fields.done()
    if not 1 <= len(items) <= _MAX_FORMULAS:
        raise InputError(f"{where} contains {len(items)} formulas, expected 1 to {_MAX_FORMULAS}")
    for index, item in enumerate(items):
        if not isinstance(item, dict) or item.get("format") != ONE:
            raise InputError(f"{where}: formula {index + 1} is not an object of format {ONE!r}")
        if item.get("schema") != SCHEMA or isinstance(item["schema"], bool):
            raise InputError(f"{where}: formula {index + 1} has another schema than {SCHEMA}")
    entries = [_exported(item, f"{where}: formula {i + 1}") for i, item in enumerate(items)]
    return Formulas(entries, name)


def _predictor(value: dict[str, Any], fields: Fields) -> Formulas:
    from lpzero.export import predictor_fields  # it needs scipy, which a help text does not

    _check_digest(value, fields)
    inner = fields.take("formula")
    if not isinstance(inner, dict) or inner.get("format") != ONE:
        raise InputError(f"{fields.where}: formula is not an object of format {ONE!r}")
    if inner.get("schema") != SCHEMA or isinstance(inner["schema"], bool):
        raise InputError(f"{fields.where}: formula has another schema than {SCHEMA}")
    record = _exported(inner, f"{fields.where}: formula")
    predictor = predictor_fields.read(fields, record.formula, fields.text("space"), record.options)
    return Formulas([record], predictor=predictor)


def _plain(value: dict[str, Any], place: Path) -> Exported:
    if not isinstance(value.get("formula"), str):
        raise InputError(f"{place} contains no formula; expected an object with 'formula'")
    schema = value.get("schema", _PLAIN_SCHEMA)
    if schema != _PLAIN_SCHEMA:
        raise InputError(
            f"{place} has formula schema {schema!a:.60}, this version reads {_PLAIN_SCHEMA};"
            " update lpzero"
        )
    formula = parse(value["formula"])
    name = check_text(value.get("name") or place.stem, f"{place}: name")
    return Exported(name, formula, Provenance("file"))


def _exported(value: dict[str, Any], where: str) -> Exported:
    fields = Fields(value, where)
    fields.take("format"), fields.take("schema")
    _check_digest(value, fields)
    formula = _formula(fields)
    if fields.has("softmax_axis"):  # a file of version 0.2.0 or before
        fields.choice("softmax_axis", ["first"])
    tried = fields.inner("trial")
    record = Exported(
        fields.text("name"),
        formula,
        _provenance(fields.inner("provenance")),
        options(fields.inner("sketch")),
        tuple(_batch(item, where) for item in fields.items("batches")),
    )
    limit, scores = tried.integer("limit"), tried.items("scores")
    tried.done()
    fields.done()
    theirs = [None if s is None else check_number(s, f"{where}: trial") for s in scores]
    if limit != synthetic_networks.LIMIT or not synthetic_networks.agree(record.trial, theirs):
        raise InputError(
            f"{where}: this version computes other scores than lpzero {record.provenance.engine}"
            " did when the file was written; use that version, or export the formula again"
        )
    return record


def _check_digest(value: dict[str, Any], fields: Fields) -> None:
    """Raise InputError unless the fields are those that the digest was taken of."""
    claimed = fields.take("sha256")
    if claimed != _digest({k: v for k, v in value.items() if k != "sha256"}):
        raise InputError(
            f"{fields.where} was changed after it was written: its digest does not match"
        )


def _formula(fields: Fields) -> Formula:
    text = fields.take("formula")
    formula = parse(text)
    # Version 0.2.0 kept a user's spelling of products, such as mul(a, a), which is square(a) now.
    if formula.is_term and str(formula) != text:
        raise InputError(f"{fields.where}: the formula is not in canonical spelling: {formula}")
    if formula.is_term:
        reduction: Any = fields.choice("reduction", list(POSITION_REDUCTIONS))
    else:
        reduction = fields.take("reduction")
    if (reduction, fields.integer("sign")) != (_reduction(formula), formula.sign):
        raise InputError(f"{fields.where}: reduction and sign are not those of {formula}")
    return formula


def options(fields: Fields) -> SketchOptions:
    """The sketch options in the fields."""
    sketch_options = SketchOptions(
        fields.optional_integer("limit", 1),
        fields.choice("loss", LOSSES),
        fields.integer("seed", 0),
        fields.integer("batch_seed", 0),
        _minibatch(fields.inner("batch")) if fields.has("batch") else None,
        fields.choice("definitions", DEFINITIONS) if fields.has("definitions") else OURS,
    )
    fields.done()
    return sketch_options


def _sketch(options: SketchOptions) -> dict[str, Any]:
    """The options as JSON values, without the paths of files: their digests name them."""
    values = options.to_json()
    for path in PATHS:
        values.get("batch", {}).pop(path, None)
    return values


def _minibatch(fields: Fields) -> Minibatch:
    sizes = {name: fields.integer(name, 2) for name in ("inputs", "length") if fields.has(name)}
    texts = ("corpus", "tokenizer", *PATHS)
    named = {name: fields.text(name) for name in texts if fields.has(name)}
    fields.done()
    return Minibatch.from_json({**sizes, **named})


def _batch(value: Any, where: str) -> Batch:
    fields = Fields(value, f"{where}: batches")
    space, version = fields.text("space"), fields.integer("version", 0)
    shape = fields.items("shape")
    if len(shape) > 8 or not all(type(size) is int and 0 < size < 1 << 31 for size in shape):
        raise InputError(f"{fields.where}: shape must be a short list of sizes")
    batch = Batch(space, version, tuple(shape), fields.text("inputs"))
    fields.done()
    return batch


def _provenance(fields: Fields) -> Provenance:
    all_figures = tuple(
        figures(Fields(item, f"{fields.where}: figures")) for item in fields.items("figures")
    )
    provenance = Provenance(
        fields.text("source"),
        fields.text("engine"),
        fields.optional_text("campaign"),
        fields.optional_text("method"),
        fields.optional_integer("seed"),
        fields.optional_text("chosen_on"),
        fields.optional_integer("id", 0),
        fields.optional_integer("generation", 0),
        all_figures,
    )
    fields.done()
    return provenance


def figures(fields: Fields) -> Figures:
    """The figures in the fields."""
    texts = [fields.text(name) for name in ("table", "space", "target", "digest")]
    seed = fields.optional_integer("split_seed")
    numbers = {name: _by_part(fields, name) for name in _EACH}
    fields.done()

    table, space, target, digest = texts
    n, rho, rho_ci, given = numbers.values()
    return Figures(table, space, target, digest, seed, n, rho, rho_ci, given)


def _by_part(fields: Fields, name: str) -> dict[str, Any]:
    """Part of the table -> number, or pair of numbers for an interval."""
    where = f"{fields.where}: {name}"
    by_part = fields.mapping(name)
    for part, value in by_part.items():
        if part not in SPLIT_PARTS:
            raise InputError(f"{where}: {part!a:.40} is not one of {', '.join(SPLIT_PARTS)}")
        pair = value if name == "rho_ci" else [value]
        if not isinstance(pair, list) or len(pair) != (2 if name == "rho_ci" else 1):
            raise InputError(f"{where}: an interval must be a list of two numbers")
        for number in pair:
            check_number(number, where, _EACH[name] or 1e9)
    if name == "n":
        return {part: int(value) for part, value in by_part.items()}
    if name == "rho_ci":
        return {part: (float(low), float(high)) for part, (low, high) in by_part.items()}
    return {part: float(value) for part, value in by_part.items()}


def _digest(value: dict[str, Any]) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class JsonOptions:
    """What only JSON can hold."""

    predictor: bool = option(
        False, "Export the predictor of a campaign, with its formula, as one proxy.", Switch()
    )


EXPORTER = Exporter(
    "json",
    "one formula, several, an ensemble or a predictor, with their options, results and provenance",
    _write_selection,
    JsonOptions,
)
