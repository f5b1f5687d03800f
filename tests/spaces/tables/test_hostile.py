"""Files that are made to hang, crash or fill the memory are refused in one line."""

from __future__ import annotations

import logging
import os
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from spaces import tables
from spaces.errors import TableError, shown
from spaces.tables import nano, registry

DEEP = 100_000
BOMB = "\n".join(["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 60))])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[" * DEEP, "nested too deeply"),
        ("{" * DEEP, "nested too deeply"),
        ("- " * DEEP, "nested too deeply"),
        (BOMB, "YAML with aliases"),
        ("config_0_j0: &a [*a]", "YAML with aliases"),
        ("config_0_j0: {valid_ppl: " + "9" * 6000 + "}", "a value that YAML cannot hold"),
        ("config_0_j0: {valid_ppl: " + "9" * 4000 + "}", "expected a finite number"),
        ("config_0_j0: 2001-13-41", "a value that YAML cannot hold"),
        ("#" * (1 << 20), "at most 524,288 are read"),
    ],
)
def test_hostile_yaml(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "lts" / "random_GPT2_wt103" / "ppl_summary.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    refused("gpt2-wt103", tmp_path, message)


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (lambda path: path.write_text("[" * DEEP), "nested too deeply"),
        (lambda path: path.write_text(f'[{{"id": {"9" * 6000}}}]'), "thousands of digits"),
        (lambda path: path.write_bytes(b" " * (9 << 20)), "at most 8,388,608 are read"),
        (os.mkfifo, "not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
        (lambda path: path.mkdir(), "not a regular file"),
    ],
)
def test_hostile_json_and_what_is_not_a_file(
    tmp_path: Path, write: Callable[[Path], object], message: str
) -> None:
    path = tmp_path / "flexibert" / "BERT_benchmark.json"
    path.parent.mkdir(parents=True)
    write(path)
    refused("flexibert", tmp_path, message)
    assert tables.describe(tmp_path)  # lists it as not present


def packed(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x/data.pkl", bytes(2 << 20))


@pytest.mark.parametrize(
    ("write", "message"),
    [
        (os.mkfifo, "not a regular file"),
        (lambda path: path.symlink_to("/dev/zero"), "not a regular file"),
        (packed, "more than its own"),
        (lambda path: path.write_bytes(b"PK"), "not a file of torch.save"),
    ],
)
def test_hostile_archives(tmp_path: Path, write: Callable[[Path], object], message: str) -> None:
    path = tmp_path / "vit" / "gt_pit.pth"
    path.parent.mkdir(parents=True)
    write(path)
    refused("pit-c100", tmp_path, message)
    assert tables.describe(tmp_path)


def refused(name: str, root: Path, message: str) -> None:
    with pytest.raises(TableError, match=message) as caught:
        tables.load(name, root)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_a_value_is_shown_without_walking_all_of_it() -> None:
    value: list[object] = []
    for _ in range(100):
        value = [value, value]  # printed in full it would never end
    assert len(shown(value)) < 100
    assert shown(10**5000) == "an integer of thousands of digits"
    assert shown([1, "two"]) == "[1, 'two']"


def test_a_changed_table_is_used_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    source = nano.SOURCES[0]
    with caplog.at_level(logging.WARNING):
        tables.load(source.name)
    assert caplog.text == ""
    text = source.path.read_text()
    assert '"target": -2.' in text
    changed = tmp_path / "table.json"
    changed.write_text(text.replace('"target": -2.', '"target": -1.', 1))
    monkeypatch.setitem(registry._SOURCES, source.name, replace(source, path=changed))
    tables.load(source.name)
    assert f"{changed} differs from the published table {source.name}" in caplog.text
