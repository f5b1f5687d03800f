"""Variation of cells as edits of their graphs; every result is a valid cell.

An edit exchanges an operation, reads another input, adds or drops an input of a linear, inserts a
node before another or removes one. A crossover exchanges a node, with all that it is computed from,
for one of the other parent. Nodes that no state depends on any more are removed. The number of
states stays that of the edited cell.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from spaces.errors import ArchitectureError
from spaces.nlp_rnn.cell import (
    ACTIVATIONS,
    ARITIES,
    ELEMENTWISE,
    LINEAR,
    Cell,
    Node,
    X,
    is_previous,
    is_state,
    make_cell,
    previous_state,
    used,
)
from spaces.nlp_rnn.sampler import direct_feeds

_TRIES = 30
Nodes = dict[str, Node]
Edit = Callable[[Nodes, Node, random.Random], None]


def mutate(cell: Cell, probability: float, most_nodes: int, rng: random.Random) -> Cell:
    """The cell with each node edited with the given probability."""
    for name in [node.name for node in cell.nodes]:
        if rng.random() < probability and any(node.name == name for node in cell.nodes):
            cell = edit(cell, name, most_nodes, rng)
    return cell


def edit(cell: Cell, name: str, most_nodes: int, rng: random.Random) -> Cell:
    """The cell with one edit of that node; the cell itself if no edit that was tried is valid."""
    for _ in range(_TRIES):
        nodes = {node.name: node for node in cell.nodes}
        rng.choice(_EDITS)(nodes, nodes[name], rng)
        found = _valid(nodes, cell, most_nodes)
        if found is not None and found != cell:
            return found
    return cell


def cross(first: Cell, second: Cell, most_nodes: int, rng: random.Random) -> Cell:
    """The first cell with a node exchanged for one of the second and all that leads to it."""
    if first == second:
        return first
    for _ in range(_TRIES):
        nodes = {node.name: node for node in first.nodes}
        target, donor = rng.choice(first.nodes), rng.choice(second.nodes)
        _graft(nodes, target.name, donor, second, first.n_states)
        found = _valid(nodes, first, most_nodes)
        if found is not None and found not in (first, second):
            return found
    return first


def _valid(nodes: Nodes, parent: Cell, most_nodes: int) -> Cell | None:
    """The cell of the nodes that are used; None if it is not valid, too large or feeds directly."""
    live = used(nodes)
    try:
        cell = make_cell(node for node in nodes.values() if node.name in live)
    except ArchitectureError:
        return None
    is_small = len(cell.nodes) <= max(most_nodes, len(parent.nodes))
    return cell if is_small and direct_feeds(cell) <= direct_feeds(parent) else None


def _graft(nodes: Nodes, target: str, donor: Node, other: Cell, n_states: int) -> None:
    """Put the donor, with copies of the nodes that it depends on, in the place of the target."""
    by_name = {node.name: node for node in other.nodes}
    needed = _ancestors(by_name, donor)
    taken = set(nodes)
    names = {donor.name: target}
    for node in other.nodes:
        if node.name in needed:
            names[node.name] = _fresh(taken)

    def read(name: str) -> str:
        if is_previous(name):
            return previous_state(int(name.rsplit("_", 1)[1]) % n_states)
        return names.get(name, name)

    for node in (donor, *(by_name[name] for name in needed)):
        nodes[names[node.name]] = Node(names[node.name], node.op, tuple(map(read, node.input)))


def _ancestors(nodes: Nodes, node: Node) -> list[str]:
    """The names of the nodes that lead to this one, without itself."""
    found: dict[str, None] = {}
    todo = list(node.input)
    while todo:
        name = todo.pop()
        if name in nodes and name not in found:
            found[name] = None
            todo += nodes[name].input
    return list(found)


def _fresh(taken: set[str]) -> str:
    name = next(f"node_{n}" for n in range(len(taken) + 1) if f"node_{n}" not in taken)
    taken.add(name)
    return name


def _readable(nodes: Nodes, node: Node) -> list[str]:
    """What the node could read: sources and nodes that do not depend on it."""
    n_states = sum(map(is_state, nodes))
    sources = [previous_state(index) for index in range(n_states)]
    before = [n for n in nodes if n != node.name and node.name not in _ancestors(nodes, nodes[n])]
    return [*([X] if node.op == LINEAR else []), *sources, *before]


def _put(nodes: Nodes, node: Node, op: str, inputs: Iterable[str]) -> None:
    nodes[node.name] = Node(node.name, op, tuple(inputs))


def _exchange_operation(nodes: Nodes, node: Node, rng: random.Random) -> None:
    n = len(node.input)
    _put(nodes, node, rng.choice([op for op, n_read in ARITIES.items() if n in n_read]), node.input)


def _rewire(nodes: Nodes, node: Node, rng: random.Random) -> None:
    inputs = list(node.input)
    inputs[rng.randrange(len(inputs))] = rng.choice(_readable(nodes, node))
    _put(nodes, node, node.op, inputs)


def _change_inputs(nodes: Nodes, node: Node, rng: random.Random) -> None:
    """A linear of two inputs gets a third, one of three loses one."""
    inputs = list(node.input)
    if node.op == LINEAR and len(inputs) == max(ARITIES[LINEAR]):
        inputs.pop(rng.randrange(len(inputs)))
    elif node.op == LINEAR:
        inputs.append(rng.choice(_readable(nodes, node)))
    _put(nodes, node, node.op, inputs)


def _insert(nodes: Nodes, node: Node, rng: random.Random) -> None:
    """A new node between this one and one of its inputs."""
    place = rng.randrange(len(node.input))
    name = _fresh(set(nodes))
    op = rng.choice((LINEAR, *ACTIVATIONS, *ELEMENTWISE))
    others = [one for one in _readable(nodes, node) if one != node.input[place]]
    read = [node.input[place], *rng.sample(others, min(len(others), ARITIES[op][0] - 1))]
    nodes[name] = Node(name, op, tuple(read))
    _put(nodes, node, node.op, (name if i == place else x for i, x in enumerate(node.input)))


def _remove(nodes: Nodes, node: Node, rng: random.Random) -> None:
    """Whatever reads the node reads one of its inputs instead; a state cannot be removed."""
    if is_state(node.name):
        return
    heir = rng.choice(node.input)
    del nodes[node.name]
    for reader in list(nodes.values()):
        _put(nodes, reader, reader.op, (heir if x == node.name else x for x in reader.input))


_EDITS: tuple[Edit, ...] = (_exchange_operation, _rewire, _change_inputs, _insert, _remove)
