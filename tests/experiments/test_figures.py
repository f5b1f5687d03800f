"""No two pages give different figures for one quantity, and quoted figures stand on their page."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from experiments import results
from experiments.pages import Block, blocks, read
from tests.experiments.figures import claims, contradictions, repeated
from tests.experiments.quotations import (
    agree,
    names_a_page,
    numbers,
    quoted,
    unfounded,
    without_source,
)

ROOT = Path(__file__).parents[2]
QUOTING = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXPERIMENTS = sorted([*ROOT.glob("experiments/*/README.md"), *ROOT.glob("tests/*/README.md")])
# Pairs of pages and a label whose figures may differ, each with its reason.
MAY_DIFFER: dict[tuple[str, str, str], str] = {}
# Figures that stand nowhere else, by page, each with its reason.
ON_NO_OTHER_PAGE: dict[tuple[str, str], str] = {}

# Correlations that no experiment's page has, by page: settings, and what was measured for the page.
THRESHOLDS = "thresholds of --stable, not results"
NAMES_NO_PAGE = {
    "docs/campaigns.md": ({"0.998"}, THRESHOLDS),
    "docs/engine-proxies.md": (None, "the card of the engine's proxies, with figures of its own"),
    "docs/exports.md": (None, "sketches against whole tensors, by the command beside the figures"),
    "docs/leaderboard.md": (None, "docs/leaderboard.json, by the command on the page"),
    "docs/search.md": ({"0.954"}, "pounds of CO2 per kWh, from the paper that is named"),
    "docs/statistics.md": (None, "the table of experiments/benchmarks, whose page refers to it"),
    "docs/tables.md": ({"0.987", "0.956", "0.985"}, "ceilings that the shipped tables hold"),
}


@cache
def _parts(path: Path) -> list[Block]:
    return read(path, ROOT)


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.slow
def test_no_two_pages_contradict_each_other() -> None:
    found = [claim for path in (*QUOTING, *EXPERIMENTS) for claim in claims(_parts(path))]
    assert len(repeated(found)) >= 60  # otherwise the labels are no longer understood
    pairs = {
        (one.page, other.page, one.label): (one, other) for one, other in contradictions(found)
    }
    assert {key: [str(claim) for claim in pair] for key, pair in pairs.items()
            if key not in MAY_DIFFER} == {}  # fmt: skip
    assert pairs.keys() == MAY_DIFFER.keys()


def test_the_page_of_results_is_what_the_pages_say() -> None:
    assert results.page() == _text(results.PAGE), "python -m experiments.results writes it"
    assert _text(results.PAGE).count("](../experiments/") >= 100


@pytest.mark.slow
def test_every_quoted_figure_stands_on_the_page_it_is_quoted_from() -> None:
    assert sum(len(quoted(_parts(path), ROOT)) for path in QUOTING) >= 100
    pages = (*QUOTING, *EXPERIMENTS)
    missing = [one for path in pages for one in unfounded(_parts(path), _text, ROOT)]
    missing = [one for one in missing if (one.page, one.figure) not in ON_NO_OTHER_PAGE]
    assert [str(one) for one in missing] == []


def test_every_correlation_in_the_documentation_names_its_page() -> None:
    pages = [
        ROOT / "README.md",
        *(ROOT / "docs").glob("*.md"),
        *(ROOT / "docs/papers").glob("*.md"),
    ]
    # Enough of them do; otherwise blocks or links are no longer understood.
    assert sum(len(quoted(_parts(path), ROOT)) for path in pages) >= 100
    found: dict[str, set[str]] = {}
    places: list[str] = []
    for one in [one for path in pages for one in without_source(_parts(path), ROOT)]:
        allowed, _ = NAMES_NO_PAGE.get(one.page, (set(), ""))
        if allowed is None or one.figure in allowed:
            found.setdefault(one.page, set()).add(one.figure)
        else:
            places.append(f"{one.page}:{one.line}: {one.figure} names no page")
    assert places == []
    # No exception outlives its figures.
    assert found.keys() == NAMES_NO_PAGE.keys()
    assert all(allowed in (None, found[page]) for page, (allowed, _) in NAMES_NO_PAGE.items())


def test_every_figure_under_results_in_the_changelog_names_its_page() -> None:
    items = [part for part in _parts(ROOT / "CHANGELOG.md") if part.headings[-1] == "Results"]
    with_figures = [
        part
        for part in items
        if any(
            abs(float(figure)) < 1 and (part.page, figure) not in ON_NO_OTHER_PAGE
            for figure in numbers(part.text)
        )
    ]
    assert len(with_figures) >= 15
    assert [part.place for part in with_figures if not names_a_page(part, ROOT)] == []


def _page(name: str, text: str) -> list[Block]:
    return blocks(text, f"experiments/{name}/README.md")


FIRST = """# Proxies

Spearman's rho on gpt2-wt103, all 200 rows:

| proxy | printed | ours | interval |
|---|---|---|---|
| snip | 0.970 | 0.969 | 0.955, 0.977 |
| *attention parameters* | - | 0.976 | 0.963, 0.983 |
"""


@pytest.mark.parametrize(
    ("second", "differing"),
    [
        # The same in other words, with fewer digits, elsewhere, of another measure or setting.
        ("Rho:\n\n| table | `snip` |\n|---|---|\n| gpt2-wt103 | 0.97 |\n", []),
        ("Rho:\n\n| | flexibert |\n|---|---|\n| snip | 0.111 |\n", []),
        ("Rho, gpt2-wt103:\n\n| proxy | tau |\n|---|---|\n| snip | 0.111 |\n", []),
        ("Rho, gpt2-wt103:\n\n| proxy | within |\n|---|---|\n| snip | 0.111 |\n", []),
        ("Test rho over five splits, gpt2-wt103:\n\n| | rho |\n|---|---|\n| snip | 0.111 |\n", []),
        ("Rho, gpt2-wt103:\n\n| | rho |\n|---|---|\n| snip of the head | 0.111 |\n", []),
        # Another figure for the same.
        ("Spearman's rho:\n\n| table | `snip` |\n|---|---|\n| gpt2-wt103 | 0.971 |\n", ["snip"]),
        ("Spearman's rho:\n\n| table | `snip` |\n|---|---|\n| gpt2-wt103 | 0.96 |\n", ["snip"]),
        (
            "Rho on gpt2-wt103:\n\n| | ours |\n|---|---|\n| attention-parameters | −0.976 |\n",
            ["attention-parameters"],
        ),
        (
            "Rho:\n\n| chosen on | gpt2-wt103 |\n|---|---|\n"
            "| best counter | attention-parameters 0.967 |\n",
            ["attention-parameters"],
        ),
    ],
)
def test_made_up_pages_contradict_each_other_where_they_should(
    second: str, differing: list[str]
) -> None:
    found = [*claims(_page("one", FIRST)), *claims(_page("two", f"# Others\n\n{second}"))]
    assert len(found) >= 4  # three of the first page, and at least one of the second
    pairs = list(contradictions(found))
    assert [one.label for one, _ in pairs] == differing
    assert all((one.page, other.page) == (found[0].page, found[-1].page) for one, other in pairs)


def test_a_cell_without_a_known_table_or_measure_claims_nothing() -> None:
    table = "| proxy | {} |\n|---|---|\n| snip | 0.111 |\n"
    for text in ("Rho, gpt2-wt103:\n\n" + table.format("seconds"),
                 "On gpt2-wt103:\n\n" + table.format("found"),
                 "Rho on gpt2-wt103 and flexibert:\n\n" + table.format("found")):  # fmt: skip
        assert list(claims(_page("one", f"# Others\n\n{text}"))) == []


def test_a_figure_printed_by_another_paper_is_another_quantity() -> None:
    table = "Spearman's rho, gpt2-wt103:\n\n| proxy | printed |\n|---|---|\n| snip | {} |\n"
    pages = [f"# ETAS Table 4\n\n{table}".format(0.57), f"# LPZero Table 4\n\n{table}".format(0.97)]
    found = [claim for n, page in enumerate(pages) for claim in claims(_page(str(n), page))]
    assert [claim.figure for claim in found] == ["0.57", "0.97"]
    assert list(contradictions(found)) == []


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("- SNIP has 0.970 ([there](experiments/lpzero/README.md)).", []),
        ("- SNIP has 0.97, before 0.5 ([there](experiments/lpzero/README.md)).", []),
        ("- SNIP has 0.971 ([there](experiments/lpzero/README.md)).", ["0.971"]),
        ("- GraSP has −0.970 (`experiments/lpzero`).", ["-0.970"]),
        ("- Nothing is quoted: 0.971.", []),
        ("As in `experiments/lpzero`:\n\n| a | b |\n|---|---|\n| snip | 0.972 |", ["0.972"]),
    ],
)
def test_a_quoted_figure_that_its_page_does_not_have_is_found(
    text: str, missing: list[str]
) -> None:
    found = unfounded(blocks(text, "CHANGELOG.md"), lambda path: "| snip | 0.970 |", ROOT)
    assert [one.figure for one in found] == missing


@pytest.mark.parametrize(
    ("text", "loose"),
    [
        ("SNIP has 0.970 ([there](../experiments/lpzero/README.md)).", []),
        (
            "SNIP has 0.970, DSS −0.971, in 0.12 s, 1.234 times, `--stable 0.998`.",
            ["0.970", "-0.971"],
        ),
        ("| a | b |\n|---|---|\n| snip | 0.972 |\n| dss | 0.9731 |", ["0.972"]),
        ("By `experiments/rankings`:\n\n| a | b |\n|---|---|\n| snip | 0.972 |", []),
        ("> It is ahead by 0.004.", []),
        ("```\nsnip 0.970\n```", []),
    ],
)
def test_a_correlation_that_names_no_page_is_found(text: str, loose: list[str]) -> None:
    found = without_source(blocks(text, "docs/made-up.md"), ROOT)
    assert [one.figure for one in found] == loose


@pytest.mark.parametrize(
    ("one", "other", "do"),
    [("0.943", "0.94", True), ("0.943", "0.9428", True), ("0.943", "0.944", False),
     ("0.95", "0.943", False), ("0.5", "-0.5", False), ("0.265", "0.2649", True)],
)  # fmt: skip
def test_figures_agree_at_the_precision_that_both_have(one: str, other: str, do: bool) -> None:
    assert agree(one, other) is do
    assert agree(other, one) is do
