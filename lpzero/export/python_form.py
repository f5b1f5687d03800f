"""A formula as a standalone Python module that needs only torch.

The module is assembled from `runtime`, `model_statistics`, the source of the primitives' bodies and
the formula; beyond the paper's form, functions of `score_runtime` and `position_statistics` replace
those of the same name. Names, labels and provenance are inserted as literals, never as code.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from pprint import pformat
from typing import Any

from lpzero.errors import InputError
from lpzero.export import trial
from lpzero.export.bodies import Sources
from lpzero.export.exporter import Exporter
from lpzero.export.json_form import to_value
from lpzero.export.record import Exported, is_papers
from lpzero.statistics.definitions import OURS
from lpzero.version import VERSION
from primitives.block_sizes import SIZES
from primitives.expressions import Apply, Combine, Expression, Leaf, drop_dead
from primitives.facts import are_aligned, facts
from primitives.formula import Atom, Formula, Term, fold
from primitives.properties import Gives, Kind
from primitives.registry import get_binary, get_unary
from primitives.statistics import STATISTICS, StatisticSource

_WIDTH = 96
_OPENING, _CLOSING = ("score", "score_model"), ("networks", "self_test", "main")
# Copied whole; of `trial` only the networks. They need torch, so only their text is read.
_COPIED = ("lpzero.export.runtime", "lpzero.export.model_statistics")
_BEYOND = ("lpzero.export.score_runtime", "lpzero.export.position_statistics")
_COUNTED_ON = (("ffn", "A"), ("heads", "S"))  # a size, and the statistic it is counted on
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
    body = _PaperSource(one.formula) if is_papers(one.formula) else _ScoreSource(one.formula)
    needed = _needed([*_OPENING, *_CLOSING, *body.used], body)
    closing = [name for name in body.closing if name in needed]
    constants = [f"{name} = {value}" for name, value in body.sources.constants.items()]
    parts = [
        body.head.format(formula=one.formula, engine=VERSION),
        _constants(one, body),
        *(needed.pop(name) for name in _OPENING),
        *body.functions,
        "\n".join(constants),
        *body.sources.functions.values(),
        *(text for name, text in needed.items() if name not in closing),
        *(needed[name] for name in closing),
        'if __name__ == "__main__":\n    sys.exit(main())',
    ]
    return "\n\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


class _PaperSource:
    """The functions of a formula of the paper's form, and what they call."""

    head, closing, copied = _HEAD, _CLOSING, _COPIED
    own = frozenset({"block_value"})  # functions that the exporter writes

    def __init__(self, formula: Formula) -> None:
        self.sources = Sources()
        self.uses = _ordered(formula.statistics)
        self.read = self.uses
        body = _Body(formula.term, "block_value", self.sources)
        self.used, self.functions = body.used, [body.source]

    def constants(self, one: Exported) -> dict[str, object]:
        """Constants beside those of every module."""
        return {"REDUCTION": one.formula.term.reduction}


class _ScoreSource:
    """The functions of any other formula: its terms, and how they are combined."""

    head = _HEAD.replace("Callable, Sequence", "Callable, Mapping, Sequence")
    copied = (*_COPIED, *_BEYOND)
    closing = ("networks", "trial_ends", "trial_sizes", "trial_position", "self_test", "main")
    own = frozenset({"term_1", "terms", "combined"})

    def __init__(self, formula: Formula) -> None:
        self.sources = Sources()
        self.formula = formula
        self.read = _ordered(formula.statistics)
        self.uses = _ordered(
            n for t in formula.terms if t.positions.end is None for n in t.statistics
        )
        bodies = [
            _Body(term, f"term_{place}", self.sources)
            for place, term in enumerate(formula.terms, 1)
        ]
        self.used = {name for body in bodies for name in body.used}
        self.functions = [*(body.source for body in bodies), self._terms(), self._combined()]

    def constants(self, one: Exported) -> dict[str, object]:
        """Constants beside those of every module."""
        sizes = [n for t in self.formula.terms if t.positions.end is None for n in t.sizes]
        ends: dict[str, list[Term]] = {}
        for term in self.formula.terms:
            if term.positions.end is not None:
                ends.setdefault(term.positions.end, []).append(term)
        needed = [*self.uses, *(source for size, source in _COUNTED_ON if size in sizes)]
        return {
            "COLUMNS": self.formula.columns,
            "SIZES": tuple(name for name in SIZES if name in sizes),
            "END_USES": {
                end: _ordered(n for t in of for n in t.statistics) for end, of in ends.items()
            },
            "END_SIZES": {
                end: tuple(name for name in SIZES if any(name in t.sizes for t in of))
                for end, of in ends.items()
            },
            "TAPPED": tuple(
                n for n in _ordered(needed) if STATISTICS[n].source is StatisticSource.TAP
            ),
            "TRIAL_COLUMNS": tuple(trial.columns(self.formula.columns)),
        }

    def _terms(self) -> str:
        pairs = ", ".join(
            f"({term.reduction!r}, term_{place})"
            for place, term in enumerate(self.formula.terms, 1)
        )
        told = "The reduction of each term over positions, and its value at one position."
        return f'def terms() -> list[Term]:\n    """{told}"""\n    return [{pairs}]'

    def _combined(self) -> str:
        return "\n".join(
            [
                "def combined(terms: Sequence[float], columns: Mapping[str, float]) -> float:",
                '    """The score, without its sign, from the values of its terms and columns."""',
                f"    return {fold(self.formula, self._atom, self._applied, self._called)}",
            ]
        )

    def _atom(self, atom: Atom) -> str:
        if isinstance(atom, Term):
            return f"terms[{self.formula.terms.index(atom)}]"
        return f"columns[{atom.name!r}]"

    def _applied(self, operation: str, operand: str) -> str:
        return self._called(operation, [operand])

    def _called(self, operation: str, operands: list[str]) -> str:
        function = f"outer_{operation}"
        self.used.add(function)
        return f"{function}({', '.join(operands)})"


def _ordered(names: Iterable[str]) -> tuple[str, ...]:
    """The statistics in the order of their declarations, each once."""
    used = set(names)
    return tuple(name for name in STATISTICS if name in used)


class _Body:
    """The function of a term's value at one position, and the operations it calls."""

    def __init__(self, term: Term, name: str, sources: Sources) -> None:
        expression = drop_dead(term.expression)
        assert expression is not None, "an exported formula always has a live branch"
        self.sources = sources
        self.used = {"block_mean"}
        self._lines: list[str] = []
        self._names: dict[Expression, str] = {}
        leaves = (*_ordered(term.statistics), *(size for size in SIZES if size in term.sizes))
        meanings = {name: STATISTICS.get(name) or SIZES[name] for name in leaves}
        result = self._name(expression)
        self.source = "\n".join(
            [
                f"def {name}(block: dict[str, list[CutMatrix]]) -> Tensor:",
                f'    """mean of {expression}"""',
                *(f"    # {name}: {known.meaning}" for name, known in meanings.items()),
                *(f"    {name} = block[{name!r}]" for name in leaves),
                *self._lines,
                f"    return block_mean({result})",
            ]
        )

    def _name(self, node: Expression) -> str:
        """The variable with the node's value, which is computed once."""
        if isinstance(node, Leaf):
            return node.name
        if node not in self._names:
            call = self._unary(node) if isinstance(node, Apply) else self._binary(node)
            self._names[node] = f"v{len(self._names) + 1}"
            self._lines.append(f"    {self._names[node]} = {call}")
        return self._names[node]

    def _unary(self, node: Apply) -> str:
        primitive = get_unary(node.operation)
        operand, body = self._name(node.operand), self.sources.add(primitive.name, primitive.body)
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


def _constants(one: Exported, body: _PaperSource | _ScoreSource) -> str:
    if one.options.definitions != OURS:
        raise InputError("a module reads H, W and G as ours; export a released one with --to json")
    value = to_value(one)
    told = {name: value[name] for name in ("name", "sketch", "batches", "provenance")}
    lines = {
        "FORMULA": str(one.formula),
        **body.constants(one),
        "SIGN": one.formula.sign,
        "USES": body.uses,
        "SOURCES": {name: STATISTICS[name].source.value for name in body.read},
        "GRADIENTS": tuple(name for name in body.read if STATISTICS[name].is_gradient),
        "LIMIT": one.options.limit,
        "LOSS": one.options.loss,
        "BATCH_SEED": one.options.batch_seed,
        "TRIAL_LIMIT": trial.LIMIT,
        "TRIAL_TENSORS": {name: trial.drawn_as(name) for name in body.read},
        "TRIAL_SCORES": one.trial,
        "TOLERANCE": trial.TOLERANCE,
    }
    comments = {
        "REDUCTION": "over blocks",
        "COLUMNS": "numbers in the formula that no network gives",
        "SIZES": "the sizes of blocks in the formula",
        "END_USES": "the statistics that it reads at the ends",
        "END_SIZES": "the sizes of the ends",
        "TAPPED": "what is taken at the taps of a model's blocks",
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
    if isinstance(body, _ScoreSource):
        aliases += (
            "\nPosition = Mapping[str, Any]\n"
            'Term = tuple[str, Callable[["dict[str, list[CutMatrix]]"], Tensor]]'
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


def _needed(roots: list[str], body: _PaperSource | _ScoreSource) -> dict[str, str]:
    """The source of these parts of the runtime and of everything they use, by name."""
    found = _parts(body.copied)
    todo = list(roots)
    for name in todo:
        used = found[name][1] if name not in body.own else set()
        todo += [n for n in sorted(used) if n in found and n not in todo]
    return {name: found[name][0] for name in found if name in todo and name not in body.own}


@lru_cache(maxsize=2)
def _parts(copied: tuple[str, ...]) -> dict[str, tuple[str, set[str]]]:
    """Every function and class of the runtime: its source, and the names it uses."""
    found: dict[str, tuple[str, set[str]]] = {}
    synthetic = [inspect.getsource(trial.networks)]
    if copied != _COPIED:
        synthetic += [_renamed(trial.ends), _renamed(trial.sizes)]
    for text in (*map(_source, copied), *synthetic):
        for node in ast.parse(text).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                used = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
                found[node.name] = ast.get_source_segment(text, node) or "", used
    return found


def _renamed(function: Callable[[], Any]) -> str:
    """The source of a function of `trial`, called trial_NAME."""
    name = function.__name__
    return inspect.getsource(function).replace(f"def {name}(", f"def trial_{name}(", 1)


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
