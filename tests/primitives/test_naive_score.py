"""The reference above the blocks, on networks small enough to work out by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from primitives import NetworkValues, Rejected, TensorError, parse, score, whole
from primitives.tensors import Block, number


def block(weight: float, params: int, width: int = 4) -> Block:
    """W is [[weight, -weight]], so that fro(W) = sqrt(2)·weight and l1(W) = 2·weight."""
    return {
        "W": [whole(np.array([[weight, -weight]]))],
        "params": number(params),
        "width": number(width),
    }


THREE = NetworkValues([block(1, 10), block(2, 20), block(3, 40)], block(5, 7), block(6, 9))
ONE = NetworkValues([block(2, 16)])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sum(params)", 70),
        ("mean(params)", 70 / 3),
        ("inner(params)", 30),
        ("last(params)", 40),
        ("first(params)", 10),
        ("embedding(params)", 7),
        ("head(params)", 9),
        ("-inner(l1(W))", -6),
        ("sum(mul(l1(W), params))", 2 * 10 + 4 * 20 + 6 * 40),
        ("sum(mul(square(W), params))", 10 + 4 * 20 + 9 * 40),
        ("sum(sub(params, width))", 58),
        ("inner(sqrt(params))", math.sqrt(10) + math.sqrt(20)),
        ("mul(inner(params), last(params))", 1200),
        ("mul(sqrt(last(l1(W))), inverse(first(l1(W))))", math.sqrt(6) / 2),
        ("-mul(square(inner(params)), depth, head(width))", -900 * 3 * 4),
        ("add(sum(params), log(last(params)), depth)", 73 + math.log(40)),
        ("sub(first(params), last(params))", -30),
        ("abs(sub(first(params), last(params)))", 30),
        ("snip", -2.5),
        ("-abs(snip)", -2.5),
    ],
)
def test_a_network_of_three_blocks_worked_by_hand(text: str, expected: float) -> None:
    found = score(parse(text), THREE, columns={"depth": 3, "snip": -2.5})
    assert found == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "expected"), [("inner(params)", 8), ("sum(params)", 16), ("inner(l1(W))", 2)]
)
def test_of_a_single_block_inner_is_half(text: str, expected: float) -> None:
    assert score(parse(text), ONE) == expected


def test_a_plain_list_of_blocks_is_a_network_without_ends() -> None:
    assert score(parse("last(params)"), list(THREE.blocks)) == 40
    found = score(parse("mul(sum(params), head(params))"), list(THREE.blocks))
    assert isinstance(found, Rejected)
    assert found.rule == "missing-end"


@pytest.mark.parametrize(
    "text",
    [
        "sqrt(sub(first(params), last(params)))",
        "log(sub(first(params), last(params)))",
        "log(sub(first(params), first(params)))",
        "inverse(sub(first(params), first(params)))",
        "inverse(zero)",
        "square(huge)",
        "mul(huge, huge)",
        "add(nan, depth)",
    ],
)
def test_what_is_not_defined_is_rejected(text: str) -> None:
    columns = {"zero": 0.0, "huge": 1e200, "nan": math.nan, "depth": 3.0}
    found = score(parse(text), THREE, columns=columns)
    assert isinstance(found, Rejected)
    assert found.rule == "non-finite"


def test_only_the_positions_that_are_read_must_hold_what_is_asked_for() -> None:
    bare: Mapping[str, list[object]] = {}
    network = NetworkValues([bare, THREE.blocks[0]])  # type: ignore[list-item]
    assert score(parse("last(params)"), network) == 10
    with pytest.raises(TensorError, match="no size 'params'"):
        score(parse("sum(params)"), network)


def test_what_is_missing_is_named() -> None:
    with pytest.raises(TensorError, match="no column 'depth'; it has: snip"):
        score(parse("mul(depth, sum(W))"), THREE, columns={"snip": 1.0})
    with pytest.raises(TensorError, match="statistic 'H'"):
        score(parse("head(H)"), THREE)
    with pytest.raises(TensorError, match="no blocks"):
        replace(THREE, blocks=[])


@pytest.mark.parametrize("size", [number(0.0), number(-3), number(1) * 2, []])
def test_a_size_is_one_number_of_at_least_one(size: list[object]) -> None:
    with pytest.raises(TensorError):
        score(parse("sum(width)"), [{"width": size}])  # type: ignore[dict-item]


def test_torch_gives_the_same_numbers() -> None:
    torch = pytest.importorskip("torch")
    weight = torch.tensor([[1.5, -0.5]], dtype=torch.float64)
    theirs = [{"W": [whole(weight)], "width": number(3, like=weight)}]
    mine = [{"W": [whole(weight.numpy())], "width": number(3)}]
    formula = parse("mul(sum(mul(square(W), width)), sqrt(last(width)))")
    assert score(formula, theirs) == score(formula, mine)
