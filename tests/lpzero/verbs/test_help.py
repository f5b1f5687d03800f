"""Help pages: panels, examples, links, and texts that are derived from presets."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from lpzero.cli.main import run
from lpzero.cli.verb import command
from lpzero.discover.settings import PRESETS, Settings
from lpzero.options import FORMER, PANELS, make, options, with_presets
from lpzero.verbs import commands, module
from lpzero.version import DOCUMENTATION


def help_of(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert run(words) == 0
    return capsys.readouterr().out


def test_a_switch_that_a_preset_turns_on_says_so() -> None:
    texts = {entry.name: entry.help for entry in with_presets(Settings, PRESETS)}
    assert texts["same_statistic"].endswith("[default: off; released: on]")
    assert not any(": ]" in text for text in texts.values())


@pytest.mark.parametrize("verb", list(commands()))
def test_help_shows_the_common_options_and_help_all_every_one(
    capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    brief, everything = help_of(capsys, verb, "--help"), help_of(capsys, verb, "--help-all")
    assert len(brief.splitlines()) <= 40
    for entry in options(module(verb).Request):
        assert entry.panel in (*PANELS, FORMER)
        if not entry.is_argument:
            is_shown = re.search(rf"^  {entry.flag}\b", everything, re.M) is not None
            assert is_shown == (entry.panel != FORMER), entry.flag
        for flag in entry.former_flags:
            assert f"{entry.flag}, {flag}" not in everything


@pytest.mark.parametrize("verb", list(commands()))
def test_examples_can_be_parsed(verb: str) -> None:
    examples = module(verb).EXAMPLES
    assert examples
    for line in examples:
        program, name, *words = shlex.split(line)
        assert (program, name) == ("lpzero", verb)
        command(verb).make_context(verb, words)


@pytest.mark.parametrize("verb", list(commands()))
def test_help_names_pages_that_are_in_the_folder_of_the_documentation(
    capsys: pytest.CaptureFixture[str], verb: str
) -> None:
    text = help_of(capsys, verb, "--help-all")
    *_, last = text.strip().splitlines()
    assert last == f"Documentation: {DOCUMENTATION}"
    pages = re.findall(r"\b[\w-]+\.md\b", text)
    assert {"cluster.md"} <= set(pages) or "--scheduler" not in text
    for page in pages:
        assert Path(DOCUMENTATION, page).is_file()


@pytest.mark.parametrize("verb", ["rank", "exhaust", "stats", "score"])
def test_a_former_name_is_accepted_and_means_the_same(verb: str) -> None:
    arguments = {"table": "x"} if verb != "score" else {}
    request = module(verb).Request
    now = make(request, {**arguments, "weights_seed": 3})
    assert make(request, {**arguments, "seed": 3}) == now
    words = [] if verb == "score" else ["x"]
    context = command(verb).make_context(verb, [*words, "--seed", "3"])
    assert context.params["weights_seed"] == 3
