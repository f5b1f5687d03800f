"""Settings that describe themselves: the printed command line means the settings it was made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lpzero.cli.main import cli, commands
from lpzero.cli.options import given as given_in
from lpzero.cli.verb import command
from lpzero.discover.settings import PRESETS, Settings
from lpzero.errors import InputError
from lpzero.exhaust import ExhaustSettings, Query
from lpzero.options import (
    Bytes,
    Names,
    OneOf,
    Option,
    Real,
    Repeated,
    SomeOf,
    Switch,
    Whole,
    from_json,
    option,
    options,
    to_json,
)
from lpzero.search.loops import LOOPS
from lpzero.verbs.search import constants

FEW = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Values that the kind allows."""
    if isinstance(kind, Whole):
        numbers = st.integers(kind.least, kind.most)
        return numbers if kind.none is None else st.none() | numbers
    if isinstance(kind, Real):
        return st.floats(kind.least, kind.most, allow_nan=False, allow_infinity=False)
    if isinstance(kind, OneOf):
        named = st.sampled_from(sorted(kind.known))
        return st.none() | named if kind.is_optional else named
    if isinstance(kind, SomeOf):
        least = 0 if kind.may_be_empty else 1
        return st.permutations(sorted(kind.known)).flatmap(
            lambda names: st.integers(least, len(names)).map(lambda n: tuple(names[:n]))
        )
    if isinstance(kind, Names):
        words = st.from_regex(r"[a-z][a-z0-9 _-]*[a-z0-9]", fullmatch=True)
        return st.lists(words, max_size=3, unique=True).map(tuple)
    if isinstance(kind, Repeated):
        return st.lists(st.text(min_size=1), max_size=3).map(tuple)
    if isinstance(kind, Bytes):
        return st.integers(1, 1 << 40)
    assert isinstance(kind, Switch)
    return st.booleans()


def changes(of: Any) -> st.SearchStrategy[dict[str, Any]]:
    """Some of the settings with new values; an empty list of letters cannot be written."""
    return st.fixed_dictionaries({}, optional={e.name: values(e.kind) for e in options(of)})


def to_arguments(of: Any, values: dict[str, Any], defaults: dict[str, Any]) -> list[str]:
    """The command line arguments that set the values that differ from the defaults."""
    changed = [
        e for e in options(of) if e.name not in defaults or values[e.name] != defaults[e.name]
    ]
    return [word for entry in changed for word in entry.words(values[entry.name])]


def parsed(verb: str, words: list[str], entries: Iterable[Option]) -> dict[str, Any]:
    """The settings that a command line gives."""
    context = command(verb).make_context("lpzero", list(words))
    names = {entry.name for entry in entries}
    return {name: value for name, value in given_in(context).items() if name in names}


@pytest.mark.slow
@given(st.sampled_from(sorted(PRESETS)), changes(Settings))
@FEW
def test_a_campaigns_command_line_means_its_settings(name: str, changed: dict[str, Any]) -> None:
    if changed.get("crossover") == changed.get("mutation") == 0:
        changed = {**changed, "method": "random"}
    if any(changed.get(name) for name in ("columns", "terms_from", "columns_only")):
        changed = {**changed, "terms": 3}  # columns are factors and summands
    if changed.get("terms", PRESETS[name].terms) > 1:  # what is for single terms stays as it is
        usual = Settings()
        changed |= {one: getattr(usual, one) for one in ("sign", "reductions", "chains")}
    if changed.get("whole_table", PRESETS[name].whole_table):
        changed |= {"archs": changed.get("archs") or 50, "columns_only": False}
    asked = replace(PRESETS[name], **changed)
    words = to_arguments(Settings, to_json(asked), to_json(PRESETS[name]))
    found = parsed("discover", ["made-up", *words], options(Settings))
    assert replace(PRESETS[name], **found) == asked
    assert Settings.from_json(asked.to_json()) == asked


@pytest.mark.slow
@pytest.mark.parametrize("of", [ExhaustSettings, Query])
@given(data=st.data())
@FEW
def test_an_exhaustive_runs_command_line_means_its_settings(of: Any, data: Any) -> None:
    asked = of(**data.draw(changes(of)))
    words = to_arguments(of, to_json(asked), to_json(of()))
    assert of(**parsed("exhaust", ["made-up", *words], options(of))) == asked
    assert from_json(of, to_json(asked)) == asked


@pytest.mark.slow
@pytest.mark.parametrize("name", list(LOOPS))
@given(data=st.data())
@FEW
def test_a_loops_command_line_means_its_constants(name: str, data: Any) -> None:
    loop: Any = LOOPS[name]
    try:
        asked = loop(**data.draw(changes(loop)))
    except InputError:  # constants that do not go together
        return
    words = to_arguments(loop, to_json(asked), {})
    assert loop(**parsed("search", words, constants())) == asked


@pytest.mark.parametrize("verb", list(commands()))
def test_no_two_options_of_a_verb_share_a_name(verb: str) -> None:
    made = cli.get_command(click.Context(cli), verb)
    assert made is not None
    flags = [flag for parameter in made.params for flag in parameter.opts]
    names = [parameter.name for parameter in made.params]
    assert len(set(flags)) == len(flags)
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("of", [Settings, ExhaustSettings, Query, *LOOPS.values()])
def test_every_setting_has_a_help_text_and_an_allowed_default(of: Any) -> None:
    for entry in options(of):
        assert entry.help
        entry.kind.check(entry.name, entry.default)


@pytest.mark.parametrize(
    ("kind", "value", "message"),
    [
        (Whole(1), 0, "n is 0, expected at least 1"),
        (Whole(1, 2000), 3000, "n is 3,000, expected 1 to 2,000"),
        (Whole(1, 2000), 10**400, "n is a number of hundreds of digits, expected 1 to 2,000"),
        (Whole(), 1.5, "n is 1.5, expected a whole number"),
        (Whole(), True, "n is True, expected a whole number"),
        (Whole(), None, "n is None, expected a whole number"),
        (Real(), float("nan"), "n is nan, expected a finite number"),
        (Real(), 10**400, "n is inf, expected a finite number"),
        (Real(), "0", "n is '0', expected a number"),
        (Real(0, 1), 1.5, "n is 1.5, expected 0 to 1"),
        (OneOf("colour", ("red",)), "rad", "unknown colour 'rad'; did you mean 'red'"),
        (OneOf("colour", ("red",)), None, "unknown colour None"),
        (OneOf("colour", {"red": 1}), [], r"unknown colour \[\]"),
        (SomeOf("colour", ("red",)), (), "no colour is given"),
        (SomeOf("colour", ("red",)), ("red", "red"), "a colour is repeated"),
        (SomeOf("colour", ("red",)), "red", "expected a list of names"),
        (Repeated("TEXT"), (1,), "expected a list of strings"),
        (Switch(), 1, "n is 1, expected true or false"),
    ],
)
def test_values_that_are_not_allowed_are_one_error(kind: Any, value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        kind.check("n", value)


def test_a_switch_must_start_off() -> None:
    with pytest.raises(TypeError, match="could not be turned off"):
        option(True, "", Switch())


@pytest.mark.parametrize(
    ("text", "n_bytes"), [("4GB", 4 << 30), ("512MB", 512 << 20), ("4", 4 << 30), ("0.5g", 1 << 29)]
)
def test_amounts_of_memory(text: str, n_bytes: int) -> None:
    assert Bytes().read(text) == n_bytes
