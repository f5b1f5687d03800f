"""The pages of the site that are generated from declarations, and the links of a package."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import lpzero
from lpzero import proxies, verbs
from lpzero.options import FORMER, options
from lpzero.version import VERSION

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def site() -> dict[str, Any]:
    """The names of the configuration of Sphinx, which does not need Sphinx itself."""
    return runpy.run_path(str(ROOT / "docs" / "conf.py"))


def test_the_list_of_options_has_every_option(site: dict[str, Any]) -> None:
    pages = site["options_page"]().split("\n## ")
    assert len(pages) == len(verbs.commands())
    for name, page in zip(verbs.commands(), pages, strict=True):
        for entry in options(verbs.module(name).Request):
            is_shown = not entry.is_argument and entry.panel != FORMER
            assert (f"| `{entry.flag}` |" in page) == is_shown


def test_the_list_of_proxies_has_every_proxy(site: dict[str, Any]) -> None:
    page = site["proxies_page"]()
    assert [name for name in proxies.names() if f"| `{name}` |" not in page] == []


def test_the_list_of_functions_has_what_import_offers(site: dict[str, Any]) -> None:
    page = site["functions_page"]()
    assert "autoclass:: lpzero.Discovery\n" in page
    for name in lpzero.__all__:
        assert (f":: lpzero.{name}\n" in page) == callable(getattr(lpzero, name))


def test_every_page_is_in_the_side_bar(site: dict[str, Any]) -> None:
    listed = site["contents"]().splitlines()
    paths = ("docs/**/*.md", "docs/examples/*.ipynb", "*/*/README.md")
    for path in (path for pattern in paths for path in ROOT.glob(pattern)):
        assert path.relative_to(ROOT).with_suffix("").as_posix() in listed


def test_the_description_of_a_package_names_no_file() -> None:
    without_files = runpy.run_path(str(ROOT / ".ci" / "dist.py"))["without_files"]
    text = "![a\nb](docs/a.svg)\n\n[b](docs/b.md#c) [d](https://e) `f`"
    assert without_files(text) == "b [d](https://e) `f`"


def test_the_citation_is_of_this_version() -> None:
    assert f"\nversion: {VERSION}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_a_release_has_at_most_800_words_under_four_headings() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = text.split("\n## ")[1:]
    assert len(releases) >= 2
    for release in releases:
        assert len(release.split()) <= 800
        headings = re.findall(r"^### (.*)$", release, re.M)
        assert set(headings) <= {"Added", "Changed", "Fixed", "Results"}


def test_the_page_of_the_leaderboard_is_that_of_its_json(site: dict[str, Any]) -> None:
    docs = ROOT / "docs"
    board = json.loads((docs / "leaderboard.json").read_text(encoding="utf-8"))
    schema = json.loads((docs / "leaderboard.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(board, schema)
    assert len(board["cells"]) == sum(board["states"].values())
    assert site["leaderboard_summary"]() in (docs / "leaderboard.md").read_text(encoding="utf-8")
    of_every_table = site["leaderboard_page"]().splitlines()
    assert sum(line.startswith("| `") for line in of_every_table) >= 15
