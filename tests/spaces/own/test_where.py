"""Constraints between choices: expressions of files, and functions of Python."""

from __future__ import annotations

import random
from typing import Any

import pytest

import lpzero
from spaces.errors import ArchitectureError, DeclarationError, SpaceError
from spaces.own.where import Where
from tests.spaces.own.small_space import Model

FIELDS = {"heads": 6, "kv": 3, "width": 24, "kind": "relu", "rate": 0.5}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("heads % kv == 0", True),
        ("heads // 4 == kv", False),
        ("1 < kv <= heads < width", True),
        ("width / heads == 4.0 and not kv > 5", True),
        ("kind in ['relu', 'gelu'] or width < 0", True),
        ("kind not in ('relu',)", False),
        ("-rate * 2 + 1 == 0", True),
    ],
)
def test_an_expression_is_computed(text: str, holds: bool) -> None:
    assert Where(text)(FIELDS) is holds


@pytest.mark.parametrize(
    "text",
    [
        "__import__('os')",
        "heads.real",
        "heads ** 99",
        "[x for x in range(9)]",
        "lambda: 0",
        "heads[0]",
        "f'{heads}'",
        "heads := 3",
        "heads %",
        "0 + " * 300 + "0",
        "1 < 2 " * 400,
        "None",
        "b'x'",
    ],
)
def test_what_is_no_such_expression_is_refused(text: str) -> None:
    with pytest.raises(DeclarationError, match="where"):
        Where(text)


@pytest.mark.parametrize(
    "text", ["depth > 1", "'a' * 9", "kind + 1", "heads / 0", "heads < kind", "heads % 0"]
)
def test_what_cannot_be_computed_is_said(text: str) -> None:
    with pytest.raises(DeclarationError, match="where"):
        Where(text)(FIELDS)


def own(where: Any) -> Any:
    choices = {"layers": [1, 2, 3], "width": [8, 16], "activation": ["relu"]}
    return lpzero.space({**choices, "heads": [2, 4], "ffn": [16]}, Model, where=where)


def test_a_function_confines_a_space_of_the_users() -> None:
    space = own(lambda c: c.width > c.layers * 4)
    assert space.cardinality() == (1 + 3) * 2
    rng = random.Random(3)
    drawn = [space.sample(rng) for _ in range(30)]
    drawn += [space.mutate(arch, 0.9, rng) for arch in drawn]
    drawn += [space.crossover(a, b, rng) for a, b in zip(drawn[:20], drawn[20:40], strict=True)]
    assert all(arch.width > arch.layers * 4 for arch in drawn)
    assert len(set(drawn)) == space.cardinality()
    with pytest.raises(ArchitectureError, match=r"refuses .*layers=2, width=8"):
        space.from_json({"layers": 2, "width": 8, "heads": 2})
    assert own(lambda c: True).source != own(None).source


def test_a_constraint_that_fails_names_the_configuration() -> None:
    with pytest.raises(SpaceError, match=r"fails on Configuration.*ZeroDivisionError"):
        own(lambda c: 1 / 0).sample(random.Random(0))


def test_draws_without_a_constraint_are_those_they_were() -> None:
    free, always = own(None), own(lambda c: True)
    assert [free.sample(random.Random(i)) for i in range(5)] == [
        always.sample(random.Random(i)) for i in range(5)
    ]
