"""Signatures, help and types of what `import lpzero` offers: every option of every verb."""

from __future__ import annotations

import configparser
import inspect
import pydoc
from pathlib import Path

import pytest

import lpzero
from lpzero.options import options
from lpzero.python import signatures
from lpzero.verbs import module

STUB = Path(lpzero.__file__).with_suffix(".pyi")
# Options that are arguments of another name in Python, or of the command line alone.
ELSEWHERE = {
    "Discovery": {"quiet", "no_lock"},
    "exhaust": set(),
    "rank": set(),
    "score": {"hf", "inputs", "show_layout", "corpus", "tokenizer", "memory", "length", "dtype"},
    "search": {"proxies", "loops", "hf", "quiet"},
    "train": {"quiet"},
}


def test_the_stub_is_what_the_requests_give() -> None:
    assert STUB.read_text(encoding="utf-8") == signatures.stub(), (
        "run: python -m lpzero.python.signatures > lpzero/__init__.pyi"
    )


@pytest.mark.parametrize("name", ELSEWHERE)
def test_every_option_is_in_the_signature_and_in_the_help(name: str) -> None:
    offered = getattr(lpzero, name)
    verb = "discover" if name == "Discovery" else name
    declared = {o.name: o for o in options(module(verb).Request) if not o.is_argument}
    shown = inspect.signature(offered).parameters
    assert set(declared) - set(shown) == ELSEWHERE[name]
    text = " ".join(pydoc.render_doc(offered, renderer=pydoc.plaintext).split())
    counted = 0
    for option in set(declared) & set(shown):
        if declared[option].help and "Options:" in offered.__doc__ and option in offered.__doc__:
            counted += 1
            assert option in text
    assert counted > 5
    assert not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in shown.values())


def test_a_users_script_is_among_what_mypy_reads() -> None:
    config = configparser.ConfigParser()
    config.read(STUB.parents[1] / "setup.cfg")
    name = "tests.lpzero.python.typed_script"
    assert name in config["mypy"]["modules"].split(", ")
    assert (STUB.parents[1] / f"{name.replace('.', '/')}.py").exists()
