from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from lpzero.cli.verb import command
from primitives import UnknownPrimitiveError
from primitives.parser import parse
from primitives.pruning import ALL_RULES, OUTER_RULES, RULES, check
from primitives.space_size import measure


def rejected_by(example: str, level: str) -> str | None:
    """The rule that rejects an example, with all rules of its level on."""
    found = check(parse(example), RULES if level == "term" else ALL_RULES)
    return None if found is None else found.rule


@pytest.mark.slow
def test_rules_are_listed_with_what_they_remove() -> None:
    done = CliRunner().invoke(command("rules"), ["--unaries", "1", "--format", "json"])
    shown = json.loads(done.stdout)
    assert [(row["rule"], row["level"]) for row in shown["rules"]] == [
        *((name, "term") for name in RULES),
        *((name, "score") for name in OUTER_RULES),
    ]
    for row in shown["rules"]:
        assert rejected_by(row["example"], row["level"]) == row["rule"]
    assert shown["sizes"][0]["before"] == 26_460
    assert shown["sizes"][0]["distinct"] == measure(1).distinct
    removed = sum(row["removes_1"] or 0 for row in shown["rules"])
    assert removed == 26_460 - shown["sizes"][0]["kept"]


@pytest.mark.slow
def test_the_table_ends_with_the_sizes_of_both_spaces() -> None:
    done = CliRunner().invoke(command("rules"), [])
    assert done.exit_code == 0
    assert "chains of 1: 26,460 formulas" in done.stdout
    assert "chains of 2: 11,668,860 formulas" in done.stdout


@pytest.mark.slow
def test_a_rule_turned_off_removes_nothing() -> None:
    done = CliRunner().invoke(
        command("rules"), ["--unaries", "1", "--off", "constant", "--format", "json"]
    )
    row = next(r for r in json.loads(done.stdout)["rules"] if r["rule"] == "constant")
    assert (row["on"], row["removes_1"]) == (False, 0)
    assert row["alone_1"] > 0


def test_an_unknown_rule_is_an_input_error() -> None:
    done = CliRunner().invoke(command("rules"), ["--off", "constnt"])
    assert isinstance(done.exception, UnknownPrimitiveError)


@pytest.mark.parametrize("form", ["table", "json"])
def test_classics_are_listed(form: str) -> None:
    done = CliRunner().invoke(command("classics"), ["--format", form])
    assert done.exit_code == 0
    assert "sum(l1(mul(G, W)))" in done.stdout
