"""LaTeX that compiles, and is to be seen."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from lpzero.export import Provenance, Selection, export
from lpzero.export.latex_form import CounterFigures, document, escaped
from lpzero.export.record import Exported, Figures
from primitives.parser import parse

TOOLS = [tool for tool in ("pdflatex", "pdftoppm") if shutil.which(tool) is None]
LONG = "sum(" + "mul(log_softmax(abslog(W)), " * 12 + "G" + ")" * 13
FORMULAS = (
    "sum(add(square(inverse(H)), log_softmax(fro(A))))",
    "-mean(add(square(W), square(softmax(G))))",
    "sum(sqrt(exp(add(sigmoid(square(S)), square(abslog(sub(abs(G), fro(abslog(W)))))))))",
    LONG,
)
ODD = r"<b>&x_%$#{}~^\"'`|-- é 漢"


def entries() -> list[Exported]:
    """Four formulas on two tables; the last was not judged on test."""
    found = []
    for index, text in enumerate(FORMULAS):
        tested = {"valid": 0.8, "test": -0.25} if index < 3 else {}
        figures = tuple(
            Figures(
                name,
                "nano-gpt2",
                "loss",
                "0",
                3,
                {"test": 31},
                {"train": 0.9, **tested},
                {"test": (-0.5, 0.125)} if tested else {},
                {},
            )
            for name in ("nano-gpt2", ODD)
        )
        provenance = Provenance("campaign", figures=figures)
        found.append(Exported(ODD, parse(text), provenance))
    return found


COUNTERS = [CounterFigures("depth-sqrt-width", "nano-gpt2", {"test": 0.563}, (0.2, 0.807), -0.454)]


def test_a_table_shows_intervals_and_the_counters_below() -> None:
    text = export(Selection(entries(), COUNTERS), "latex")
    assert text.count(r"$-0.250$ [$-0.500$, $0.125$]") == 6
    assert text.count(r"$0.900$ & -- & -- & -- \\") == 2
    assert r"{depth-{}sqrt-{}width} \\*" in text
    assert " & -- & -- & $0.563$ [$0.200$, $0.807$] & $-0.454$" in text
    assert text.count(r"\midrule") == 3
    assert text.count(escaped(ODD)) == 2
    assert "split seed 3, 31 test architectures" in text
    assert text.count(r"\ttfamily") == 1  # what is too wide is text that wraps
    assert text.count(r"\label{tab:") == 1


def test_one_formula_is_an_equation() -> None:
    text = export(Selection(entries()[:1], []), "latex")
    assert r"\begin{equation}" in text
    assert r"\varphi(\theta_H, \theta_A) &= \lpzerofit" in text
    assert r"\begin{equation}\label{eq:" in text
    assert "X_" not in text


def test_a_long_formula_is_an_equation_of_named_parts() -> None:
    text = export(Selection(entries()[3:], []), "latex")
    lines = [line for line in text.splitlines() if "&=" in line]
    names = [line.split(" &=")[0] for line in lines]
    assert names == [r"\varphi(\theta_W, \theta_G)", "X_{1}", "X_{2}"]
    assert [[name for name in names[1:] if name in line.split("&=")[1]] for line in lines] == [
        ["X_{2}"],
        [],
        ["X_{1}"],
    ]


@pytest.mark.slow
@pytest.mark.skipif(bool(TOOLS), reason=f"not installed: {', '.join(TOOLS)}")
@pytest.mark.parametrize("columns", [1, 2])
def test_equations_and_table_compile_and_are_not_blank(tmp_path: Path, columns: int) -> None:
    parts = [export(Selection([one], []), "latex") for one in entries()]
    parts += [escaped(ODD) + "\n", export(Selection(entries(), COUNTERS), "latex")]
    whole = document("".join(parts))
    if columns == 2:
        whole = whole.replace("{article}", "[twocolumn]{article}")
    (tmp_path / "all.tex").write_text(whole)
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout
    render = ["pdftoppm", "-r", "50", "-gray", "all.pdf", "page"]
    subprocess.run(render, cwd=tmp_path, check=True)
    pages = sorted(tmp_path.glob("page*.pgm"))
    assert len(pages) == 1
    header, size, depth, pixels = pages[0].read_bytes().split(b"\n", 3)
    assert (header, depth) == (b"P5", b"255")
    dark = sum(pixel < 128 for pixel in pixels)
    assert 0.005 < dark / len(pixels) < 0.5
    width = int(size.split()[0])
    margin = [p for i, p in enumerate(pixels) if i % width > width - 20]
    assert min(margin) > 200  # nothing runs off the page
