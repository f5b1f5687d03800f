"""The chains of a branch table: a tree per statistic, so that common prefixes are shared."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

from primitives.enumeration import statistic_pairs, surviving_branches
from primitives.properties import Kind, on_change
from primitives.registry import foreign
from primitives.statistics import STATISTICS

# Incremented whenever the numbers in a stored table would change.
SCHEMA = 6

Chain = tuple[str, ...]
Pair = tuple[str, str]


@dataclass(slots=True)
class Node:
    """A prefix of chains and its continuations; `row` is its row in the table, if it has one."""

    children: dict[str, Node] = field(default_factory=dict)
    row: int | None = None
    matrix_row: int | None = None


@dataclass(frozen=True)
class ChainSet:
    """Chains per statistic (matrices first), and the aligned pairs whose products are tabulated.

    `n_matrices` counts the chains whose result is a matrix: the rows and columns of the products.
    """

    chains: dict[str, tuple[Chain, ...]]
    n_matrices: dict[str, int]
    pairs: tuple[Pair, ...]

    @cached_property
    def rows(self) -> dict[tuple[str, Chain], int]:
        """The row of each (statistic, chain)."""
        return {(s, c): i for s, cs in self.chains.items() for i, c in enumerate(cs)}

    @cached_property
    def trees(self) -> dict[str, Node]:
        """The chains of each statistic as a tree."""
        trees = {}
        for statistic, chains in self.chains.items():
            root = trees[statistic] = Node()
            for row, chain in enumerate(chains):
                node = root
                for operation in chain:
                    node = node.children.setdefault(operation, Node())
                node.row = row
                node.matrix_row = row if row < self.n_matrices[statistic] else None
        return trees

    @cached_property
    def digest(self) -> str:
        """A digest of everything that determines a table of these chains."""
        content: list[Any] = [
            SCHEMA,
            self.chains,
            self.n_matrices,
            self.pairs,
            "first",  # the axis of softmax, once an option: stored tables keep their addresses
        ]
        used = {name for chains in self.chains.values() for chain in chains for name in chain}
        own = {name: digest for name, (_, digest) in foreign().items() if name in used}
        content += [own] if own else []  # a user's operation may change under its name
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


@lru_cache(maxsize=32)
def surviving(unaries: int, same_statistic: bool = False) -> ChainSet:
    """Every chain that pruning keeps, for the space of `unaries` operations per branch."""
    chains, n_matrices = {}, {}
    for statistic in STATISTICS:
        terms = surviving_branches(statistic, unaries).terms
        matrices = [b.chain for b in terms if b.kind is Kind.MATRIX]
        chains[statistic] = (*matrices, *(b.chain for b in terms if b.kind is Kind.SCALAR))
        n_matrices[statistic] = len(matrices)
    group = {name: statistic.group for name, statistic in STATISTICS.items()}
    pairs = tuple(p for p in statistic_pairs(same_statistic) if group[p[0]] == group[p[1]])
    return ChainSet(chains, n_matrices, pairs)


on_change(surviving.cache_clear)


def bare_chains() -> ChainSet:
    """The statistics themselves, for formulas whose chains are computed when they are needed."""
    names = tuple(STATISTICS)
    return ChainSet(dict.fromkeys(names, ((),)), dict.fromkeys(names, 1), ())
