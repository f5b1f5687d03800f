"""Saliency proxies against plain backward passes, full SVDs and an explicit Hessian."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import Tensor

from lpzero.proxies import Network, evaluate, get
from lpzero.proxies.base import NetworkProxy
from lpzero.proxies.families.pruning import nuclear_norm
from tests.lpzero.proxies.tiny_networks import TOKENS, Products, foreign, network, next_token


def value(name: str, net: Network) -> float:
    proxy = get(name)
    assert isinstance(proxy, NetworkProxy)
    record = evaluate(proxy.measure, net)
    return record.score / (record.count if proxy.is_mean else 1)


def backward() -> list[tuple[str, Tensor, Tensor]]:
    """(name in the model, weight, gradient) of every matrix in a block."""
    model = foreign()
    next_token(model(TOKENS), TOKENS).mean().backward()
    return [
        (name, p.detach(), p.grad)
        for name, p in model.named_parameters()
        if name.startswith("stages") and p.ndim == 2 and p.grad is not None
    ]


def test_products_of_weights_and_gradients() -> None:
    found, net = backward(), network()
    assert len(found) == 12
    saliency = {name: float((w * g).abs().sum()) for name, w, g in found}
    mlp = [s for name, s in saliency.items() if ".mlp." in name]
    rest = [s for name, s in saliency.items() if ".mlp." not in name]
    assert value("snip", net) == pytest.approx(sum(saliency.values()), rel=1e-10)
    assert value("snip-normalised", net) == pytest.approx(sum(saliency.values()) / 12, rel=1e-10)
    assert value("synaptic-saliency", net) == pytest.approx(sum(mlp), rel=1e-10)
    assert value("attention-saliency", net) == pytest.approx(sum(rest), rel=1e-10)
    assert value("attention-saliency-normalised", net) == pytest.approx(sum(rest) / 8, rel=1e-10)
    norms = sum(float(g.norm()) for _, _, g in found)
    assert value("grad-norm", net) == pytest.approx(norms, rel=1e-10)


def test_diversity_is_that_of_singular_values() -> None:
    expected = sum(
        float(torch.linalg.svdvals(w).sum() * torch.linalg.svdvals(g).sum())
        for name, w, g in backward()
        if ".mlp." not in name
    )
    assert value("synaptic-diversity", network()) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("scale", [1.0, 1e-12, 1e12])
@pytest.mark.parametrize(("rows", "columns", "rank"), [(7, 5, 5), (5, 30, 5), (40, 60, 3)])
def test_nuclear_norm_equals_a_full_svd(rows: int, columns: int, rank: int, scale: float) -> None:
    generator = torch.Generator().manual_seed(rows)
    left = torch.randn(rows, rank, generator=generator, dtype=torch.float64)
    right = torch.randn(rank, columns, generator=generator, dtype=torch.float64)
    matrix = scale * left @ right
    expected = float(torch.linalg.svdvals(matrix).sum())
    assert nuclear_norm(matrix) == pytest.approx(expected, rel=1e-6)
    assert nuclear_norm(torch.zeros(3, 4)) == 0


@pytest.mark.slow
def test_grasp_equals_an_explicit_hessian() -> None:
    model = foreign()
    names = [n for n, p in model.named_parameters() if n.startswith("stages") and p.ndim == 2]
    parameters = dict(model.named_parameters())
    shapes = [parameters[name].shape for name in names]
    start = torch.cat([parameters[name].detach().flatten() for name in names])

    def loss(vector: Tensor) -> Tensor:
        pieces = torch.split(vector, [math.prod(shape) for shape in shapes])
        given = {n: p.view(s) for n, p, s in zip(names, pieces, shapes, strict=True)}
        output = torch.func.functional_call(model, given, (TOKENS,))
        return next_token(output, TOKENS).mean()

    hessian = torch.autograd.functional.hessian(loss, start)
    gradient = torch.autograd.functional.jacobian(loss, start)
    expected = -float((hessian @ gradient) @ start)
    assert value("grasp", network()) == pytest.approx(expected, rel=1e-8)
    assert value("grasp", network(chunk=1)) == pytest.approx(expected, rel=1e-8)


def test_fisher_equals_gradients_of_each_input_alone() -> None:
    model, net = foreign(), network()
    expected = 0.0
    for tokens in TOKENS:
        seen: list[Tensor] = []
        handles = [
            stage.mlp[1].register_forward_hook(lambda *args, to=seen: to.append(args[2]))
            for stage in model.stages
        ]
        loss = next_token(model(tokens[None]), tokens[None]).sum()
        for a, g in zip(seen, torch.autograd.grad(loss, seen), strict=True):
            expected += float((a.detach() * g)[0].sum(0).square().sum()) / 2 / len(TOKENS)
        for handle in handles:
            handle.remove()
    assert value("fisher", net) == pytest.approx(expected, rel=1e-10)
    assert value("fisher-normalised", net) == pytest.approx(expected / 2, rel=1e-10)


def test_eznas_by_hand() -> None:
    # The inputs are the unit vectors, so dL/dW is the transposed cotangent: its signs have
    # determinant -2, and sigmoid(log 2) = 2/3.
    cotangent = torch.tensor([[0.5, 3.0], [2.0, -1.0]], dtype=torch.float64)
    model, tokens = Products([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[0, 1]])
    net = Network(model, tokens, lambda output, _: (output * cotangent).sum((1, 2)))
    assert value("eznas", net) == pytest.approx(2 / 3)


def test_blocks_add_up() -> None:
    proxy = get("snip")
    assert isinstance(proxy, NetworkProxy)
    record = evaluate(proxy.measure, network())
    assert record.blocks is not None
    assert len(record.blocks) == 2
    assert sum(record.blocks) == pytest.approx(record.score)


def test_weights_are_not_changed_by_a_copy_of_the_model() -> None:
    model = foreign()
    before = copy.deepcopy(model.state_dict())
    value("grasp", Network(model, TOKENS, next_token))
    assert all(torch.equal(before[name], now) for name, now in model.state_dict().items())
