r"""A formula as a LaTeX equation, several as a booktabs table with the counters below them.

Both fit a column of a two-column article. An equation that is too wide for the line is scaled to
it; a formula of the table stands above its figures, as text over several lines where it is too
wide, so that nothing there is smaller than 7 pt. Text from files is escaped, so a name is always
typeset literally.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lpzero.export.record import Exported, Exporter, Figures, Pair
from lpzero.judgement.table import SPLIT_PARTS
from lpzero.options import Switch, option
from primitives.formula import Formula
from primitives.latex import in_parts, right_side

if TYPE_CHECKING:
    from lpzero.export.source import Selection

_SPECIAL = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': "{''}",
    "`": r"\textasciigrave{}", "'": r"\textquotesingle{}", "-": "-{}",
    "·": r"\textperiodcentered{}", "√": r"\ensuremath{\surd}",
}  # fmt: skip
_LEGIBLE = 18  # nodes that can be scaled to a line or a column
_POSITIONS = (
    r" $\ell = 1, \dots, L$ are the blocks, $E$ is the embedding and $O$ the head; $P$, $d$, $f$"
    " and $h$ are the parameters, width, feed-forward width and heads there."
)
_NEEDS = r"% needs \usepackage{textcomp,amsmath,booktabs,graphicx}"
# The right side scaled to what the left side and the number leave of the line.
_FIT = (
    r"\providecommand{\lpzerofit}[2]{{\setbox4=\hbox{$#1$}\setbox6=\hbox{$#2$}"
    r"\ifdim\wd6>\dimexpr\linewidth-\wd4-45pt\relax"
    r"\resizebox{\dimexpr\linewidth-\wd4-45pt\relax}{!}{\box6}\else\box6\fi}}"
)
# The formula, or its text where it is too wide for the column.
_EITHER = (
    r"\providecommand{\lpzeroeither}[2]{{\setbox0=\hbox{$#1$}\ifdim\wd0>\linewidth"
    r"\parbox[t]{\linewidth}{\raggedright\footnotesize\ttfamily #2\strut}\else\box0\fi}}"
)
_DOCUMENT = r"""\documentclass{article}
\usepackage{textcomp,amsmath,booktabs,graphicx}
\usepackage[margin=2cm]{geometry}
\begin{document}
%s\end{document}
"""


@dataclass(frozen=True, slots=True)
class CounterFigures:
    """How a counter ranks the same rows as the formulas; the best count has a formula."""

    name: str
    table: str
    rho: dict[str, float]
    rho_ci: Pair
    rho_given_params: float | None
    formula: Formula | None = None


def write(
    exported: Sequence[Exported],
    counters: Sequence[CounterFigures] = (),
    ensemble: str | None = None,
    winner: Exported | None = None,
) -> str:
    """An equation for one formula, a table for several and for the members of an ensemble."""
    is_one = len(exported) == 1 and ensemble is None
    body = equation(exported[0]) if is_one else table(exported, counters, ensemble, winner)
    return f"{_NEEDS}\n{_FIT if is_one else _EITHER}\n{body}"


@dataclass(frozen=True, slots=True)
class LatexOptions:
    """The options that only LaTeX has."""

    document: bool = option(
        False, "Write a complete LaTeX document that compiles on its own.", Switch()
    )


def _write(selection: Selection, options: LatexOptions) -> str:
    text = write(selection.entries, selection.counters, selection.ensemble, selection.winner)
    return document(text) if options.document else text


EXPORTER = Exporter(
    "latex", "an equation for one formula, a table for several", _write, LatexOptions
)


def document(text: str) -> str:
    """A complete document that contains the output of `write`."""
    return _DOCUMENT % text


def equation(record: Exported) -> str:
    """The formula as an equation; a long one is split, and scaled if still too wide."""
    parts = in_parts(record.formula, _LEGIBLE)
    widest = parts[0][0]
    lines = [rf"{left} &= \lpzerofit{{{widest}}}{{\displaystyle {right}}}" for left, right in parts]
    body = " \\\\\n".join(lines)
    return (
        f"% {_comment(record.name)}: {record.formula}\n"
        f"\\begin{{equation}}\\label{{eq:{_label(record.name)}}}\n"
        f"\\begin{{aligned}}\n{body}\n\\end{{aligned}}\n\\end{{equation}}\n"
    )


def table(
    exported: Sequence[Exported],
    counters: Sequence[CounterFigures] = (),
    ensemble: str | None = None,
    winner: Exported | None = None,
) -> str:
    """The formulas, best first, in a section for each table that ends with the counters.

    The winner, if given, comes before the others, whether it is one of them or not.
    """
    if winner is not None and ensemble is None:
        exported = [winner, *(record for record in exported if record.formula != winner.formula)]
    else:
        winner = None
    names: list[str | None] = list(
        dict.fromkeys(f.table for record in exported for f in record.provenance.figures)
    )
    lines = [
        r"\begin{table}",
        r"\centering\small",
        rf"\caption{{{_caption(exported, names, ensemble, winner)}}}",
        rf"\label{{tab:{_label(ensemble or '-'.join(str(name) for name in names) or 'formulas')}}}",
        r"\par\medskip\setlength{\tabcolsep}{4pt}",
        r"\begin{tabular}{@{}rrrlr@{}}",
        r"\toprule",
        r" & \multicolumn{3}{c}{Spearman $\rho$} & given \\",
        r"\cmidrule(lr){2-4}",
        r"size & train & valid & test [95\% interval] & parameters \\",
    ]
    for name in names or [None]:
        lines.append(r"\midrule")
        if len(names) > 1 and name is not None:
            lines.append(rf"\multicolumn{{5}}{{@{{}}l@{{}}}}{{table {escaped(name)}}} \\")
        lines += [_formula_row(record, name) for record in exported]
        on_table = [line for line in counters if line.table == name]
        if on_table:
            lines += [r"\midrule", r"\multicolumn{5}{@{}l@{}}{\emph{sizes alone}} \\"]
            lines += [_counter_row(line) for line in on_table]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def escaped(text: str) -> str:
    """The text escaped so that LaTeX prints it; a letter beyond Latin-1 becomes its name."""
    return "".join(_SPECIAL.get(c) or _letter(c) for c in text)


def _letter(character: str) -> str:
    if ord(character) < 128:
        return character
    plain = unicodedata.normalize("NFKD", character)
    base = "".join(c for c in plain if ord(c) < 128 and c.isalnum())
    return base or f"[{unicodedata.name(character, 'unknown letter').lower()}]"


def _comment(text: str) -> str:
    """The plain letters of the text, for a comment."""
    return re.sub(r"[^A-Za-z0-9 .,:_+-]", "?", text)


def _label(text: str) -> str:
    r"""What `\ref` names: letters, digits and hyphens."""
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-").lower() or "formula"


def _caption(
    exported: Sequence[Exported],
    names: Sequence[str | None],
    ensemble: str | None,
    winner: Exported | None,
) -> str:
    told = []
    for name in names:
        figures = [f for record in exported for f in record.provenance.figures if f.table == name]
        tested = [f.n["test"] for f in figures if "test" in f.n]
        rows = f", {tested[0]} test architectures" if tested else ""
        seed = figures[0].split_seed
        how = "rows of the whole table" if seed is None else f"split seed {seed}"
        told.append(f"{escaped(str(name))} ({how}{rows})")
    where = f" on {', '.join(told)}" if told else ""
    what = "Formulas"
    if ensemble is not None:
        what = (
            f"Members of the ensemble {escaped(ensemble)}, whose score is the mean of their ranks"
        )
    order = "best on train first" if winner is None else "the winner, then the best on train"
    if ensemble is not None:
        order = "best first"
    caption = (
        f"{what}{where}, {order}. The mean over a block's elements is left unwritten. Train and"
        " valid took part in the choice, test did not."
    )
    papers = [record.formula.is_papers for record in exported]
    caption += " $N$ is the number of blocks." if any(papers) else ""
    return caption if all(papers) else caption + _POSITIONS


def _formula_row(record: Exported, table: str | None) -> str:
    figures = [f for f in record.provenance.figures if f.table == table]
    cells = _cells(figures[0] if figures else None)
    return _row(_cell(record.formula), str(record.formula.complexity), *cells)


def _cell(formula: Formula) -> str:
    """The formula as mathematics, or as text over several lines where that is too wide."""
    text = escaped(str(formula)).replace("(", r"(\allowbreak{}").replace(", ", r",\allowbreak{} ")
    return rf"\lpzeroeither{{{right_side(formula)}}}{{{text}}}"


def _cells(figures: Figures | None) -> list[str]:
    if figures is None:
        return ["--"] * 4
    train, valid, test = (_number(figures.rho.get(part)) for part in SPLIT_PARTS)
    given = figures.rho_given_params.get("test")
    return [train, valid, _with_interval(test, figures.rho_ci.get("test")), _number(given)]


def _counter_row(line: CounterFigures) -> str:
    train, valid, test = (_number(line.rho.get(part)) for part in SPLIT_PARTS)
    given = None if line.name == "parameters" else line.rho_given_params
    cells = train, valid, _with_interval(test, line.rho_ci), _number(given)
    if line.formula is None:
        return _row(escaped(line.name), "", *cells)
    head = _over_all(f"{escaped(line.name)}:")
    return f"{head} \n{_row(_cell(line.formula), str(line.formula.complexity), *cells)}"


def _row(above: str, *cells: str) -> str:
    """The formula or the name over all columns, and its figures below."""
    return f"{_over_all(above)}\n{' & '.join(cells)} \\\\[2pt]"


def _over_all(text: str) -> str:
    return rf"\multicolumn{{5}}{{@{{}}l@{{}}}}{{{text}}} \\*"


def _number(value: float | None) -> str:
    return "--" if value is None else f"${value:.3f}$"


def _with_interval(shown: str, interval: Pair | None) -> str:
    return shown if interval is None else f"{shown} [${interval[0]:.3f}$, ${interval[1]:.3f}$]"
