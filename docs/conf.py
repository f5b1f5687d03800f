"""Builds the site of the documentation from the repository's Markdown: `make docs`.

The source directory is the repository, so that links between README, docs and experiments are the
same in a clone and on the site. Pages whose content is declared in the code (options, proxies, the
Python functions) get it when they are read.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
_BEST = 12  # mean ranks of the summary
sys.path.insert(0, str(ROOT))

project = "LPZero engine"
author = copyright = "the LPZero engine developers"
root_doc = "README"
extensions = ["myst_nb", "sphinx.ext.autodoc"]
include_patterns = ["*.md", "docs/**.md", "docs/examples/*.ipynb"]
include_patterns += ["experiments/README.md", "experiments/**/README.md", "tests/**/README.md"]
# Notebooks are run when they are built, in a folder of their own; an error ends the build.
nb_execution_mode = "force"
nb_execution_in_temp = nb_execution_raise_on_error = nb_merge_streams = True
nb_execution_timeout = 600
html_theme = "furo"
html_title = project
myst_heading_anchors = 4
autodoc_typehints = "description"
# Titles of experiments may repeat, and code fences name no language.
suppress_warnings = ["myst.header", "myst.strikethrough", "misc.highlighting_failure"]
html_show_sphinx = False


def options_page() -> str:
    """The options of every verb, from their declarations."""
    from lpzero import verbs
    from lpzero.options import FORMER, options

    lines = []
    for name, about in verbs.commands().items():
        lines += [f"## {name}", "", about, "", "| option | panel | meaning |", "|---|---|---|"]
        for entry in options(verbs.module(name).Request):
            if entry.panel != FORMER and not entry.is_argument:
                text = entry.help.replace("|", "\\|")
                lines.append(f"| `{entry.flag}` | {entry.panel} | {text} |")
        lines.append("")
    return "\n".join(lines)


def proxies_page() -> str:
    """The proxies by name, from their declarations."""
    from lpzero import proxies

    lines = ["| proxy | what it is |", "|---|---|"]
    for name in proxies.names():
        about = (getattr(proxies.get(name), "definition", "") or "").replace("|", "\\|")
        lines.append(f"| `{name}` | {' '.join(about.split())} |")
    return "\n".join(lines)


def functions_page() -> str:
    """The functions and classes of `import lpzero`, from their docstrings."""
    import lpzero

    lines = ["```{eval-rst}"]
    for name in filter(lambda name: callable(getattr(lpzero, name)), lpzero.__all__):
        kind = "autoclass" if isinstance(getattr(lpzero, name), type) else "autofunction"
        lines += [f".. {kind}:: lpzero.{name}", ""]
    return "\n".join([*lines, "```"])


def leaderboard_summary() -> str:
    """The best mean ranks of the stored leaderboard, and the cells and the best of each table."""
    board = _leaderboard()
    families = {entry["proxy"]: entry["family"] for entry in board["proxies"]}
    lines = []
    for means in board["mean_ranks"]:
        lines += [
            f"{means['over'].capitalize()}, {len(means['rows'])} proxies on {len(means['spaces'])}"
            f" spaces ({', '.join(means['spaces'])}), critical difference"
            f" {means['critical_difference']:.1f}:",
            "",
            "| proxy | family | mean rank | mean rho |",
            "|---|---|---|---|",
        ]
        for row in means["rows"][:_BEST]:
            figures = f"{row['mean_rank']:.1f} | {row['mean_rho']:.3f}"
            lines.append(f"| `{row['proxy']}` | {row['family']} | {figures} |")
        lines.append("")
    states = list(board["states"])
    lines += [f"| table | rows | {' | '.join(states)} | best that was not chosen on it | rho |"]
    lines += ["|---" * (len(states) + 4) + "|"]
    for table in board["tables"]:
        cells = [cell for cell in board["cells"] if cell["table"] == table["name"]]
        counts = [str(sum(cell["state"] == state for cell in cells)) for state in states]
        done = [c for c in cells if c["state"] == "complete" and not c["in_sample"]]
        done = [c for c in done if families[c["proxy"]] != "fitted"]
        best = max(done, key=lambda cell: cell["rho"])
        shown = f"{best['proxy']} | {best['rho']:.3f}"
        lines.append(f"| {table['name']} | {table['n']} | {' | '.join(counts)} | {shown} |")
    total = " | ".join(f"{count:,}" for count in board["states"].values())
    return "\n".join([*lines, f"| all | | {total} | | |"])


def leaderboard_page() -> str:
    """Rho of every proxy of the stored leaderboard on every table that it has been computed on."""
    board = _leaderboard()
    cells = {(cell["proxy"], cell["table"]): cell for cell in board["cells"]}
    tables = [table["name"] for table in board["tables"]]
    lines = [f"| proxy | family | {' | '.join(tables)} |", "|---" * (len(tables) + 2) + "|"]
    for entry in board["proxies"]:
        row = [_rho(cells.get((entry["proxy"], table))) for table in tables]
        if any(text not in ("", "×") for text in row):
            lines.append(f"| `{entry['proxy']}` | {entry['family']} | {' | '.join(row)} |")
    legend = "In brackets: in sample. c: counts only. n/rows: on a part of the rows. ×: refused."
    return "\n".join(["", "### Every proxy", "", legend, "", *lines])


def _rho(cell: dict[str, Any] | None) -> str:
    if cell is None or cell["state"] == "missing":
        return ""
    if cell["state"] == "refused":
        return "×"
    shown = f"({cell['rho']:.3f})" if cell["in_sample"] else f"{cell['rho']:.3f}"
    part = "" if cell["state"] == "complete" else f" {cell['n']}/{cell['rows']}"
    return f"{shown}{' c' if cell['counts_only'] else ''}{part}"


def _leaderboard() -> dict[str, Any]:
    stored = (ROOT / "docs" / "leaderboard.json").read_text(encoding="utf-8")
    board: dict[str, Any] = json.loads(stored)
    return board


def contents() -> str:
    """The side bar: every page that there is."""
    parts = {
        "Pages": ("docs/*.md",),
        "Notebooks": ("docs/examples/*.ipynb",),
        "Papers": ("docs/papers/*.md",),
        "Development": (
            "CONTRIBUTING.md",
            "CHANGELOG.md",
            "SECURITY.md",
            "docs/decisions/*.md",
            "tests/*/README.md",
        ),
        "Experiments": ("experiments/README.md", "experiments/*/README.md"),
    }
    text = ""
    for caption, patterns in parts.items():
        paths = [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]
        names = [path.relative_to(ROOT).with_suffix("").as_posix() for path in paths]
        text += (
            f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n" + "\n".join(names) + "\n```\n"
        )
    return text


_DECLARED = {
    "docs/options": options_page,
    "docs/list-of-proxies": proxies_page,
    "docs/leaderboard": leaderboard_page,
    "docs/python-functions": functions_page,
    root_doc: contents,
}


def setup(app: Any) -> None:
    """Add what the code declares to the pages that have it."""

    def read(app: Any, name: str, source: list[str]) -> None:
        if name in _DECLARED:
            source[0] += "\n" + _DECLARED[name]() + "\n"

    def escape(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
        # Our docstrings are plain text: best_ is no link, |x| no substitution, * no emphasis.
        lines[:] = [re.sub(r"(?<=\w)_(?!\w)|[|*]", r"\\\g<0>", line) for line in lines]

    app.connect("source-read", read)
    app.connect("autodoc-process-docstring", escape)
