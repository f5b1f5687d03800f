"""Figures of tables that claim to be the same quantity: those that differ between pages.

blocks of pages  ->  claims (table, label, measure, setting, figure)  ->  contradictions

What a cell is about is taken from the nearest of: the cell's own text, the head of its column, the
label of its row, the paragraph before the table, the headings, the page's opening. Two cells are
the same quantity if table, measure, setting and all other words of row and head agree. A cell whose
table or measure is not known claims nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

from experiments.pages import Block
from lpzero.judgement import counters
from lpzero.proxies import registry
from spaces.tables import names as table_names
from tests.experiments.quotations import agree

_FIGURE = re.compile(r"(?:`?([a-z][\w+-]*)`? )?([-−+]?\d+\.\d+)(?![\d%])(.*)")
_EMPTY = ("", "-")
_COUNTERS = frozenset(counters.names())
_SCORED = _COUNTERS | set(registry.names())
_TABLES = frozenset(table_names())
_ALIASES = {
    "FlexiBERT": "flexibert",
    "GLUE": "flexibert",
    "WikiText-103": "gpt2-wt103",
    "Penn Treebank": "rnn-columns",
}
_DATASETS = {"CIFAR-100": "c100-kd", "Flowers": "flowers-kd", "Chaoyang": "chaoyang-kd"}
_FAMILIES = {"autoformer": r"\b[Aa]uto[Ff]ormer", "pit": r"\b[Pp]i[Tt]\b"}
_NUMBERS = {"three": "3", "five": "5", "ten": "10", "twenty": "20"}
_PUBLISHED_DIMENSIONS = re.compile(r"public setting|published dimensions|upstream")
_TRUE_DIMENSIONS = re.compile(r"true (setting|dimensions|ones)")
# Other quantities than a correlation of scores with targets.
_OTHER = re.compile(
    r"interval|difference|second|ahead|least|reached|needed|accuracy|perplexity|loss|regret|rate\b"
    r"|chance|stability|against|\bn\b|differ|moves?\b|change|rho between|batches|weights|\bfit\b"
)
_MEASURES = {"tau": r"\b[Tt]au\b|Kendall", "Pearson": r"Pearson", "rho": r"\b[Rr]ho\b|Spearman"}
_OF_A_CELL = {
    "given parameters": r"given (the )?param",
    "within groups": r"\bwithin\b",
    "printed": r"printed",
    "released": r"released",
    "normalised": r"\bnormalised",
    "8,794 rows": r"8,?794",
    "275 rows": r"\b275\b",
}
_OF_A_TABLE = {
    "chains of one": r"[Cc]hains of one",
    "test rows": r"[Tt]est rho|test rows|unseen",
}
_NUMBERED = re.compile(r"\b(Table|Figure)s? [\dIVX]")
_PAPERS = re.compile(r"LPZero|ETAS|T-Razor|PreNAS|[Tt]raining-free")
_COUNTED = re.compile(r"(\w+) (splits)|over (\w+) (seeds)|--(seeds) (\d+)")
# Words of a label that say what is in the other facts, or nothing.
_FILLERS = re.compile(
    r"counter:|\balone\b|\bnumber of\b|\bours\b|\brho\b|\btau\b|\b(public|true) setting\b|printed"
    r"|\bpublished\b|\breleased recipe\b|\bof twenty\b|\bthe\b|given param\w*|\bwithin\b|normalised"
    r"|\bnot\b|\(.*?\)|8,?794|\b275\b|\d+ rows"
)


@dataclass(frozen=True, slots=True)
class Claim:
    """One figure and what it says it is."""

    table: str
    label: str  # the words of row and head that are left, in alphabetical order
    measure: str
    setting: frozenset[str]
    figure: str
    page: str
    section: str  # of a paper's page, which has one for each table or figure
    line: int

    @property
    def quantity(self) -> tuple[str, str, str, frozenset[str]]:
        """What must be equal for two figures to be comparable."""
        return self.table, self.label, self.measure, self.setting

    @property
    def place(self) -> tuple[str, str]:
        """Where two figures for one quantity must agree: the sections of all pages."""
        return self.page, self.section

    def __str__(self) -> str:
        words = ", ".join([self.table, self.label, self.measure, *sorted(self.setting)])
        return f"{self.page}:{self.line}: {self.figure} for {words}"


def claims(parts: list[Block]) -> Iterator[Claim]:
    """Every figure of a page's tables of which table and measure are known."""
    for part in parts:
        if part.kind != "table":
            continue
        above = [
            other.text
            for depth in range(len(part.headings) - 1, 0, -1)
            for other in parts
            if other.kind == "text" and other.headings == part.headings[:depth]
        ]
        section = next(filter(_NUMBERED.search, part.headings[1:]), "")
        around = [part.caption, " ".join(part.headings[::-1]), " ".join(above)]
        head, *rows = part.cells
        for number, row in enumerate(rows, 2):
            n_labels = next((i for i, cell in enumerate(row) if i and _is_value(cell)), len(row))
            label = " ".join(row[:n_labels])
            for place in range(n_labels, min(len(row), len(head))):
                found = _claim(row[place], _column(head, place), label, around)
                if found is not None:
                    yield Claim(*found, part.page, section, part.line + number)


def contradictions(found: Iterable[Claim]) -> Iterator[tuple[Claim, Claim]]:
    """Pairs of two places for one quantity whose figures differ at their common precision."""
    for group in repeated(found):
        for one, other in combinations(group, 2):
            if one.place != other.place and not agree(one.figure, other.figure):
                yield one, other


def repeated(found: Iterable[Claim]) -> list[list[Claim]]:
    """The quantities that more than one section gives."""
    groups: dict[object, list[Claim]] = {}
    for claim in found:
        groups.setdefault(claim.quantity, []).append(claim)
    return [group for group in groups.values() if len({claim.place for claim in group}) > 1]


def _is_value(cell: str) -> bool:
    return cell in _EMPTY or _FIGURE.match(cell) is not None


def _column(head: list[str], place: int) -> str:
    """The head of a column; `ours` beside `X printed` is about X, too."""
    before = head[place - 1]
    return f"{before.replace('printed', '')} ours" if head[place] == "ours" else head[place]


def _claim(
    cell: str, column: str, label: str, around: list[str]
) -> tuple[str, str, str, frozenset[str], str] | None:
    found = _FIGURE.match(cell)
    if found is None or _OTHER.search(column) or _OTHER.search(label):
        return None
    name, figure, rest = found.groups()
    scopes = [re.split("[,;]", rest)[0], column, label, *around]
    table, measure = _table(scopes), _measure(scopes)
    if table is None or measure is None or (name and name not in _SCORED):
        return None
    what = name or _words(f"{label} {column}", table)
    setting = _setting(scopes)
    if what in _COUNTERS:  # they read no weights
        setting = frozenset(fact for fact in setting if not fact.endswith("seeds"))
    return table, what, measure, setting, figure.replace("−", "-").lstrip("+")


def _table(scopes: list[str]) -> str | None:
    """The one table that the nearest scope names; None if it names several, or no scope any."""
    for scope in scopes:
        found = _named(scope, _family(scopes))
        if len(found) == 1:
            (table,) = found
            return "flexibert-upstream" if table == "flexibert" and _is_upstream(scopes) else table
        if found:
            return None
    return None


def _is_upstream(scopes: list[str]) -> bool:
    for scope in scopes[:-1]:
        if _PUBLISHED_DIMENSIONS.search(scope) or _TRUE_DIMENSIONS.search(scope):
            return _PUBLISHED_DIMENSIONS.search(scope) is not None
    return False


def _family(scopes: list[str]) -> str:
    """The family of vision transformers that the nearest scope names alone."""
    for scope in scopes:
        found = [name for name, pattern in _FAMILIES.items() if re.search(pattern, scope)]
        if len(found) == 1:
            return found[0]
    return ""


def _named(scope: str, family: str) -> set[str]:
    """Tables by their names, by what they hold, and by data set within a family."""
    words = re.findall(r"[\w+-]+", scope)
    found = {word for word in words if word in _TABLES}
    found |= {f"{family}-{word}" for word in words if f"{family}-{word}" in _TABLES}
    found |= {table for alias, table in _ALIASES.items() if alias in scope}
    if family:
        found |= {f"{family}-{suffix}" for word, suffix in _DATASETS.items() if word in scope}
    return found


def _measure(scopes: list[str]) -> str | None:
    """The measure that the nearest scope names first."""
    for scope in scopes:
        found = {
            match.start(): measure
            for measure, pattern in _MEASURES.items()
            if (match := re.search(pattern, scope))
        }
        if found:
            return found[min(found)]
    return None


def _setting(scopes: list[str]) -> frozenset[str]:
    """What else cell, head and row say of the figure, and the paragraph and headings above them."""
    near, above = " | ".join(scopes[:3]), " | ".join(scopes[:-1])
    found = {fact for fact, pattern in _OF_A_CELL.items() if re.search(pattern, near)}
    found |= {fact for fact, pattern in _OF_A_TABLE.items() if re.search(pattern, above)}
    if match := _COUNTED.search(above):
        words = [word for word in match.groups() if word]
        number, noun = sorted(words, key=lambda word: word in ("splits", "seeds"))
        found.add(f"{_NUMBERS.get(number, number)} {noun}")
    if "printed" in found:
        found |= set(_PAPERS.findall(scopes[-2])[:1])
    return frozenset(found)


def _words(label: str, table: str) -> str:
    """The words that say what was scored, in one spelling and order."""
    text = label.replace("·√", "-sqrt-").replace("_", " ")
    for name in (table, *_DATASETS):
        text = text.replace(name, " ")
    text = _FILLERS.sub(" ", text.lower())
    parts = set(table.split("-", 1)) | {table}
    words = re.findall(r"[\w+-]+", text)
    words = [part for word in words if word not in parts for part in word.split("-") if part]
    joined = "-".join(words)
    return joined if joined in _SCORED else "-".join(sorted(words))
