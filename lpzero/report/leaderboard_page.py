"""The page of a leaderboard: every proxy on every table, which is best, and what is missing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from lpzero.proxies.leaderboard import FITTED
from lpzero.report.chart import Axis, Chart, Panel, Points
from lpzero.report.figures import FOUND
from lpzero.report.markup import (
    NOTHING,
    Cell,
    Child,
    Markup,
    element,
    joined,
    number,
    table,
    with_interval,
)
from lpzero.report.page import Content, Section, reproduction
from lpzero.report.ranking_page import COLUMNS, Row, proxies_table
from lpzero.runs.run import Run

_MOST_DRAWN = 30  # mean ranks of a chart
_MATRIX = "matrix"
_FEW = 6  # names that are not folded
Board = Mapping[str, Any]


def content(run: Run, *others: Any) -> Content:
    """What the page of a leaderboard says."""
    board = run.result
    if board is None:
        there = [element("p", "There is no result: see the remarks above.")]
        return Content("Leaderboard", run.remarks, [Section(FOUND, "Result", there)])
    n_proxies, n_tables = len(board["proxies"]), len(board["tables"])
    return Content(
        f"Leaderboard: {n_proxies} proxies on {n_tables} tables",
        run.remarks,
        [
            Section(FOUND, "Which proxy ranks best over tables?", _found(board), "Best"),
            Section("tables", "Which proxy ranks which table?", _every(board), "All tables"),
            Section("each", "What does a proxy say on a table?", _each(board), "Each table"),
            Section("missing", "What is missing, and why?", _missing(board), "Missing"),
            reproduction(run, _about_tables(board)),
        ],
    )


def _found(board: Board) -> list[Markup | Chart | None]:
    states = board["states"]
    cells = ", ".join(f"{count:,} {state}" for state, count in states.items())
    parts: list[Markup | Chart | None] = []
    for place, means in enumerate(board["mean_ranks"]):
        best = means["rows"][0]
        said = (
            f"{means['over'].capitalize()}: of {len(means['rows'])} proxies that are complete on"
            f" every space, {best['proxy']} has the best mean rank, {best['mean_rank']:.1f}."
        )
        parts.append(element("p", said, class_="headline" if not place else None))
        parts += [_mean_chart(means, place), _mean_table(means)]
    if not parts:
        said = "Mean ranks need three proxies that are complete on tables of two spaces."
        parts.append(element("p", said, class_="headline"))
    return [*parts, element("p", f"Cells of a proxy and a table: {cells}.")]


def _mean_chart(means: Board, place: int) -> Chart:
    rows, half = means["rows"][:_MOST_DRAWN], means["critical_difference"] / 2
    n = len(means["rows"])
    series = Points(
        x=[row["mean_rank"] for row in rows],
        y=list(range(len(rows))),
        hover=[f"{row['proxy']}\nmean rank {row['mean_rank']:.1f}" for row in rows],
        # No rank is beyond these, and two bars overlap with them if they do without.
        intervals=[
            (max(1.0, row["mean_rank"] - half), min(float(n), row["mean_rank"] + half))
            for row in rows
        ],
    )
    values = "; ".join(f"{row['proxy']} {row['mean_rank']:.1f}" for row in rows[:12])
    return Chart(
        name=f"mean-ranks-{place + 1}",
        caption=(
            f"Mean rank over {len(means['spaces'])} spaces ({', '.join(means['spaces'])}), the best"
            f" {len(rows)} of {len(means['rows'])}. Proxies whose bars overlap do not differ:"
            f" critical difference {means['critical_difference']:.1f} (Nemenyi, 5%);"
            f" Friedman p = {means['friedman_p']:.2g}."
        ),
        words=f"Chart of mean ranks: {values}.",
        panels=[
            Panel(
                series=[series],
                x=Axis(title="mean rank, 1 is the best; ± half the critical difference"),
                y=Axis(names=[row["proxy"] for row in rows]),
            )
        ],
    )


def _mean_table(means: Board) -> Markup:
    # A rank is best when it is small: the order of the page, and the first that a click gives.
    columns: dict[str, Callable[[Row], Child | Cell]] = {
        "proxy": COLUMNS["proxy"],
        "family": lambda row: row["family"],
        "mean rank": lambda row: number(row["mean_rank"], 1),
        "mean ρ": lambda row: number(row["mean_rho"]),
    }
    left_out = "; ".join(f"{name} ({len(of)})" for name, of in means["left_out"].items())
    n_spaces = len(means["spaces"])
    said = (
        "A space counts once, with the mean ρ of its tables, which share their architectures. Left"
        f" out, because some of their cells are not complete or in sample on so many of"
        f" {n_spaces} spaces: {left_out or 'none'}."
    )
    caption = f"{len(means['rows'])} proxies that are complete on all {n_spaces} spaces"
    made = proxies_table(caption, means["rows"], columns)
    summary = element("summary", "All mean ranks")
    return element("details", summary, element("p", said, class_="note"), made)


def _every(board: Board) -> list[Markup | Chart | None]:
    """The matrix: a row per proxy, a column per table."""
    cells = {(cell["proxy"], cell["table"]): cell for cell in board["cells"]}
    first = board["mean_ranks"][0]["rows"] if board["mean_ranks"] else []
    ranks = {row["proxy"]: row["mean_rank"] for row in first}
    columns: dict[str, Callable[[Row], Child | Cell]] = {
        "proxy": lambda row: row["proxy"],
        "mean rank": lambda row: number(ranks.get(row["proxy"]), 1),
    }
    for entry in board["tables"]:
        columns[entry["name"]] = partial(_on_table, cells, entry["name"])
    columns |= {"family": lambda row: row["family"], "needs": lambda row: row["needs"]}
    n_scored = Counter(cell["proxy"] for cell in board["cells"] if cell["n"])

    def place(row: Row) -> tuple[float, int, str]:
        name = row["proxy"]
        return ranks.get(name, float("inf")), -n_scored[name], name

    order = sorted(board["proxies"], key=place)
    legend = (
        "Spearman's ρ with the target on all rows. In brackets: chosen on this table, so in sample."
        " c: counts only, nothing is left of it given the table's best count (95% interval of the"
        " partial ρ, paired bootstrap). 40/200: on so many rows so far. ×: refused; –: missing."
    )
    families = list(dict.fromkeys(row["family"] for row in board["proxies"]))
    buttons = [element("button", name, type="button", data_wanted=name) for name in families]
    every = element("button", "all", type="button", data_wanted="")
    controls = element(
        "div",
        element("label", "Show only rows with", for_="filter"),
        element("input", id="filter", type="search", autocomplete="off", spellcheck="false"),
        every,
        *buttons,
        element("output", "", for_="filter", id="filtered"),
        class_="control",
        data_controls=_MATRIX,
        hidden=True,  # until the script that implements it runs
    )
    caption = f"{len(order)} proxies on {len(board['tables'])} tables"
    made = proxies_table(caption, order, columns, _MATRIX)
    return [element("p", legend), controls, made]


def _on_table(cells: Mapping[tuple[str, str], Row], table: str, row: Row) -> Cell:
    return _value(cells.get((row["proxy"], table)))


def _value(cell: Row | None) -> Cell:
    """A cell of the matrix."""
    if cell is None or cell["state"] == "missing":
        return Cell(NOTHING, None, True)
    if cell["state"] == "refused":
        return Cell(element("span", "×", class_="note"), "", True)
    shown = number(cell["rho"]).shown
    if cell["in_sample"]:
        shown = f"({shown})"
    flaw = " constant" if cell["flaw"] == "constant" else ""
    mark = f"{flaw}{' c' if cell['counts_only'] and not flaw else ''}"
    part = "" if cell["state"] == "complete" else f" {cell['n']}/{cell['rows']}"
    beside = element("span", f"{mark}{part}", class_="note") if mark or part else None
    return Cell(joined(shown, beside), float(cell["rho"]), True)


def _each(board: Board) -> list[Markup | Chart | None]:
    """A folded table for each table, with everything that was measured."""
    about = {entry["proxy"]: entry for entry in board["proxies"]}
    columns: dict[str, Callable[[Row], Child | Cell]] = {
        "proxy": COLUMNS["proxy"],
        "family": lambda row: about[row["proxy"]]["family"],
        "ρ": COLUMNS["ρ"],
        "given parameters": COLUMNS["given parameters"],
        "given the best count": lambda row: with_interval(
            row.get("rho_given_count"), row.get("rho_given_count_ci")
        ),
        "within groups": COLUMNS["within groups"],
        "pairs in order": COLUMNS["pairs in order"],
        "untied": COLUMNS["untied"],
        "top 10%": COLUMNS["top 10%"],
        "ms": COLUMNS["ms"],
        "needs": lambda row: about[row["proxy"]]["needs"],
        "rows": lambda row: number(row["n"]),
        "remarks": _state,
    }
    note = (
        "Groups have equal depth and width; pairs in order: of two rows of a group, how often the"
        " better one has the larger score; untied: the expected ρ when ties are broken at random;"
        " ms: processor time of a network, its share of passes included, – for what is read from"
        " sketches."
    )
    parts: list[Markup | Chart | None] = [element("p", note)]
    for entry in board["tables"]:
        rows = [cell for cell in board["cells"] if cell["table"] == entry["name"] and cell["n"]]
        rows.sort(key=lambda cell: (-cell["rho"], cell["proxy"]))
        free = [cell for cell in rows if not cell["in_sample"] and is_proxy(about, cell)]
        best = f"; best {free[0]['proxy']} {number(free[0]['rho']).shown}" if free else ""
        told = f"{entry['name']}: {entry['target']}, {entry['n']} rows, {len(rows)} proxies{best}"
        made = proxies_table(f"{len(rows)} proxies, best first", rows, columns)
        parts.append(element("details", element("summary", told), made))
    return parts


def _state(cell: Row) -> str:
    words = [] if cell["state"] == "complete" else [cell["state"]]
    if cell["flaw"] or cell["counts_only"]:
        words.append(cell["flaw"] or "counts only")
    words += [f"{reason} ({count})" for reason, count in cell["failures"].items()]
    return "; ".join(words) or NOTHING


def _missing(board: Board) -> list[Markup | Chart | None]:
    """What is not complete, by table and by reason."""
    by_table: list[list[Child | Cell]] = []
    reasons: dict[str, set[str]] = defaultdict(set)
    rows_of: dict[str, int] = defaultdict(int)
    for entry in board["tables"]:
        cells = [cell for cell in board["cells"] if cell["table"] == entry["name"]]
        counts = [sum(cell["state"] == state for cell in cells) for state in board["states"]]
        names = [cell["proxy"] for cell in cells if cell["left"]]
        by_table.append([entry["name"], *map(number, counts), _folded(names)])
        for cell in cells:
            for reason, count in cell["failures"].items():
                reasons[reason].add(cell["proxy"])
                rows_of[reason] += count
    lines: list[list[Child | Cell]] = [
        [reason, number(rows_of[reason]), _folded(sorted(names))]
        for reason, names in sorted(reasons.items(), key=lambda item: (-rows_of[item[0]], item[0]))
    ]
    states: Sequence[Child | Cell] = ["table", *board["states"], "not computed on every row yet"]
    return [
        table("Cells of each table", [states], by_table, sortable=True),
        table(
            "Why rows have no score",
            [["reason", "rows", "proxies"]],
            lines,
            sortable=True,
        )
        if lines
        else None,
    ]


def _folded(names: Sequence[str]) -> Child:
    if len(names) <= _FEW:
        return ", ".join(names) or NOTHING
    summary = element("summary", f"{len(names)} proxies")
    return element("details", summary, ", ".join(names))


def is_proxy(about: Mapping[str, Board], cell: Row) -> bool:
    """Whether the cell is of a proxy, not of what was fitted to the table's other rows."""
    return bool(about[cell["proxy"]]["family"] != FITTED)


def _about_tables(board: Board) -> Markup:
    rows: list[list[Child | Cell]] = [
        [
            entry["name"],
            entry["space"],
            entry["target"],
            number(entry["n"]),
            element("code", entry["best_count"]),
            entry["licence"],
            element("code", entry["digest"][:12]),
        ]
        for entry in board["tables"]
    ]
    header = ["table", "space", "target", "rows", "best count", "licence", "digest"]
    return table("Tables", [header], rows)
