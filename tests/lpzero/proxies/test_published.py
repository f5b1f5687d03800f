"""Published figures, compared with the tables in the text of the papers where that is at hand."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from lpzero.errors import InputError
from lpzero.proxies import names
from lpzero.proxies.published import figures, printed_in

# What a paper calls a proxy, where it is not our name with spaces or underscores for hyphens.
CALLED = {
    "no.params": "parameters",
    "params": "parameters",
    "decoder.params": "decoder-parameters",
    "gradnorm": "grad-norm",
    "naswot": "activation-distance",
    "ld": "length-distortion",
}
LPZERO, ETAS = "LPZero: Language Model", "ETAS: Zero-Shot"
IMAGES = [f"autoformer-{name}-kd" for name in ("c100", "flowers", "chaoyang")]


@pytest.fixture(scope="module")
def papers() -> list[str]:
    """The text of the papers, from LPZERO_PAPERS or the folder `papers` beside the tables."""
    beside = Path(os.environ.get("LPZERO_DATA", "/nowhere")).parent / "papers"
    folder = Path(os.environ.get("LPZERO_PAPERS", beside))
    found = [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.txt"))]
    if not found:
        pytest.skip("the text of the papers is not at hand: name its folder in LPZERO_PAPERS")
    return found


def printed(papers: list[str], title: str, caption: str) -> dict[str, list[float]]:
    """The numbers of each row of the table above the caption, without their deviations."""
    [text] = [paper for paper in papers if paper.startswith(title)]
    lines = text[: text.index(f"\n{caption}")].rstrip("\n").split("\n")
    rows = {}
    while "\t" in lines[-1]:
        label, *cells = lines.pop().split("\t")
        label = re.sub(r"\(.*", "", label).strip().lower().rstrip(".")
        first = [re.search(r"-?\d\.\d+", cell) for cell in cells]
        name = re.sub(r"[ _]", "-", CALLED.get(label, label))
        rows[name] = [float(number[0]) for number in first if number is not None]
    return {name: numbers for name, numbers in rows.items() if numbers}


def ours(table: str, source: str) -> dict[str, list[float | None]]:
    """Tau and rho, as the papers' columns are ordered."""
    return {name: [figure.tau, figure.rho] for name, figure in printed_in(table, source).items()}


@pytest.mark.parametrize(
    ("table", "caption", "discovered"),
    [("flexibert", "Table 3", "lpzero-flexibert"), ("gpt2-wt103", "Table 4", "lpzero-gpt2")],
)
def test_the_tables_of_lpzero_are_as_printed(
    table: str, caption: str, discovered: str, papers: list[str]
) -> None:
    rows = printed(papers, LPZERO, f"{caption}:")
    rows[discovered] = rows.pop("lpzero")
    assert len(rows) >= 15
    assert ours(table, f"LPZero {caption}") == rows


def test_table_4_of_etas_is_as_printed(papers: list[str]) -> None:
    rows = {name: both[:2] for name, both in printed(papers, ETAS, "Table 4:").items()}
    assert len(rows) == 12
    assert ours("gpt2-wt103", "ETAS Table 4") == rows


@pytest.mark.parametrize("place", range(3))
def test_table_3_of_etas_is_as_printed(place: int, papers: list[str]) -> None:
    rows = printed(papers, ETAS, "Table 3:")
    rows.pop("tvt")  # a proxy that we do not have
    assert len(rows) == 12
    expected = {name: three[2 * place : 2 * place + 2] for name, three in rows.items()}
    assert ours(IMAGES[place], "ETAS Table 3") == expected


def test_a_proxy_has_the_figures_of_every_source() -> None:
    found = {figure.source: figure for figure in figures("gpt2-wt103", "snip")}
    assert set(found) == {"LPZero Table 4", "ETAS Table 4"}
    for source, figure in found.items():
        assert printed_in("gpt2-wt103", source)["snip"] == figure
        assert set(printed_in("gpt2-wt103", source)) <= set(names())
    assert figures("nano-gpt2", "snip") == []
    with pytest.raises(InputError, match="prints nothing for table nano-gpt2; known: nothing"):
        printed_in("nano-gpt2", "ETAS Table 4")
