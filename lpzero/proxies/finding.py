"""Text to proxy: a registered name, a combination, a file with a formula, or a formula.

snip · rank-mean(ntkt, sept) · rank-sum(0.3 ntkt, 0.7 sept) · best.json · sum(mul(G, W))
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from lpzero.errors import InputError
from lpzero.proxies.combining import Combined, rank_mean, rank_sum
from lpzero.proxies.formulas import FormulaProxy
from lpzero.proxies.registry import Proxy, get, names
from primitives.formula import Formula
from primitives.parsing import parse

_COMBINATION = re.compile(r"\s*(rank-mean|rank-sum)\s*\((.*)\)\s*", re.DOTALL)
_WEIGHTED = re.compile(r"\s*([0-9]*\.?[0-9]+)\s+(\S.*?)\s*", re.DOTALL)


def find(text: str) -> Proxy:
    """The proxy that the text means."""
    if text in names():
        return get(text)
    combination = _COMBINATION.fullmatch(text)
    if combination:
        return _combined(combination[1], combination[2])
    path = Path(text)
    if path.suffix == ".json" or path.is_file():
        return from_file(path)
    if "(" in text:
        formula = parse(text)
        return FormulaProxy(str(formula), formula)
    return get(text)


def from_file(path: Path) -> FormulaProxy:
    """The formula in a JSON file: an object with `formula`, as exports write it."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"there is no file {path}; give a proxy, a formula or a file") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is not a JSON file: {error}") from None
    if not isinstance(value, dict) or not isinstance(value.get("formula"), str):
        raise InputError(f"{path} holds no formula; expected an object with 'formula'")
    formula = Formula.from_json({"schema": value.get("schema"), "formula": value["formula"]})
    return FormulaProxy(str(value.get("name") or path.stem), formula)


def _combined(how: str, inside: str) -> Combined:
    parts, weights = [], []
    for piece in _split(inside):
        weighted = _WEIGHTED.fullmatch(piece)
        weights.append(float(weighted[1]) if weighted else 1.0)
        parts.append(find((weighted[2] if weighted else piece).strip()))
    combine = rank_mean if how == "rank-mean" else rank_sum
    return combine(*parts, weights=weights)


def _split(text: str) -> Iterator[str]:
    """The pieces between commas that are in no bracket."""
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
