"""Builds the site of the documentation from the repository's Markdown: `make docs`.

The source directory is the repository, so that links between README, docs and experiments are the
same in a clone and on the site. Pages whose content is declared in the code (options, proxies, the
Python functions) get it when they are read.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

project = "LPZero engine"
author = copyright = "the LPZero engine developers"
root_doc = "README"
extensions = ["myst_nb", "sphinx.ext.autodoc"]
include_patterns = ["*.md", "docs/**.md", "docs/examples/*.ipynb"]
include_patterns += ["experiments/**/README.md", "tests/**/README.md"]
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
