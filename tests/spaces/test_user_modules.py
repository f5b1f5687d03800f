"""The trust boundary: code that the user names is run; an address in a file is only looked up."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import spaces
from lpzero.parallel.tasks import Payload
from spaces import user_modules
from spaces.errors import UnknownNameError
from spaces.user_modules import NotGivenError, UserCodeError

# A file that says when it is run, and offers a space of the package.
FILE = """
from pathlib import Path
from dataclasses import replace
import spaces
(Path(__file__).parent / "was-run").touch()
SPACE = replace(spaces.NANO_GPT2, name="{name}")
NUMBER = 3
"""


@pytest.fixture(autouse=True)
def nothing_given(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What the user named in other tests is unknown here, and the other way round."""
    for name in ("_LOADED", "_IMPORTED", "_SPACES"):
        monkeypatch.setattr(user_modules, name, {})
    yield
    for name in ("a_space", "user_a_space"):
        sys.modules.pop(name, None)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "a_space.py").write_text(FILE.format(name="a-space"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


def was_run(folder: Path) -> bool:
    return (folder / "was-run").exists()


@pytest.mark.parametrize(
    "address", ["a_space.py:SPACE", "./a_space.py:SPACE", "{}/a_space.py:SPACE", "a_space:SPACE"]
)
def test_an_address_that_nobody_gave_is_refused_and_not_run(folder: Path, address: str) -> None:
    with pytest.raises(NotGivenError, match="names Python code, which is run only if you name it"):
        spaces.get(address.format(folder))
    assert not was_run(folder)
    assert "a_space" not in sys.modules


def test_the_refusal_names_the_option_to_give(folder: Path) -> None:
    with pytest.raises(NotGivenError, match=r"give --plugin 'my space.py', or name it as the"):
        spaces.get("my space.py:SPACE")
    with pytest.raises(NotGivenError, match=r"give --plugin FILE.py") as caught:
        spaces.get("\x1b[2J" + "x" * 10_000 + ".py:SPACE")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("a_space.py", "a_space.py:SPACE"),
        ("a_space", "a_space.py:SPACE"),
        ("a_space.py", "a_space:SPACE"),
        ("a_space.py", "/where/it/was/before/a_space.py:SPACE"),
    ],
)
def test_an_address_in_a_module_that_the_user_gave_is_known(
    folder: Path, given: str, stored: str
) -> None:
    user_modules.load(given)
    assert spaces.get(stored).name == "a-space"
    assert spaces.get("a-space").name == "a-space"


def test_the_file_at_the_path_comes_before_another_of_its_name(folder: Path) -> None:
    (folder / "other").mkdir()
    (folder / "other" / "a_space.py").write_text(FILE.format(name="the-other"))
    for given in ("a_space.py", "other/a_space.py"):
        user_modules.load(given)
    assert spaces.get("a_space.py:SPACE").name == "a-space"
    assert spaces.get("other/a_space.py:SPACE").name == "the-other"


def test_lpzero_yaml_in_the_working_folder_gives_the_spaces_that_it_names(folder: Path) -> None:
    entry = "{file: results.csv, space: 'a_space.py:SPACE', target: accuracy}"
    (folder / "lpzero.yaml").write_text(f"tables:\n  mine: {entry}\n")
    with pytest.raises(NotGivenError):
        spaces.get("b_space.py:SPACE")
    assert not was_run(folder)
    assert spaces.get("a_space.py:SPACE").name == "a-space"


def test_only_spaces_are_found(folder: Path) -> None:
    user_modules.load("a_space.py")
    with pytest.raises(UserCodeError, match="is a int, expected a space"):
        spaces.get("a_space.py:NUMBER")
    with pytest.raises(UnknownNameError, match="SPACE"):
        spaces.get("a_space.py:SPAEC")
    with pytest.raises(UserCodeError, match="is not an address"):
        spaces.get("a_space.py:__import__('os')")
    with pytest.raises(UserCodeError, match="expected a space"):
        spaces.get("os:system")


def test_workers_are_given_what_the_driver_was_given(folder: Path) -> None:
    spaces.load("a_space.py:SPACE")
    user_modules.load("json.tool")
    payload = Payload.of(abs)
    assert [module.path for module in payload.modules] == [str(folder / "a_space.py")]
    assert payload.imported == ("json.tool",)
    del sys.modules["json.tool"]
    with pytest.raises(UnknownNameError):  # it is imported, and has no such space
        spaces.get("json.tool:SPACE")
    assert "json.tool" in sys.modules
