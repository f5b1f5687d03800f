"""The pictures of the documentation are those of the run that the README quotes."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "pictures"
SOURCE = json.loads((FOLDER / "source.json").read_text(encoding="utf-8"))


def test_the_pictures_are_the_ones_that_the_script_wrote() -> None:
    found = {path.name: sha256(path.read_bytes()).hexdigest() for path in FOLDER.iterdir()}
    del found["source.json"]
    assert found == SOURCE["sha256"]
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 1_000_000


def test_they_show_the_winner_that_the_readme_quotes() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"chosen by --choose nested): {SOURCE['formula']}" in " ".join(text.split())
    assert f"test    31  {SOURCE['rho_test']:.3f}" in text


def test_each_picture_is_shown_somewhere() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    assert [name for name in SOURCE["sha256"] if f"pictures/{name}" not in text] == []
