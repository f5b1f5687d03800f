"""Scores in other notations: LaTeX, MathML, sympy, DEAP."""

from __future__ import annotations

import random
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from deap import gp

from primitives import FormulaError, Rejected, TensorError, parse, score
from primitives.deap_scores import TermNode, build_score_set, from_score_tree, to_score_tree
from primitives.deap_set import MatrixNode, ScalarNode, grow
from primitives.expressions import drop_dead
from primitives.latex import in_parts, right_side, to_latex
from primitives.mathml import to_mathml
from primitives.score_pruning import check
from primitives.score_symbolic import score_sympy, score_to_sympy
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


def test_sympy_gives_the_reference_score() -> None:
    rng = random.Random(5)
    network = make_network(1, rows=2, columns=3)
    compared = 0
    while compared < 60:
        formula = random_score(rng, 3)
        expected = score(formula, network, columns=ALL_COLUMNS)
        if check(formula) is not None or isinstance(expected, Rejected):
            continue
        form = score_to_sympy(formula)
        assert score_sympy(form, network, ALL_COLUMNS) == pytest.approx(expected, rel=1e-8)
        compared += 1


def test_sympy_names_what_is_missing() -> None:
    form = score_to_sympy(parse("-mul(depth, head(params))"))
    network = make_network(0)
    with pytest.raises(TensorError, match="column 'depth'"):
        score_sympy(form, network)
    with pytest.raises(TensorError, match="no head"):
        score_sympy(form, network.blocks, {"depth": 2.0})


@pytest.fixture(scope="module")
def everything() -> Any:
    return build_score_set(COLUMNS, sums=True)


def test_scores_and_trees_are_converted_exactly(everything: Any) -> None:
    rng = random.Random(6)
    for _ in range(1000):
        formula = random_score(rng, 4)
        assert from_score_tree(to_score_tree(formula, everything)) == formula
        tree = gp.PrimitiveTree(grow(everything, 1, 6, rng=rng))
        assert to_score_tree(from_score_tree(tree), everything) == tree


def test_types_keep_the_levels_apart(everything: Any) -> None:
    blocks = {MatrixNode, ScalarNode}
    for primitive in everything.primitives[TermNode]:
        assert set(primitive.args) <= blocks or set(primitive.args) == {TermNode}
    for kind in blocks:
        for primitive in everything.primitives[kind]:
            assert set(primitive.args) <= blocks


def test_variation_keeps_trees_convertible(everything: Any) -> None:
    random.seed(7)
    pool = [gp.PrimitiveTree(grow(everything, 2, 4)) for _ in range(20)]
    for _ in range(200):
        a, b = (gp.PrimitiveTree(tree) for tree in random.sample(pool, 2))
        a, b = gp.cxOnePoint(a, b)
        (a,) = gp.mutUniform(a, lambda pset, type_: grow(pset, 0, 2, type_), everything)
        for tree in (a, b):
            assert to_score_tree(from_score_tree(tree), everything) == tree


def test_a_lean_set_says_what_it_lacks() -> None:
    lean = build_score_set(reductions=("sum", "inner"), sizes=("params",))
    kept = parse("-mul(sum(fro(W)), sqrt(inner(params)))")
    assert from_score_tree(to_score_tree(kept, lean)) == kept
    for text in ("mul(sum(W), depth)", "add(sum(W), sum(G))", "last(W)", "sum(width)"):
        with pytest.raises(FormulaError, match="has no"):
            to_score_tree(parse(text), lean)


@pytest.mark.parametrize("damage", ["no root", "cut", "too long"])
def test_a_damaged_tree_is_refused(everything: Any, damage: str) -> None:
    tree = list(to_score_tree(parse("mul(sum(W), depth)"), everything))
    broken = {"no root": tree[1:], "cut": tree[:-1], "too long": [*tree, tree[-1]]}[damage]
    with pytest.raises(FormulaError, match="tree"):
        from_score_tree(broken)
