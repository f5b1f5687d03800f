"""How two branches meet is declared once; every evaluator agrees with it for all pairs of kinds.

`test_naive.py` has the rules worked by hand; here the reference, which applies the declaration, is
compared with sketches, sympy and exported modules.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import product

import numpy as np
import pytest

from lpzero.scores.branch_table import branch_table
from lpzero.scores.values import Values
from lpzero.sketches.sketch import Sketch
from primitives.errors import Rejected
from primitives.expressions import Expression
from primitives.facts import Meeting, facts, meeting
from primitives.naive import score
from primitives.parser import parse
from primitives.registry import BINARIES
from tests.lpzero import random_sketches
from tests.lpzero.export.network_tensors import exported, module_of, written

# The kinds of branches: (example, is it a scalar, the group of its tensors).
KINDS = {
    "size": ("params", True, None),
    "scalar": ("fro(W)", True, "weights"),
    "matrix": ("W", False, "weights"),
    "aligned matrix": ("abs(G)", False, "weights"),
    "matrix of another shape": ("matmul(W, G)", False, "weights"),
    "foreign matrix": ("H", False, "H"),
    "foreign scalar": ("std(A)", True, "A"),
    "means": ("add(H, W)", True, None),
}
PAIRS = list(product(KINDS, KINDS))


def expression(kind: str) -> Expression:
    return parse(f"sum({KINDS[kind][0]})").term.expression


@pytest.mark.parametrize("operation", BINARIES)
def test_kinds_and_groups_decide_how_branches_meet(operation: str) -> None:
    for left, right in PAIRS:
        found = meeting(facts(expression(left)), facts(expression(right)), BINARIES[operation])
        groups = {KINDS[left][2], KINDS[right][2]} - {None}
        is_scalar = KINDS[left][1] or KINDS[right][1]
        if len(groups) == 2:
            expected = Meeting.MEANS
        elif is_scalar:
            expected = Meeting.SCALAR
        else:
            expected = Meeting.PRODUCT if operation == "matmul" else Meeting.ELEMENTS
        assert found is expected, (left, right)


@lru_cache(maxsize=1)
def sketches() -> list[Sketch]:
    return [random_sketches.sketch(seed) for seed in range(3)]


@lru_cache(maxsize=1)
def engine() -> Values:
    return Values(branch_table(sketches()))


@pytest.mark.parametrize("operation", BINARIES)
def test_sketches_are_scored_as_declared(operation: str) -> None:
    networks = [random_sketches.network_of(one) for one in sketches()]
    for left, right in PAIRS:
        formula = parse(f"sum(square({operation}({KINDS[left][0]}, {KINDS[right][0]})))")
        expected = np.array([score(formula, network) for network in networks], dtype=float)
        found = engine().score(formula)
        assert not isinstance(found, Rejected), (left, right)
        np.testing.assert_allclose(found, expected, rtol=1e-9, err_msg=f"{left}, {right}")


@pytest.mark.slow
@pytest.mark.parametrize("operation", BINARIES)
def test_exports_are_scored_as_declared(operation: str) -> None:
    compared, share = 0, list(BINARIES).index(operation)
    for number, (left, right) in enumerate(PAIRS):
        formula = exported(f"sum(square({operation}({KINDS[left][0]}, {KINDS[right][0]})))")
        for found, expected in module_of(formula).self_test():
            assert math.isclose(found, expected, rel_tol=1e-9), formula.formula
            compared += 1
        if (number + number // len(KINDS)) % len(BINARIES) == share:  # of every pair one operation
            written(formula, "sympy")  # which compares its scores on whole tensors
    assert compared == 3 * len(PAIRS)
