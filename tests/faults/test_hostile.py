"""Hostile inputs of tests/faults: each way to fail is seen, and has a class of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.faults import hostile_inputs
from tests.faults.hostile import FAILURES, MOST_MEGABYTES, MOST_SECONDS, Measured, judge
from tests.lpzero.verbs import attacks

HONEST = Measured(0, "a table\n", "", 3.0, 400.0, (), False)
REFUSED = Measured(2, "", "note: it is odd\nerror: it is hostile\n", 3.5, 410.0, (), False)
CASE = {"codes": (2,)}

FAILED: dict[str, dict[str, Any]] = {
    "executed": {"seen": ("runs /tmp/evil.py",)},
    "fetched": {"seen": ("asks ('example.org', 443)",)},
    "overwritten": {"is_changed": True},
    "hang": {"code": None},
    "crash": {"code": -9},
    "traceback": {"code": 1, "err": "Traceback (most recent call last):\n"},
    "unexpected": {"code": 1, "err": "error: unexpected ValueError: x\n"},
    "failed": {"code": 0},
    "too slow": {"seconds": HONEST.seconds + MOST_SECONDS + 0.1},
    "too large": {"megabytes": HONEST.megabytes + MOST_MEGABYTES + 1},
}


def test_every_attacked_verb_has_an_honest_command() -> None:
    words = {verb: " ".join(lines).split() for verb, lines in attacks.COMMANDS.items()}
    attacked = {verb for verb, of in words.items() if any(word.isupper() for word in of)}
    assert attacked <= {name.split(",")[0] for name in hostile_inputs.HONEST}


def test_a_line_and_exit_code_two_is_a_refusal() -> None:
    assert judge(CASE, REFUSED, HONEST) == ["refused"]
    assert judge({"codes": (0, 2)}, HONEST, HONEST) == ["accepted"]


def test_every_class_of_failure_is_tried() -> None:
    assert FAILED.keys() == set(FAILURES)


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_in_its_class(name: str) -> None:
    assert judge(CASE, replace(REFUSED, **FAILED[name]), HONEST) == [name]


@pytest.mark.parametrize(
    "printed",
    [
        {"out": "half a table\n"},
        {"err": "error: one\nerror: two\n"},
        {"err": "error: one\nand more\n"},
        {"err": ""},
        {"err": "error: \x1b[31mred\n"},
        {"seen": ("writes /etc/passwd",), "code": 0},
    ],
)
def test_more_or_less_than_one_line_fails(printed: dict[str, Any]) -> None:
    outcomes = judge(CASE, replace(REFUSED, **printed), HONEST)
    assert outcomes[-1] == "failed"
