"""Random cells, drawn as the released sampler of NAS-Bench-NLP draws them.

Nodes are added one by one: a linear (three times as likely as each other operation) reads sources
and activations and is followed by an activation of its own; the others read anything but `x`. Some
nodes become the new states, and nodes that no state depends on are removed. A cell that leaves a
source unused, or in which an `h_prev` feeds an `h_new` directly, is rejected.
"""

from __future__ import annotations

import math
import random
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
        Node(names.get(n.name, n.name), n.op, tuple(names.get(one, one) for one in n.input))
        for n in nodes.values()
    ]
    return {node.name: node for node in made}


def _live(nodes: dict[str, Node]) -> list[Node]:
    live = used(nodes)
    return [node for node in nodes.values() if node.name in live]
