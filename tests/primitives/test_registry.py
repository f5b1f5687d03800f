from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from primitives import UNARIES, DeclarationError, UnknownPrimitiveError, parse, score
from primitives.properties import NON_NEGATIVE, Blind, Gives, Interval, Symmetry
from primitives.pruning import check
from primitives.registry import BINARIES, binary, forget, get_binary, get_unary, unary
from primitives.space_size import measure
from primitives.statistics import get_statistic, statistic


@pytest.fixture(autouse=True)
def _forget_what_the_test_declared() -> Iterator[None]:
    before = set(UNARIES)
    yield
    for name in set(UNARIES) - before:
        forget(name)


def test_a_new_primitive_is_five_lines_and_known_everywhere(make_architecture: Any) -> None:
    @unary(latex=r"\tanh\left({x}\right)", range=Interval(-1, 1), symmetry=Symmetry.ODD)
    def tanh(x: Any, xp: Any) -> Any:
        return xp.tanh(x)

    formula = parse("sum(abs(tanh(square(W))))")
    assert isinstance(score(formula, make_architecture(0)), float)
    assert tanh.of_scalar == "itself"


def test_pruning_follows_the_properties_of_a_new_primitive() -> None:
    @unary(latex="{x}^4", range=NON_NEGATIVE, blind=Blind.SIGN, symmetry=Symmetry.EVEN)
    def fourth(x: Any, xp: Any) -> Any:
        return (x / 1e10) ** 4

    rules = [check(parse(f"sum({text})")) for text in ("abs(fourth(W))", "fourth(neg(W))")]
    assert [found.rule for found in rules if found] == ["no-effect", "absorbed"]


@pytest.mark.slow
def test_what_was_known_of_a_name_is_forgotten_with_it() -> None:
    before = measure(1)
    for traits, rule in (({"range": NON_NEGATIVE}, "no-effect"), ({}, None)):
        unary(latex="{x}", **traits)(lambda_named("shift", lambda x, xp: xp.abs(x) / 2))
        found = check(parse("sum(abs(shift(W)))"))
        assert (found and found.rule) == rule
        assert measure(1).before > before.before
        forget("shift")
    assert measure(1) == before


def refuse(body: Any, reason: str, **traits: Any) -> None:
    with pytest.raises(DeclarationError, match=reason):
        unary(latex="{x}", **traits)(body)
    assert body.__name__ not in UNARIES


def test_a_body_that_overflows_is_refused() -> None:
    def cube_of_exp(x: Any, xp: Any) -> Any:
        return xp.exp(x)

    refuse(cube_of_exp, "not finite near x")


def test_a_body_that_changes_its_operand_is_refused() -> None:
    def double(x: Any, xp: Any) -> Any:
        x *= 2
        return x + 0

    refuse(double, "changes its operand")


def test_a_body_of_the_wrong_shape_is_refused() -> None:
    def total(x: Any, xp: Any) -> Any:
        return xp.sum(x / 1e10)

    refuse(total, "gives=SAME")
    refuse(lambda_named("first_row", lambda x, xp: x[:1]), "gives=SCALAR", gives=Gives.SCALAR)


def lambda_named(name: str, body: Any) -> Any:
    body.__name__ = name
    return body


def test_a_body_that_raises_is_refused_with_its_error() -> None:
    refuse(lambda_named("broken", lambda x, xp: xp.no_such_function(x)), "no_such_function")


@pytest.mark.parametrize(
    ("traits", "reason"),
    [
        ({"range": NON_NEGATIVE}, "outside its declared"),
        ({"symmetry": Symmetry.EVEN}, "symmetry=EVEN"),
        ({"blind": Blind.NEGATIVE}, "blind=NEGATIVE"),
        ({"fixes": NON_NEGATIVE}, "fixes="),
        ({"nonsense": 1}, "no property is called 'nonsense'"),
    ],
)
def test_a_property_that_does_not_hold_is_refused(traits: dict[str, Any], reason: str) -> None:
    with pytest.raises(DeclarationError, match=reason):
        unary(latex="{x}", **traits)(lambda_named("half", lambda x, xp: x / 2))


@pytest.mark.parametrize("high", [0.5, 5.184705528587072e21])
@pytest.mark.parametrize(("excess", "is_rounding"), [(1e-15, True), (1e-10, False)])
def test_a_range_is_left_by_rounding_only(high: float, excess: float, is_rounding: bool) -> None:
    """The last digits of e^50 differ between versions of NumPy and between processors."""
    top = high + excess * max(high, 1.0)
    capped = lambda_named("capped", lambda x, xp: xp.clip(x, -top, top))
    if is_rounding:
        assert unary(latex="{x}", range=Interval(-high, high))(capped).name == "capped"
    else:
        refuse(capped, "outside its declared", range=Interval(-high, high))


@pytest.mark.parametrize("name", ["square", "add", "W", "sum", "é"])
def test_a_taken_or_unreadable_name_is_refused(name: str) -> None:
    with pytest.raises(DeclarationError):
        unary(latex="{x}")(lambda_named(name, lambda x, xp: x))


def test_a_statistic_is_declared_once() -> None:
    with pytest.raises(DeclarationError, match="twice"):
        statistic("W", "again")


@pytest.mark.parametrize("look_up", [get_unary, get_binary, get_statistic])
def test_an_unknown_name_is_answered_with_the_known_ones(look_up: Any) -> None:
    with pytest.raises(UnknownPrimitiveError, match=r"did you mean|choose from"):
        look_up("sqare")


def test_importing_the_package_stays_light() -> None:
    heavy = "[m for m in ('torch', 'sympy', 'deap', 'scipy') if m in sys.modules]"
    code = f"import sys, primitives, primitives.pruning; print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_bodies_work_on_plain_arrays() -> None:
    assert UNARIES["square"](np.array([[3.0]])).item() == 9.0


def test_a_binary_that_does_not_commute_may_not_say_so() -> None:
    with pytest.raises(DeclarationError, match="declares that it commutes"):
        binary(latex="{x} {y}", sympy=lambda x, y, s: x, commutes=True)(
            lambda_named("minus", lambda x, y, xp: x - y)
        )
    assert "minus" not in BINARIES
