"""A recurrent cell as a graph: its nodes, and the checks of a recipe (NAS-Bench-NLP).

A recipe is JSON: a node's name -> {"op": ..., "input": [...]}. Sources are `x`, the layer's input,
and `h_prev_i`, the states of the step before; the nodes `h_new_i` are the states of this step. A
recipe comes from a file, so that its size, depth and names are checked before anything is computed.
"""

from __future__ import annotations

import hashlib
import heapq
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, NoReturn

from spaces.errors import ArchitectureError

X = "x"
LINEAR, BLEND = "linear", "blend"
ACTIVATIONS = ("activation_tanh", "activation_sigm", "activation_leaky_relu")
ELEMENTWISE = ("elementwise_prod", "elementwise_sum")
ARITIES: Mapping[str, tuple[int, ...]] = {
    LINEAR: (2, 3),
    BLEND: (3,),
    **dict.fromkeys(ELEMENTWISE, (2,)),
    **dict.fromkeys(ACTIVATIONS, (1,)),
}
MOST_STATES = 3
_STATE = re.compile(r"h_(new|prev)_([0-9]{1,3})")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,39}")
_MOST_SHOWN = 40  # characters of a wrong value


@dataclass(frozen=True, slots=True)
class Node:
    """One operation of a cell, and the names of what it reads, in order."""

    name: str
    op: str
    input: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Cell:
    """The nodes of a cell, each after those that it reads; of several orders the first by name."""

    nodes: tuple[Node, ...]

    @property
    def n_states(self) -> int:
        """How many hidden states a layer has."""
        return sum(is_state(node.name) for node in self.nodes)

    @property
    def linears(self) -> tuple[Node, ...]:
        """The nodes with weights: one matrix per input and one bias."""
        return tuple(node for node in self.nodes if node.op == LINEAR)

    @property
    def gates(self) -> tuple[Node, ...]:
        """The activations; in a cell without any, its linears."""
        return tuple(node for node in self.nodes if node.op in ACTIVATIONS) or self.linears

    @property
    def structure(self) -> str:
        """A digest that does not depend on names of nodes and on orders without a meaning.

        Inputs of sums and products may be exchanged, and so may those of a linear node, which has a
        matrix for each. States keep their numbers.
        """
        digests: dict[str, str] = {}
        for node in self.nodes:
            inputs = [digests.get(name, name) for name in node.input]
            if node.op in (LINEAR, *ELEMENTWISE):
                inputs.sort()
            digests[node.name] = _digest([node.op, *inputs])
        states = [digests[new_state(index)] for index in range(self.n_states)]
        return _digest([*states, *sorted(digests.values())])


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256(" ".join(parts).encode()).hexdigest()


def new_state(index: int) -> str:
    """The name of a state of this step."""
    return f"h_new_{index}"


def previous_state(index: int) -> str:
    """The name of a state of the step before."""
    return f"h_prev_{index}"


def is_state(name: str) -> bool:
    """Whether a node of that name is a state of this step."""
    match = _STATE.fullmatch(name)
    return match is not None and match[1] == "new"


def is_previous(name: str) -> bool:
    """Whether the name is that of a state of the step before."""
    match = _STATE.fullmatch(name)
    return match is not None and match[1] == "prev"


def read_cell(recipe: Any, most_nodes: int) -> Cell:
    """The cell of a recipe; raises ArchitectureError, which begins with the node's name."""
    if not isinstance(recipe, Mapping):
        _refuse("recipe", f"got {_shown(recipe)}, expected an object of nodes")
    if not 1 <= len(recipe) <= most_nodes:
        _refuse("recipe", f"it has {len(recipe):,} nodes, expected 1 to {most_nodes}")
    return make_cell(_node(name, fields) for name, fields in recipe.items())


def make_cell(nodes: Iterable[Node]) -> Cell:
    """The checked cell of these nodes, in any order."""
    by_name = {node.name: node for node in nodes}
    n_states = _count_states(by_name)
    sources = (X, *map(previous_state, range(n_states)))
    for node in by_name.values():
        _check_inputs(node, by_name, sources)
    cell = Cell(tuple(by_name[name] for name in _ordered(by_name)))
    _check_use(cell, sources)
    return cell


def used(cell_nodes: Mapping[str, Node]) -> set[str]:
    """The names of the nodes and sources that a state of this step depends on."""
    reached = [name for name in cell_nodes if is_state(name)]
    seen = set(reached)
    while reached:
        node = cell_nodes.get(reached.pop())
        for name in node.input if node is not None else ():
            if name not in seen:
                seen.add(name)
                reached.append(name)
    return seen


def _node(name: Any, fields: Any) -> Node:
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name == X or is_previous(name):
        _refuse("recipe", f"{_shown(name)} is not the name of a node")
    if not isinstance(fields, Mapping) or set(fields) != {"op", "input"}:
        given = sorted(map(str, fields)) if isinstance(fields, Mapping) else fields
        _refuse(name, f"got {_shown(given)}, expected an object with the fields op, input")
    op, inputs = fields["op"], fields["input"]
    if not isinstance(op, str) or op not in ARITIES:
        near = get_close_matches(op, ARITIES, n=1) if isinstance(op, str) else []
        hint = f"; did you mean {near[0]!r}?" if near else ""
        _refuse(name, f"op = {_shown(op)} is unknown{hint} (known: {', '.join(ARITIES)})")
    if not isinstance(inputs, (list, tuple)) or not all(
        isinstance(source, str) for source in inputs
    ):
        _refuse(name, f"input = {_shown(inputs)}, expected a list of names")
    return Node(name, op, tuple(inputs))


def _count_states(nodes: Mapping[str, Node]) -> int:
    given = [name for name in nodes if is_state(name)]
    expected = [new_state(index) for index in range(max(1, len(given)))]
    for name in expected:
        if name not in nodes:
            _refuse(name, "it is missing: states are h_new_0, h_new_1, ... without a gap")
    if len(given) > MOST_STATES:
        _refuse(expected[MOST_STATES], f"a cell has 1 to {MOST_STATES} states")
    return len(given)


def _check_inputs(node: Node, nodes: Mapping[str, Node], sources: tuple[str, ...]) -> None:
    if len(node.input) not in ARITIES[node.op]:
        expected = " or ".join(map(str, ARITIES[node.op]))
        _refuse(node.name, f"{node.op} has {len(node.input)} inputs, expected {expected}")
    for name in node.input:
        if name not in nodes and name not in sources:
            names = ", ".join(sources)
            _refuse(node.name, f"input {_shown(name)} is neither a node nor a source ({names})")
    if len(set(node.input)) < len(node.input):
        _refuse(node.name, "it reads one input twice")
    if X in node.input and node.op != LINEAR:
        # A layer's input and its states may differ in width.
        _refuse(node.name, f"only a linear can read x, not {node.op}")
    own = node.name.replace("new", "prev", 1) if is_state(node.name) else ""
    if own in node.input and node.op != BLEND:
        _refuse(node.name, f"it is fed straight from itself, {own}; only a blend may do that")


def _ordered(nodes: Mapping[str, Node]) -> list[str]:
    """The names with every node after those it reads; raises ArchitectureError for a cycle."""
    waiting = {name: sum(source in nodes for source in node.input) for name, node in nodes.items()}
    readers: dict[str, list[str]] = {name: [] for name in nodes}
    for name, node in nodes.items():
        for source in node.input:
            if source in nodes:
                readers[source].append(name)
    ready = sorted(name for name, n in waiting.items() if n == 0)
    order: list[str] = []
    while ready:
        order.append(heapq.heappop(ready))
        for name in readers[order[-1]]:
            waiting[name] -= 1
            if waiting[name] == 0:
                heapq.heappush(ready, name)
    if len(order) < len(nodes):
        left = sorted(set(nodes) - set(order))
        _refuse(left[0], f"it is on a cycle, or reads one, among {', '.join(left[:5])}")
    return order


def _check_use(cell: Cell, sources: tuple[str, ...]) -> None:
    live = used({node.name: node for node in cell.nodes})
    for name in (*sources, *(node.name for node in cell.nodes)):
        if name not in live:
            kind = "source" if name in sources else "node"
            _refuse(name, f"this {kind} is unused: no state depends on it")


def _shown(value: Any) -> str:
    """A wrong value, short whatever it is: a file may hold anything, of any depth and size."""
    if value is None or isinstance(value, (str, int, float)):
        text = repr(value) if not isinstance(value, int) or abs(value) < 10**18 else "a huge number"
        return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
    if isinstance(value, list) and len(value) <= 3 and all(isinstance(v, str) for v in value):
        return "[" + ", ".join(map(_shown, value)) + "]"
    return "an object" if isinstance(value, Mapping) else f"a {type(value).__name__}"


def _refuse(where: str, message: str) -> NoReturn:
    raise ArchitectureError(f"{where}: {message}")
