"""Formulas beyond the paper's form: every form of them gives the scores of the engine."""

from __future__ import annotations

import ast
import builtins
import json
import math
import random
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

import spaces
from lpzero.errors import InputError
from lpzero.export import Selection, export, json_form, synthetic_networks
from lpzero.export.synthetic_networks import TOLERANCE
from primitives.errors import FormulaError, Rejected
from primitives.expressions import drop_dead
from primitives.formula import Formula
from primitives.naive import score
from primitives.outer import NUMBERS, OUTER
from primitives.parser import parse
from tests.lpzero.export.network_tensors import exported, module_of, sketched, written
from tests.random_formulas import random_score

pytestmark = pytest.mark.slow

N = 20
PARTS = 4  # for as many workers
WINNER = (
    "mul(inner(l1(abslog(J))), sqrt(inner(sqrt(params))), inverse(sqrt(sum(sqrt(softmax(S))))))"
)
ENDS = "sub(log(embedding(l1(W))), mul(depth, inverse(head(fro(A)))))"


def formulas(n: int, seed: int, **options: Any) -> Iterator[Formula]:
    """Random formulas of any form in which no term is disconnected."""
    rng, found = random.Random(seed), 0
    while found < n:
        formula = random_score(rng, **options)
        if all(drop_dead(term.expression) is not None for term in formula.terms):
            found += 1
            yield formula


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_random_scores_are_alike_in_every_form(part: int) -> None:
    compared = 0
    for formula in formulas(N // PARTS, part):
        one = exported(formula, limit=synthetic_networks.LIMIT)
        assert json_form.from_value(json.loads(written(one, "json")), "text").entries == [one]
        for found, expected in module_of(one).self_test():
            assert math.isclose(found, expected, rel_tol=TOLERANCE, abs_tol=1e-12), formula
            compared += 1
        if all(name.isidentifier() for name in formula.columns):
            written(one, "sympy")  # which compares its scores with the formula's
    assert compared > N // PARTS


def test_what_is_tried_are_the_scores_of_the_reference() -> None:
    formula = parse(ENDS)
    columns = synthetic_networks.columns(formula.columns)
    networks = synthetic_networks.network_values(synthetic_networks.LIMIT)
    expected = [score(formula, n, columns=c) for n, c in zip(networks, columns, strict=True)]
    assert list(exported(formula).trial) == pytest.approx(expected)
    assert len(set(expected)) == 3


@pytest.mark.parametrize("text", [WINNER, ENDS, "last(mul(width, ffn))", "-depth"])
def test_every_name_in_the_module_is_defined_in_it(text: str) -> None:
    nodes = list(ast.walk(ast.parse(written(exported(text), "python"))))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    known = {node.id for node in names if isinstance(node.ctx, ast.Store)} | set(dir(builtins))
    known |= {n.name for n in nodes if isinstance(n, (ast.FunctionDef, ast.ClassDef, ast.alias))}
    known |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    assert {node.id for node in names} <= known


ON_MODELS = (
    WINNER.replace("sum(sqrt(softmax(S)))", "last(fro(W))"),
    "mul(sum(mul(params, l1(G))), sqrt(last(mul(width, ffn))))",
    "mul(embedding(l1(G)), embedding(fro(A)), inverse(sqrt(inner(fro(W)))))",
    "mul(head(l1(A)), head(fro(J)))",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nano-gpt2", "nano-flexibert", "pit"])
@pytest.mark.parametrize("text", [*ON_MODELS, "mul(head(l1(G)), head(fro(W)))", "last(heads)"])
def test_models_score_as_in_the_engine(name: str, text: str) -> None:
    if name == "nano-flexibert" and text not in ON_MODELS:
        pytest.skip("an encoder has no weights at its head, and not every layer has heads")
    space, arch, options, values = sketched(name)
    expected = values.score(parse(text))
    assert not isinstance(expected, Rejected)
    model = space.build(arch, options.seed)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    module = module_of(exported(text, limit=500, batch_seed=2))
    found = module.score_model(model, space.batch(options.batch_seed))
    assert found == pytest.approx(expected[0], rel=1e-5)
    assert all(parameter.grad is None for parameter in model.parameters())
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())


def test_sizes_of_the_ends_of_our_models_are_given() -> None:
    space = spaces.get("nano-gpt2")
    arch = space.sample(random.Random(4))
    module = module_of(exported("mul(head(params), embedding(width))"))
    model, batch = space.build(arch, 0), space.batch(0)
    with pytest.raises(ValueError, match="give sizes"):
        module.score_model(model, batch)
    ends = space.end_sizes(arch)
    found = module.score_model(model, batch, sizes={"ends": ends})
    assert found == ends["head"]["params"] * ends["embedding"]["width"]


class Plain(nn.Module):
    """A transformer that knows nothing of us."""

    def __init__(self) -> None:
        super().__init__()
        layer: Any = nn.TransformerEncoderLayer
        self.embedding, self.head = nn.Embedding(20, 8), nn.Linear(8, 20)
        self.layers = nn.ModuleList(layer(8, 2, 16, batch_first=True) for _ in range(3))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embedding(tokens)
        for one in self.layers:
            x = one(x)
        logits: torch.Tensor = self.head(x)
        return logits


def squares(output: torch.Tensor, _: Any) -> torch.Tensor:
    return (output * output).sum()


def test_a_plain_model_names_its_ends_taps_and_columns() -> None:
    torch.manual_seed(0)
    model, tokens = Plain(), torch.arange(12).view(2, 6)
    ends = {"embedding": [model.embedding], "head": [model.head]}
    module = module_of(exported("mul(depth, embedding(fro(G)), head(params), head(width))"))
    with pytest.raises(ValueError, match="the formula reads the embedding"):
        module.score_model(model, tokens, squares)
    with pytest.raises(ValueError, match="the column depth: give columns="):
        module.score_model(model, tokens, squares, ends=ends)
    once = module.score_model(model, tokens, squares, ends=ends, columns={"depth": 1})
    twice = module.score_model(model, tokens, squares, ends=ends, columns={"depth": 2})
    assert twice == pytest.approx(2 * once)
    squares(model.eval()(tokens), tokens).backward()
    expected = model.embedding.weight.grad.norm() * (8 * 20 + 20) * 8  # type: ignore[union-attr]
    assert once == pytest.approx(float(expected), rel=1e-4)
    ffn = module_of(exported("sum(mul(ffn, width))"))
    with pytest.raises(ValueError, match="ffn is counted on A"):
        ffn.score_model(model, tokens)
    assert ffn.score_model(model, tokens, taps={"A": ["linear1"]}) == 3 * 16 * 8
    assert ffn.score_model(model, tokens, sizes={"blocks": [{"ffn": 2, "width": 3}] * 3}) == 18


def test_an_undefined_score_is_nan_and_a_missing_size_is_said() -> None:
    module = module_of(exported("sqrt(sub(sum(params), last(width)))"))
    assert module.score([{"params": 5, "width": 1}]) == 2
    assert math.isnan(module.score([{"params": 5, "width": 6}]))
    with pytest.raises(ValueError, match="block 0 has no width"):
        module.score([{"params": 5}])
    with pytest.raises(ValueError, match="expected at least 1"):
        module.score([{"params": 0, "width": 6}])


@pytest.mark.parametrize("text", ["head(S)", "mul(depth, embedding(heads))", "sum(disconnect(W))"])
def test_a_formula_without_a_meaning_is_no_record(text: str) -> None:
    with pytest.raises(FormulaError):
        exported(text)


def test_sympy_says_which_columns_it_cannot_hold() -> None:
    with pytest.raises(InputError, match="'depth-sqrt-width': it is not a plain word"):
        written(exported("mul(sum(fro(W)), depth-sqrt-width)"), "sympy")


def test_a_table_of_scores_tells_its_letters() -> None:
    both = [exported(WINNER), exported("sum(fro(W))")]
    text = export(Selection(both), "latex")
    assert r"$E$ is the embedding" in text
    assert r"\sum_{\ell<L}" in text
    assert r"$E$ is the embedding" not in export(Selection(both[1:] * 2), "latex")


@pytest.mark.parametrize("name", OUTER)
def test_outer_operations_are_those_of_the_language(name: str) -> None:
    module = module_of(exported(f"mul({name}(sub(depth, width-x)), sum(params))"))
    for depth in (-3.0, 0.0, 0.5, 7.0, 1e200):
        try:
            expected = OUTER[name].body(depth, NUMBERS)
        except (ValueError, ZeroDivisionError):
            expected = math.nan
        expected = expected if math.isfinite(expected) else math.nan
        found = module.score([{"params": 1}], columns={"depth": depth, "width-x": 0.0})
        assert found == pytest.approx(expected, nan_ok=True)
