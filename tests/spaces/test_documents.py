"""The page on spaces names every one of them with its true size."""

from __future__ import annotations

from pathlib import Path

import spaces

PAGE = Path(__file__).parents[2] / "docs" / "spaces.md"
SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def written(cardinality: int) -> str:
    if cardinality < 10**6:
        return f"{cardinality:,}"
    mantissa, exponent = f"{cardinality:.2e}".split("e+")
    return f"{mantissa}·10{str(int(exponent)).translate(SUPERSCRIPTS)}"


def test_the_page_names_every_space_and_its_size() -> None:
    rows = [line.split("|") for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    found = {row[1].strip().strip("`"): row[2].strip() for row in rows}
    assert found == {name: written(spaces.get(name).cardinality()) for name in spaces.names()}


def test_bert_base_has_the_size_the_page_says() -> None:
    base = spaces.BERT.from_json(
        {
            "hidden": 768,
            "layers": [{"operation": "sdp", "heads": 12, "ffn": 3072, "stacks": 1}] * 12,
        }
    )
    page = PAGE.read_text()
    assert f"{spaces.BERT.parameters(base):,} parameters" in page
    assert f"{spaces.BERT.flops(base, 128) / 1e9:.1f} billion\nflops" in page
