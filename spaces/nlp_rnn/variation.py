"""Random cells, and their variation as edits of their graphs; every result is a valid cell.

Cells are drawn as the released sampler of NAS-Bench-NLP draws them. Nodes are added one by one: a
linear (three times as likely as each other operation) reads sources and activations and is followed
by an activation of its own; the others read anything but `x`. Some nodes become the new states, and
nodes that no state depends on are removed. A cell that leaves a source unused, or in which an
`h_prev` feeds an `h_new` directly, is rejected.

An edit exchanges an operation, reads another input, adds or drops an input of a linear, inserts a
node before another or removes one. A crossover exchanges a node, with all that it is computed from,
for one of the other parent. Nodes that no state depends on any more are removed. The number of
states stays that of the edited cell.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from functools import cache

from spaces.errors import ArchitectureError
from spaces.nlp_rnn.cell import (
    ACTIVATIONS,
    ARITIES,
    BLEND,
    ELEMENTWISE,
    LINEAR,
    Cell,
    Node,
    X,
    is_previous,
    is_state,
    make_cell,
    new_state,
    previous_state,
    used,
)

_OPERATIONS = {LINEAR: 3, BLEND: 1, **dict.fromkeys(ELEMENTWISE, 1)}  # with their weights
_LINEAR_INPUTS = {2: 4, 3: 1}
_TRIES = 30
Nodes = dict[str, Node]
Edit = Callable[[Nodes, Node, random.Random], None]


def draw_cell(n_states: int, n_further: int, rng: random.Random) -> Cell:
    """A cell of so many states, drawn until it is valid."""
    while True:
        try:
            cell = make_cell(_live(_renamed(_graph(n_states, n_further, rng), n_states, rng)))
        except ArchitectureError:
            continue
        if direct_feeds(cell) == 0:
            return cell


def direct_feeds(cell: Cell) -> int:
    """How many inputs of new states are previous states."""
    return sum(
        is_previous(name) for node in cell.nodes if is_state(node.name) for name in node.input
    )


def count_drawings(n_states: int, n_further: int) -> int:
    """In how many ways the nodes, their inputs and the states can be drawn, before removals.

    Inputs count in their order. Several drawings can give one cell, and some are rejected.
    """
    sources = n_states + 1

    @cache
    def ways(n_nodes: int, n_activations: int) -> int:
        if n_nodes >= n_states + n_further:
            return math.perm(n_nodes, n_states)
        read = sources + n_activations
        linear = sum(math.perm(read, n) for n in {min(n, read) for n in _LINEAR_INPUTS})
        total = linear * len(ACTIVATIONS) * ways(n_nodes + 2, n_activations + 1)
        others = n_states + n_nodes
        plain = math.perm(others, 3) + len(ELEMENTWISE) * math.perm(others, 2)
        return total + (plain * ways(n_nodes + 1, n_activations) if plain else 0)

    return ways(0, 0)


def _graph(n_states: int, n_further: int, rng: random.Random) -> dict[str, Node]:
    states = [previous_state(index) for index in range(n_states)]
    nodes: dict[str, Node] = {}
    activations: list[str] = []

    def add(op: str, inputs: list[str]) -> str:
        name = f"node_{len(nodes)}"
        nodes[name] = Node(name, op, tuple(inputs))
        return name

    while len(nodes) < n_states + n_further:
        op = rng.choices(list(_OPERATIONS), list(_OPERATIONS.values()))[0]
        if op == LINEAR:
            read = [X, *states, *activations]
            n = rng.choices(list(_LINEAR_INPUTS), list(_LINEAR_INPUTS.values()))[0]
            linear = add(op, rng.sample(read, min(n, len(read))))
            activations.append(add(rng.choice(ACTIVATIONS), [linear]))
            continue
        read = [*states, *nodes]
        if len(read) >= ARITIES[op][0]:
            add(op, rng.sample(read, ARITIES[op][0]))
    return nodes


def _renamed(nodes: dict[str, Node], n_states: int, rng: random.Random) -> dict[str, Node]:
    """The graph in which some nodes, drawn at random, are the new states."""
    chosen = rng.sample(list(nodes), n_states)
    names = {name: new_state(index) for index, name in enumerate(chosen)}
    made = [
        Node(
            names.get(n.name, n.name), n.op, tuple(names.get(source, source) for source in n.input)
        )
        for n in nodes.values()
    ]
    return {node.name: node for node in made}


def _live(nodes: dict[str, Node]) -> list[Node]:
    live = used(nodes)
    return [node for node in nodes.values() if node.name in live]


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
        edited = _valid(nodes, cell, most_nodes)
        if edited is not None and edited != cell:
            return edited
    return cell


def cross(first: Cell, second: Cell, most_nodes: int, rng: random.Random) -> Cell:
    """The first cell with a node exchanged for one of the second and all that leads to it."""
    if first == second:
        return first
    for _ in range(_TRIES):
        nodes = {node.name: node for node in first.nodes}
        target, donor = rng.choice(first.nodes), rng.choice(second.nodes)
        _graft(nodes, target.name, donor, second, first.n_states)
        crossed = _valid(nodes, first, most_nodes)
        if crossed is not None and crossed not in (first, second):
            return crossed
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
    reached: dict[str, None] = {}
    todo = list(node.input)
    while todo:
        name = todo.pop()
        if name in nodes and name not in reached:
            reached[name] = None
            todo += nodes[name].input
    return list(reached)


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
    others = [source for source in _readable(nodes, node) if source != node.input[place]]
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
