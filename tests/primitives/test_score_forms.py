"""Scores in other notations: LaTeX, MathML, sympy."""

from __future__ import annotations

import random
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from primitives import Rejected, TensorError, parse, score
from primitives.expressions import drop_dead
from primitives.latex import in_parts, right_side, to_latex
from primitives.mathml import to_mathml
from primitives.pruning import check
from primitives.symbolic import score_sympy, to_sympy
from tests.primitives.conftest import make_network
from tests.random_formulas import COLUMNS, random_score

PAPER = "mul(inner(l1(abslog(J))), sqrt(inner(sqrt(params))), inverse(sqrt(sum(sqrt(softmax(S))))))"
ALL_COLUMNS = {name: 1.5 + number for number, name in enumerate(COLUMNS)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (PAPER,
         r"\frac{\left(\sum_{\ell<L} \left\| \, \left|\log\left|\theta_{J,\ell}\right|\right| \,"
         r" \right\|_1\right) \cdot \left(\sum_{\ell<L} \sqrt{P_\ell}\right)^{1/2}}"
         r"{\left(\sum_{\ell=1}^{L} \sqrt{\eta\left(\theta_{S,\ell}\right)}\right)^{1/2}}"),
        ("mul(sqrt(inner(params)), depth)",
         r"\left(\sum_{\ell<L} P_\ell\right)^{1/2} \cdot \mathrm{depth}"),
        ("-mul(sum(W), inverse(last(fro(G))))",
         r"-\frac{\sum_{\ell=1}^{L} \theta_{W,\ell}}{\left\| \theta_{G,L} \right\|_F}"),
        ("inverse(mul(depth-sqrt-width, square(head(params))))",
         r"\frac{1}{\mathrm{depth{-}sqrt{-}width} \cdot P_O^{2}}"),
        ("-sub(sum(heads), log(abs(first(W))))",
         r"-\left(\left(\sum_{\ell=1}^{L} h_\ell\right) - \log\left( \left| \theta_{W,1} \right|"
         r" \right)\right)"),
        ("mul(a, b, sqrt(a), inverse(sqrt(c)), inverse(sqrt(sqrt(c))))",
         r"\frac{\mathrm{a}^{3/2} \cdot \mathrm{b}}{\mathrm{c}^{3/4}}"),
        ("signed_log(grasp)",
         r"\operatorname{sgn}\left( \mathrm{grasp} \right) \cdot \log\left( 1 + \left|"
         r" \mathrm{grasp} \right| \right)"),
        ("sqrt(square(sum(W)))",
         r"\left(\left(\sum_{\ell=1}^{L} \theta_{W,\ell}\right)^{2}\right)^{1/2}"),
        ("embedding(mul(width, fro(W)))", r"d_E \odot \left\| \theta_{W,E} \right\|_F"),
        ("-last(neg(W))", r"-\left(-\theta_{W,L}\right)"),
        ("mean(ffn)", r"\frac{1}{L}\sum_{\ell=1}^{L} f_\ell"),
    ],
)  # fmt: skip
def test_latex_is_what_a_paper_would_print(text: str, expected: str) -> None:
    assert right_side(parse(text)) == expected


def test_the_left_side_names_what_a_score_depends_on() -> None:
    assert to_latex(parse("mul(sum(fro(W)), last(width), val_accuracy)")).startswith(
        r"\varphi(\theta_W, d, \mathrm{val\_accuracy}) = "
    )


def test_a_long_score_is_written_in_parts() -> None:
    (_, whole), (name, part) = in_parts(parse("last(abs(sqrt(add(exp(W), exp(G)))))"), 5)
    assert whole == rf"\left|\sqrt{{{name}}}\right|"
    assert part == r"\exp\left(\theta_{W,L}\right) + \exp\left(\theta_{G,L}\right)"


def _scores(count: int) -> list[Any]:
    rng = random.Random(4)
    made = (random_score(rng, 3) for _ in range(10 * count))
    alive = (f for f in made if all(drop_dead(term.expression) for term in f.terms))
    return [parse(PAPER), *(next(alive) for _ in range(count))]


@pytest.mark.slow
def test_a_typesetter_accepts_random_scores() -> None:
    parser = pytest.importorskip("matplotlib.mathtext").MathTextParser("path")
    for formula in _scores(20):
        parser.parse(f"${to_latex(formula)}$")


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_random_scores_compile_with_pdflatex(tmp_path: Path) -> None:
    equations = "\n".join(rf"\[ {to_latex(formula)} \]" for formula in _scores(30))
    document = rf"\documentclass{{article}}\usepackage{{amsmath}}\begin{{document}}{equations}"
    (tmp_path / "all.tex").write_text(document + r"\end{document}")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:]


def test_mathml_is_well_formed_and_names_columns_upright() -> None:
    for formula in _scores(100):
        ElementTree.fromstring(to_mathml(formula))
    text = to_mathml(parse("mul(depth-sqrt-width, val_accuracy, inner(params))"))
    assert "<mi>depth-sqrt-width</mi>" in text
    assert "<mi>val_accuracy</mi>" in text
    assert "<mi>ℓ</mi><mo>&lt;</mo><mi>L</mi>" in text


@pytest.mark.slow
def test_sympy_gives_the_reference_score() -> None:
    rng = random.Random(5)
    network = make_network(1, rows=2, columns=3)
    compared = 0
    while compared < 60:
        formula = random_score(rng, 3)
        expected = score(formula, network, columns=ALL_COLUMNS)
        if check(formula) is not None or isinstance(expected, Rejected):
            continue
        form = to_sympy(formula)
        assert score_sympy(form, network, ALL_COLUMNS) == pytest.approx(expected, rel=1e-8)
        compared += 1


def test_sympy_names_what_is_missing() -> None:
    form = to_sympy(parse("-mul(depth, head(params))"))
    network = make_network(0)
    with pytest.raises(TensorError, match="column 'depth'"):
        score_sympy(form, network)
    with pytest.raises(TensorError, match="no head"):
        score_sympy(form, network.blocks, {"depth": 2.0})
