from __future__ import annotations

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from primitives import UNARIES, FormulaError, parse
from primitives.expressions import drop_dead
from primitives.latex import to_latex
from tests.random_formulas import random_tree

FLEXIBERT = "sum(add(square(inverse(H)), log_softmax(fro(A))))"


def test_the_flexibert_formula_is_the_papers_equation_2() -> None:
    assert to_latex(parse(FLEXIBERT)) == (
        r"\varphi(\theta_H, \theta_A) = \sum_{i=1}^{N} \left( "
        r"\left(\frac{1}{\theta_H}\right)^2 + "
        r"\log\left(\eta\left(\left\| \theta_A \right\|_F\right)\right) \right)"
    )


def test_reduction_and_sign_are_written() -> None:
    text = to_latex(parse("-mean(W)"))
    assert text == r"\varphi(\theta_W) = -\frac{1}{N}\sum_{i=1}^{N} \left( \theta_W \right)"


def test_operations_do_not_run_into_each_other() -> None:
    product_of_sum = to_latex(parse("sum(mul(add(W, G), neg(A)))"))
    assert r"\left(\theta_W + \theta_G\right) \odot \left(-\theta_A\right)" in product_of_sum
    assert r"-\left(\theta_W + \theta_G\right)" in to_latex(parse("sum(neg(add(W, G)))"))


def test_a_dead_branch_is_not_written() -> None:
    assert "A" not in to_latex(parse("sum(add(W, disconnect(A)))"))
    with pytest.raises(FormulaError, match="disconnected"):
        to_latex(parse("sum(disconnect(W))"))


def _texts() -> list[str]:
    rng = random.Random(0)
    alone = [parse(f"sum({name}(W))") for name in UNARIES if name != "disconnect"]
    trees = [f for f in (random_tree(rng, 5) for _ in range(20)) if drop_dead(f.term.expression)]
    return [to_latex(formula) for formula in [parse(FLEXIBERT), *alone, *trees]]


def test_braces_and_brackets_are_balanced() -> None:
    for text in _texts():
        assert text.count("{") == text.count("}")
        assert text.count(r"\left") == text.count(r"\right")
        assert "{x}" not in text
        assert "{y}" not in text


@pytest.mark.slow
def test_every_primitive_is_accepted_by_a_mathematics_typesetter() -> None:
    mathtext = pytest.importorskip("matplotlib.mathtext")
    parser = mathtext.MathTextParser("path")
    for text in _texts():
        parser.parse(f"${text}$")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_every_primitive_compiles_with_pdflatex(tmp_path: Path) -> None:
    equations = "\n".join(rf"\[ {text} \]" for text in _texts())
    document = rf"\documentclass{{article}}\usepackage{{amsmath}}\begin{{document}}{equations}"
    (tmp_path / "all.tex").write_text(document + r"\end{document}")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]
