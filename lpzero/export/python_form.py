"""A formula as a standalone Python module that needs only torch.

The module is assembled from `runtime`, `model_statistics`, the source of the bodies of primitives
and outer operations, and the formula: one path for any number of terms. Only what the formula reads
is copied. Names, labels and provenance are inserted as literals, never as code.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib.util import find_spec
from pathlib import Path
from pprint import pformat
from typing import Any, NamedTuple

from lpzero.errors import InputError
from lpzero.export import synthetic_networks
from lpzero.export.json_form import to_value
from lpzero.export.primitive_source import Sources
from lpzero.export.record import Exported, Exporter
from lpzero.statistics import OURS
from lpzero.version import VERSION
from primitives.expressions import Apply, Combine, Expression, Leaf, drop_dead
from primitives.facts import Meeting, facts, meeting, shapes_may_differ
from primitives.formula import AtomOrConstant, Constant, Formula, Term, fold
from primitives.outer import get_outer
from primitives.properties import Gives
from primitives.registry import get_binary, get_unary
from primitives.statistics import SIZES, STATISTICS, StatisticSource
from primitives.tensors import have_same_shape, right_factor

_WIDTH = 96
# They need torch, so only their text is read.
_COPIED = ("lpzero.export.runtime", "lpzero.export.model_statistics")
_GENERATED = ("reads_sum", "term_1", "formula_value")  # written for each formula
_FIRST, _LAST = ("score", "score_model"), ("self_test", "synthetic", "main")
_BRACKET = re.compile(r"\(\n((?: +[^\n()]*,\n)+) *\)")  # one argument a line
_MARK = re.compile(r"  # with((?: (?:ends|sizes|columns|inputs|taps|gradients))+)$")
_SYMBOLS = {"mul": " * ", "add": " + ", "sub": " - "}
_COUNTED_ON = {"ffn": "A", "heads": "S"}  # a size, and the statistic it is counted on
_HEAD = '''"""A zero-cost proxy: {formula}

Scores an untrained network; larger is better. Needs only torch. `score` takes the statistics of
every block, `score_model` a model; `python FILE` runs the self-test. Docstrings explain how the
statistics are extracted and what the operations mean. Written by lpzero {engine}.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
'''
_ALIASES = {
    "Rows": "list[list[float]]",
    "Position": "Mapping[str, Any]",
    "Loss": "Callable[[Any, Any], Tensor]",
    "Matrices": 'dict[str, list["Matrix"]]',
    "Value": "Callable[[Matrices], Tensor]",
}
_COMMENTS = {
    "USES": "the statistics in the formula, by where they are read",
    "SIZES": "the sizes in the formula, by where they are read",
    "ENDS": "the ends that the formula reads",
    "COLUMNS": "numbers in the formula that no network gives",
    "SOURCES": "the tensors that each statistic reads",
    "TAPPED": "what is taken at the taps of a model's blocks",
    "GRADIENTS": "statistics that are the loss's gradient at these tensors",
    "LIMIT": "elements kept of each tensor; None keeps all",
    "TRIAL_TENSORS": "which of the synthetic tensors each statistic reads",
}
_ALWAYS = ("FORMULA", "SIGN", "USES", "LIMIT")  # documented, whether the code needs them or not


def write(exported: list[Exported]) -> str:
    """The source of the module; a module contains one formula."""
    if len(exported) != 1:
        raise InputError(f"a Python module contains one formula, but {len(exported)} were chosen")
    record = exported[0]
    if record.options.definitions != OURS:
        raise InputError("a module reads H, W and G as ours; export a released one with --to json")
    source = _FormulaSource(record.formula)
    copied = _copied([*_FIRST, *_LAST, *source.calls], source.reads.features)
    texts = {name: definition.text for name, definition in copied.items()}
    own = [*source.functions, *source.sources.functions.values()]
    constants = "\n".join(f"{name} = {value}" for name, value in source.sources.constants.items())
    code = "\n\n\n".join(
        text.strip()
        for text in (
            *(texts[name] for name in _FIRST),
            *source.functions,
            constants,
            *source.sources.functions.values(),
            *(text for name, text in texts.items() if name not in (*_FIRST, *_LAST)),
            *(texts[name] for name in _LAST),
            'if __name__ == "__main__":\n    sys.exit(main())',
        )
        if text
    )
    used = _names_in(ast.parse("\n".join(own))).union(*(of.names for of in copied.values()))
    head = _HEAD.format(formula=record.formula, engine=VERSION)
    return f"{head}\n{_constants(record, source.reads, used)}\n\n\n{code}\n"


@dataclass(frozen=True)
class _Reads:
    """What a formula reads, and where."""

    formula: Formula

    @cached_property
    def by_position(self) -> dict[str, list[Term]]:
        """The terms at the blocks and at each end that the formula reads."""
        terms: dict[str, list[Term]] = {"blocks": []}
        for term in self.formula.terms:
            terms.setdefault(term.positions.end or "blocks", []).append(term)
        return terms

    @property
    def statistics(self) -> dict[str, tuple[str, ...]]:
        """By position the statistics, in the order of their declarations."""
        return {
            where: _ordered(STATISTICS, (name for term in terms for name in term.statistics))
            for where, terms in self.by_position.items()
        }

    @property
    def sizes(self) -> dict[str, tuple[str, ...]]:
        """By position the sizes, in the order of their declarations."""
        return {
            where: _ordered(SIZES, (name for term in terms for name in term.sizes))
            for where, terms in self.by_position.items()
        }

    @property
    def ends(self) -> tuple[str, ...]:
        return tuple(where for where in self.by_position if where != "blocks")

    @property
    def tapped(self) -> tuple[str, ...]:
        """The statistics at taps that the formula, or a size of it, needs."""
        counted = [_COUNTED_ON[name] for name in self.sizes["blocks"] if name in _COUNTED_ON]
        needed = _ordered(STATISTICS, (*self.statistics["blocks"], *counted))
        return tuple(n for n in needed if STATISTICS[n].source is StatisticSource.TAP)

    @property
    def features(self) -> frozenset[str]:
        """The words after `# with` whose lines are copied."""
        names = self.formula.statistics
        sizes = bool(self.formula.sizes)
        gradients = any(STATISTICS[name].is_gradient for name in names)
        reads_input = any(STATISTICS[name].source is StatisticSource.INPUT for name in names)
        holds = {
            "ends": bool(self.ends),
            "sizes": sizes,
            "columns": bool(self.formula.columns),
            "taps": bool(self.tapped) or sizes,
            "inputs": gradients or reads_input or sizes or bool(self.ends),
            "gradients": gradients,
        }
        return frozenset(word for word, is_read in holds.items() if is_read)


def _ordered(declared: Iterable[str], names: Iterable[str]) -> tuple[str, ...]:
    """The names in the order of their declarations, each once."""
    used = set(names)
    return tuple(name for name in declared if name in used)


class _FormulaSource:
    """The functions of a formula: the value of each term at a position, and how they combine."""

    def __init__(self, formula: Formula) -> None:
        self.formula, self.reads, self.sources = formula, _Reads(formula), Sources()
        self.calls: set[str] = set()  # functions of the runtime
        self.functions = [
            _TermSource(term, f"term_{place}", self.sources, self.calls).text
            for place, term in enumerate(formula.terms, 1)
        ]
        self.functions.append(self._formula_value())

    def _formula_value(self) -> str:
        columns = ", columns: Mapping[str, float]" if self.formula.columns else ""
        lines = [
            f"def formula_value(read: dict[str, list[Matrices]]{columns}) -> Tensor:",
            '    """The formula without its sign."""',
        ]
        for place, term in enumerate(self.formula.terms, 1):
            where = term.positions.end or "blocks"
            reads = self.sources.add(f"reads_{term.reduction}", term.positions.body)
            call = self._call("over_positions", reads, f"term_{place}", f"read[{where!r}]")
            lines.append(f"    t{place} = {call}")
        value = fold(self.formula, self._atom, self._outer, self._join)
        return "\n".join([*lines, f"    return {value}"])

    def _atom(self, atom: AtomOrConstant) -> str:
        if isinstance(atom, Term):
            return f"t{self.formula.terms.index(atom) + 1}"
        if isinstance(atom, Constant):
            return self._call("number", repr(atom.value))
        return self._call("number", f"columns[{atom.name!r}]")

    def _outer(self, operation: str, operand: str) -> str:
        function = self.sources.add(f"outer_{operation}", get_outer(operation).body)
        return self._call("finite", f"{function}({operand})")

    def _join(self, operation: str, operands: list[str]) -> str:
        return self._call("finite", _SYMBOLS[operation].join(operands))

    def _call(self, function: str, *arguments: str) -> str:
        self.calls.add(function)
        return f"{function}({', '.join(arguments)})"


class _TermSource:
    """The function of a term's value at one position; adds the operations it calls."""

    def __init__(self, term: Term, name: str, sources: Sources, calls: set[str]) -> None:
        expression = drop_dead(term.expression)
        assert expression is not None, "an exported formula always has a live branch"
        self.sources, self.calls = sources, calls
        self._lines: list[str] = []
        self._names: dict[Expression, str] = {}
        leaves = (*_ordered(STATISTICS, term.statistics), *_ordered(SIZES, term.sizes))
        meanings = {leaf: (STATISTICS.get(leaf) or SIZES[leaf]).meaning for leaf in leaves}
        result = self._call("block_mean", self._name(expression))
        self.text = "\n".join(
            [
                f"def {name}(block: Matrices) -> Tensor:",
                f'    """mean of {expression}"""',
                *(f"    {leaf} = block[{leaf!r}]  # {meanings[leaf]}" for leaf in leaves),
                *self._lines,
                f"    return {result}",
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
        operand = self._name(node.operand)
        body = self.sources.add(f"op_{primitive.name}", primitive.body)
        if primitive.traits.gives is Gives.SCALAR:
            return self._call("reduced", body, operand, repr(primitive.traits.grows))
        return self._call("each", body, operand)

    def _binary(self, node: Combine) -> str:
        primitive = get_binary(node.operation)
        left, right = self._name(node.left), self._name(node.right)
        how = meeting(facts(node.left), facts(node.right), primitive)
        if how is Meeting.MEANS:
            left, right = (self._call("one_scalar", side) for side in (left, right))
        if how is Meeting.PRODUCT:
            return self._call("matrix_product", left, right)
        if primitive.contracts:
            return self._call("pairwise", "torch.mul", left, right)
        body = self.sources.add(f"op_{primitive.name}", primitive.body)
        is_fitted = how is Meeting.ELEMENTS and shapes_may_differ(node)
        return self._call("of_matrices" if is_fitted else "pairwise", body, left, right)

    def _call(self, function: str, *arguments: str) -> str:
        self.calls.add(function)
        return f"{function}({', '.join(arguments)})"


def _constants(exported: Exported, reads: _Reads, used: set[str]) -> str:
    """The constants and aliases that are used, and what the file says about the formula."""
    names = _ordered(STATISTICS, exported.formula.statistics)
    values = {
        "FORMULA": str(exported.formula),
        "SIGN": exported.formula.sign,
        "USES": reads.statistics,
        "SIZES": reads.sizes,
        "ENDS": reads.ends,
        "COLUMNS": exported.formula.columns,
        "SOURCES": {name: STATISTICS[name].source.value for name in names},
        "TAPPED": reads.tapped,
        "GRADIENTS": tuple(name for name in names if STATISTICS[name].is_gradient),
        "LIMIT": exported.options.limit,
        "LOSS": exported.options.loss,
        "BATCH_SEED": exported.options.batch_seed,
        "TRIAL_LIMIT": synthetic_networks.LIMIT,
        "TRIAL_TENSORS": {name: synthetic_networks.stand_in(name) for name in names},
        "TRIAL_COLUMNS": tuple(synthetic_networks.columns(exported.formula.columns)),
        "TRIAL_SCORES": exported.trial,
        "TOLERANCE": synthetic_networks.TOLERANCE,
    }
    lines = [
        f"{name} = {value!a}" + (f"  # {_COMMENTS[name]}" if name in _COMMENTS else "")
        for name, value in values.items()
        if name in used.union(_ALWAYS)
    ]
    record = to_value(exported)
    told = {name: record[name] for name in ("name", "sketch", "batches", "provenance")}
    literal = pformat(_ascii(told), width=_WIDTH, sort_dicts=False)
    aliases = [f"{name} = {type_}" for name, type_ in _ALIASES.items() if name in used]
    return "\n".join([*lines, f"ABOUT = {literal}", "", *aliases])


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


class _Definition(NamedTuple):
    """The source of a function or class of the runtime, and the names that it uses."""

    text: str
    names: set[str]


def _copied(roots: Iterable[str], features: frozenset[str]) -> dict[str, _Definition]:
    """These definitions of the runtime and everything they use, by name."""
    definitions = _definitions(features)
    needed = list(dict.fromkeys(roots))
    for name in needed:
        used = definitions[name].names
        needed += [other for other in sorted(used) if other in definitions and other not in needed]
    return {name: definitions[name] for name in definitions if name in needed}


@lru_cache(maxsize=32)
def _definitions(features: frozenset[str]) -> dict[str, _Definition]:
    """Every function and class of the runtime, with its source for these features."""
    texts = [_adapted(_source(module), features) for module in _COPIED]
    functions: list[Callable[..., Any]] = [
        have_same_shape,
        right_factor,
        synthetic_networks.networks,
        synthetic_networks.network_ends,
        synthetic_networks.network_sizes,
        synthetic_networks.drawn_from,
    ]
    definitions: dict[str, _Definition] = {}
    for text in (*texts, *map(inspect.getsource, functions)):
        for node in ast.parse(text).body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name not in _GENERATED:
                source = ast.get_source_segment(text, node) or ""
                definitions[node.name] = _Definition(source, _names_in(node))
    return definitions


def _adapted(text: str, features: frozenset[str]) -> str:
    """The text without the lines that are marked for other features, and without the marks.

    Arguments that fit in one line after that are put there.
    """
    lines = []
    for line in text.splitlines():
        mark = _MARK.search(line)
        if mark is None:
            lines.append(line)
        elif features >= set(mark[1].split()):
            lines.append(line[: mark.start()])
    return _BRACKET.sub(_joined, "\n".join(lines))


def _joined(bracket: re.Match[str]) -> str:
    arguments = ", ".join(line.strip(" ,") for line in bracket[1].splitlines())
    start = bracket.string.rfind("\n", 0, bracket.start()) + 1
    end = bracket.string.find("\n", bracket.end())
    around = bracket.start() - start + end - bracket.end()
    return f"({arguments})" if around + len(arguments) + 2 <= _WIDTH else bracket[0]


def _names_in(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _source(module: str) -> str:
    """The text of a module that is not imported."""
    spec = find_spec(module)
    assert spec is not None, "it is a module of this package"
    assert spec.origin is not None, "it has a file"
    return Path(spec.origin).read_text(encoding="utf-8")


EXPORTER = Exporter(
    "python",
    "one formula as a module that needs only torch",
    lambda selection, _: write(selection.entries),
)
