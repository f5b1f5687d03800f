"""A formula as a standalone Python module that needs only torch.

The module is assembled from `runtime`, `model_statistics`, the source of the primitives' bodies and
the formula. Names, labels and provenance are inserted as literals, never as code.
"""

from __future__ import annotations

import ast
import inspect
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from pprint import pformat

from lpzero.errors import InputError
from lpzero.export import trial
from lpzero.export.bodies import Sources
from lpzero.export.exporter import Exporter
from lpzero.export.json_form import to_value
from lpzero.export.record import Exported
from lpzero.version import VERSION
from primitives.expressions import Apply, Combine, Expression, Leaf, drop_dead, walk
from primitives.facts import are_aligned, facts
from primitives.properties import Gives, Kind
from primitives.registry import get_binary, get_unary
from primitives.statistics import STATISTICS

_WIDTH = 96
_OPENING, _CLOSING = ("score", "score_model"), ("networks", "self_test", "main")
# Copied whole; of `trial` only the networks. They need torch, so only their text is read.
_COPIED = ("lpzero.export.runtime", "lpzero.export.model_statistics")
_HEAD = '''"""A zero-cost proxy: {formula}

Scores an untrained network; larger is better. Needs only torch. `score` takes the statistics of
every block, `score_model` a model; `python FILE` runs the self-test. Docstrings explain how the
statistics are extracted and what the operations mean. Written by lpzero {engine}.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
'''


def write(exported: list[Exported]) -> str:
    """The source of the module; a module contains one formula."""
    if len(exported) != 1:
        raise InputError(f"a Python module contains one formula, but {len(exported)} were chosen")
    one = exported[0]
    body = _Body(one)
    needed = _needed([*_OPENING, *_CLOSING, *body.used])
    constants = [f"{name} = {value}" for name, value in body.sources.constants.items()]
    parts = [
        _HEAD.format(formula=one.formula, engine=VERSION),
        _constants(one, body.uses),
        *(needed.pop(name) for name in _OPENING),
        body.source,
        "\n".join(constants),
        *body.sources.functions.values(),
        *(text for name, text in needed.items() if name not in _CLOSING),
        *(needed[name] for name in _CLOSING),
        'if __name__ == "__main__":\n    sys.exit(main())',
    ]
    return "\n\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


class _Body:
    """`block_value` of a formula, and the operations it calls."""

    def __init__(self, exported: Exported) -> None:
        expression = drop_dead(exported.formula.expression)
        assert expression is not None, "an exported formula always has a live branch"
        self.sources = Sources()
        self.used = {"block_mean"}
        self._lines: list[str] = []
        self._names: dict[Expression, str] = {}
        used = {node.statistic for node in walk(expression) if isinstance(node, Leaf)}
        self.uses = tuple(name for name in STATISTICS if name in used)
        result = self._name(expression)
        where = [f"    # {name}: {STATISTICS[name].meaning}" for name in self.uses]
        self.source = "\n".join(
            [
                "def block_value(block: dict[str, list[CutMatrix]]) -> Tensor:",
                f'    """mean of {expression}"""',
                *where,
                *(f"    {name} = block[{name!r}]" for name in self.uses),
                *self._lines,
                f"    return block_mean({result})",
            ]
        )

    def _name(self, node: Expression) -> str:
        """The variable with the node's value, which is computed once."""
        if isinstance(node, Leaf):
            return node.statistic
        if node not in self._names:
            call = self._unary(node) if isinstance(node, Apply) else self._binary(node)
            self._names[node] = f"v{len(self._names) + 1}"
            self._lines.append(f"    {self._names[node]} = {call}")
        return self._names[node]

    def _unary(self, node: Apply) -> str:
        primitive = get_unary(node.operation)
        operand, body = self._name(node.operand), self.sources.add(primitive.name, primitive.body)
        if primitive.traits.along_axis:
            return self._call("along_axis", body, operand)
        if primitive.traits.gives is Gives.SCALAR:
            return self._call("reduced", body, operand, repr(primitive.traits.grows))
        return self._call("each", body, operand)

    def _binary(self, node: Combine) -> str:
        primitive, known = get_binary(node.operation), (facts(node.left), facts(node.right))
        left, right = self._name(node.left), self._name(node.right)
        aligned = are_aligned(*known)
        if not aligned:
            left, right = (self._call("one_scalar", side) for side in (left, right))
        is_of_matrices = aligned and known[0].kind is known[1].kind is Kind.MATRIX
        if primitive.contracts:
            if is_of_matrices:
                return self._call("matrix_product", left, right)
            return self._call("with_scalar", "torch.mul", left, right)
        body = self.sources.add(primitive.name, primitive.body)
        how = "of_equals" if is_of_matrices else "with_scalar"
        return self._call(how, body, left, right)

    def _call(self, function: str, *arguments: str) -> str:
        self.used.add(function)
        return f"{function}({', '.join(arguments)})"


def _constants(one: Exported, uses: tuple[str, ...]) -> str:
    value = to_value(one)
    told = {name: value[name] for name in ("name", "sketch", "batches", "provenance")}
    axis = 0 if one.softmax_axis == "first" else -1
    lines = {
        "FORMULA": str(one.formula),
        "REDUCTION": one.formula.reduction,
        "SIGN": one.formula.sign,
        "USES": uses,
        "SOURCES": {name: STATISTICS[name].source.value for name in uses},
        "GRADIENTS": tuple(name for name in uses if STATISTICS[name].is_gradient),
        "LIMIT": one.options.limit,
        "SOFTMAX_AXIS": axis,
        "LOSS": one.options.loss,
        "BATCH_SEED": one.options.batch_seed,
        "TRIAL_LIMIT": trial.LIMIT,
        "TRIAL_TENSORS": {name: trial.drawn_as(name) for name in uses},
        "TRIAL_SCORES": one.trial,
        "TOLERANCE": trial.TOLERANCE,
    }
    comments = {
        "REDUCTION": "over blocks",
        "USES": "the statistics in the formula",
        "SOURCES": "the tensors of a block that each one reads",
        "GRADIENTS": "those that are the loss's gradient at these tensors",
        "LIMIT": "elements kept of each tensor; None keeps all",
        "TRIAL_TENSORS": "which of the synthetic tensors each statistic reads",
    }
    text = [
        f"{name} = {shown!a}" + (f"  # {comments[name]}" if name in comments else "")
        for name, shown in lines.items()
    ]
    literal = pformat(_ascii(told), width=_WIDTH, sort_dicts=False)
    aliases = (
        "Block = dict[str, Sequence[Tensor]]\nLoss = Callable[[Any, Any], Tensor]\n"
        "Rows = list[list[float]]"
    )
    return "\n".join([*text, f"ABOUT = {literal}", "", aliases])


class _Text(str):
    """A text whose literal is ASCII: no invisible or right-to-left letters in source code."""

    def __repr__(self) -> str:
        return ascii(str(self))


def _ascii(value: object) -> object:
    if isinstance(value, str):
        return _Text(value)
    if isinstance(value, dict):
        return {_ascii(key): _ascii(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_ascii(inner) for inner in value]
    return value


def _needed(roots: list[str]) -> dict[str, str]:
    """The source of these parts of the runtime and of everything they use, by name."""
    found = _parts()
    todo = list(roots)
    for name in todo:
        todo += [n for n in sorted(found[name][1]) if n in found and n not in todo]
    return {name: found[name][0] for name in found if name in todo and name != "block_value"}


@lru_cache(maxsize=1)
def _parts() -> dict[str, tuple[str, set[str]]]:
    """Every function and class of the runtime: its source, and the names it uses."""
    found: dict[str, tuple[str, set[str]]] = {}
    for text in (*map(_source, _COPIED), inspect.getsource(trial.networks)):
        for node in ast.parse(text).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
                found[node.name] = ast.get_source_segment(text, node) or "", used
    return found


def _source(module: str) -> str:
    """The text of a module that is not imported."""
    spec = find_spec(module)
    assert spec is not None, "it is a module of this package"
    assert spec.origin is not None, "it has a file"
    return Path(spec.origin).read_text(encoding="utf-8")


EXPORTER = Exporter(
    "python",
    "one formula as a module that needs only torch",
    lambda found, _: write(found.entries),
)
