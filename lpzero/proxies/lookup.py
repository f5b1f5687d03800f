"""Text to proxy: a registered name, a combination, a formula, a file or a directory with one.

snip · rank-mean(ntkt, sept) · rank-sum(0.3 ntkt, 0.7 sept) · rank-log(ntkt, sept) ·
sum(mul(G, W)) · best.json · runs/a

An ensemble is the mean of the ranks of several formulas, as one proxy: formulas that rank about
equally well err on different architectures, so the mean of their ranks is steadier than any of
them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lpzero.errors import InputError
from lpzero.proxies.base import Proxy
from lpzero.proxies.combined import Combined, rank_log, rank_mean, rank_sum
from lpzero.proxies.formula import FormulaProxy
from lpzero.proxies.predictor import PredictorProxy
from lpzero.proxies.registry import get, known
from lpzero.scores.columns import select as select_columns
from lpzero.sketches.sketch import SketchOptions
from primitives.formula import Column, Formula
from primitives.parser import parse

if TYPE_CHECKING:  # every export form is imported with it, and most proxies are not in files
    from lpzero.export import Exported, Selection
    from lpzero.export.record import Formulas
    from spaces.tables import ColumnTable

_COMBINATION = re.compile(r"\s*(rank-mean|rank-sum|rank-log)\s*\((.*)\)\s*", re.DOTALL)
_COMBINE = {"rank-mean": rank_mean, "rank-sum": rank_sum, "rank-log": rank_log}
_WEIGHTED = re.compile(r"\s*([0-9]*\.?[0-9]+)\s+(\S.*?)\s*", re.DOTALL)


def find(text: str) -> Proxy:
    """The proxy that the text names."""
    if "(" not in text and text in known():  # a formula needs none of the names
        return get(text)
    combination = _COMBINATION.fullmatch(text)
    if combination:
        return _combined(combination[1], combination[2])
    # `os.path.exists` is False, and raises nothing, for a text that cannot be a path.
    if text.endswith((".json", ".csv")) or os.path.exists(text):
        return from_file(text)
    if "(" in text:
        return from_formula(text)
    if os.sep in text:
        raise InputError(f"there is no file or directory {text}")
    return get(text)


def from_file(path: str | Path) -> FormulaProxy | Combined | PredictorProxy:
    """The formula, ensemble or predictor in a file, or the formula that a run's directory chose."""
    from lpzero.export import select

    selection = select(str(path))
    if not os.path.isdir(path) and selection.predictor is not None:
        return predictor_proxy(selection)
    members = [_from_record(record) for record in selection.entries]
    if selection.ensemble is not None:
        return ensemble(selection.ensemble, members)
    (member,) = members
    return member


def predictor_proxy(selection: Selection) -> PredictorProxy:
    """The predictor of the selected formula."""
    found = None if selection.predictor is None else selection.predictor()
    if found is None:
        raise InputError("there is no predictor: campaigns with --choose nested have one")
    [record] = selection.entries
    tables = tuple((figure.table, figure.split_seed) for figure in record.provenance.figures)
    name = f"{record.name}-predictor"
    return PredictorProxy(name, found.predictor, found.space, found.options, found.n_seeds, tables)


def column_proxy(text: str, table: ColumnTable) -> FormulaProxy:
    """The column, the formula of columns, or the one in a file or a run's directory."""
    names = select_columns(table.columns, list(table.columns), table.name)
    if text in names or text in table.columns:
        (name,) = select_columns(table.columns, [text], table.name)
        return FormulaProxy(name, Formula.of_base(Column(name)))
    if "(" not in text and not text.startswith("-") and not os.path.exists(text):
        select_columns(table.columns, [text], table.name)  # says which columns there are
    proxy = from_formula(text) if not os.path.exists(text) else from_file(text)
    if not isinstance(proxy, FormulaProxy) or proxy.formula.terms:
        raise InputError(
            f"{proxy.name} needs networks, and table {table.name} has none; give a column or a"
            " formula of columns"
        )
    return proxy


def from_formula(text: str) -> FormulaProxy:
    """The formula as a proxy that is called by its text."""
    formula = parse(text)
    return FormulaProxy(str(formula), formula)


def named_formulas(name: str) -> Formulas:
    """The formula of the proxy of that name, or the members of the ensemble."""
    from lpzero.export.record import Formulas

    proxy = get(name)
    if isinstance(proxy, FormulaProxy):
        return Formulas([_to_record(proxy)])
    members = members_of(proxy)
    if members is None:
        raise InputError(f"proxy {name} is not a formula; only formulas can be exported")
    return Formulas([_to_record(member) for member in members], name)


def _from_record(record: Exported) -> FormulaProxy:
    options = None if record.options == SketchOptions() else record.options
    tables = tuple((figure.table, figure.split_seed) for figure in record.provenance.figures)
    return FormulaProxy(record.name, record.formula, "", options, tables)


def _to_record(proxy: FormulaProxy) -> Exported:
    from lpzero.export import Exported, Provenance

    options = proxy.options or SketchOptions()
    return Exported(proxy.name, proxy.formula, Provenance("proxy"), options)


def _combined(how: str, inside: str) -> Combined:
    parts, weights = [], []
    for piece in _split(inside):
        weighted = _WEIGHTED.fullmatch(piece)
        weights.append(float(weighted[1]) if weighted else 1.0)
        parts.append(find((weighted[2] if weighted else piece).strip()))
    return _COMBINE[how](*parts, weights=weights)


def _split(text: str) -> Iterator[str]:
    """The pieces between commas that are outside brackets."""
    depth, piece = 0, ""
    for character in text:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and depth == 0:
            yield piece
            piece = ""
        else:
            piece += character
    if piece.strip():
        yield piece


def ensemble(name: str, members: Sequence[FormulaProxy], paper: str = "") -> Combined:
    """The rank mean of the formulas, each counting equally."""
    if not members:
        raise InputError(f"the ensemble {name} has no members; give at least one formula")
    return Combined(name, tuple(members), "rank-mean", paper=paper)


def members_of(proxy: object) -> tuple[FormulaProxy, ...] | None:
    """The formulas whose plain rank mean the proxy is; None if it is anything else."""
    if not isinstance(proxy, Combined) or proxy.how != "rank-mean":
        return None
    members = tuple(part for part in proxy.parts if isinstance(part, FormulaProxy))
    is_plain = len(set(proxy.weights)) <= 1 and len(members) == len(proxy.parts)
    return members if is_plain else None
