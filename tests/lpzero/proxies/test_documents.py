"""The page on proxies names every one of them."""

from __future__ import annotations

import re
from pathlib import Path

from lpzero.proxies import names

PAGE = Path(__file__).parents[3] / "docs" / "proxies.md"


def test_the_page_names_every_proxy_and_no_other() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    named: set[str] = set()
    for row in rows:
        for name in re.findall(r"`([^`]+)`", row.split("|")[1]):
            variants = {f"{known}{name}" for known in named if row.count(f"`{known}`")}
            named |= variants if name.startswith("-") else {name}
    assert named == set(names())
