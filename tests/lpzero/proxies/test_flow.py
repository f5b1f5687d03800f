"""Proxies of absolute weights and an input of ones, worked by hand and against a copied model."""

from __future__ import annotations

import copy
import math
import random
from collections import OrderedDict

import pytest
import torch
from torch import nn

import spaces
from lpzero.proxies import Network, flow
from lpzero.proxies.families import pruning
from lpzero.proxies.flow import Scaled, in_range
from spaces.initialisation import ByName
from tests.lpzero.proxies.test_conformance import IMAGES, TINY_VISION, vision
from tests.lpzero.proxies.test_saliency import value
from tests.lpzero.proxies.tiny_networks import TOKENS, Block, Products, foreign, network, next_token

# |W1| 1 = (3, 7), |W2| (3, 7) = (3, 21): R = 24 for each of two tokens.
FIRST, SECOND = [[1.0, -2.0], [3.0, 4.0]], [[1.0, 0.0], [0.0, -3.0]]


def products() -> Network:
    model = Products(FIRST, SECOND)
    return Network(model, torch.tensor([[0, 1]]), lambda output, _: output.sum((1, 2)))


def test_synflow_by_hand() -> None:
    # Each matrix takes part in every path once, so its share is all of R.
    assert value("synflow", products()) == pytest.approx(2 * 48)


def test_logsynflow_by_hand() -> None:
    # dR/dW1 = 2 * (1, 3)' (1, 1), dR/dW2 = 2 * (1, 1)' (3, 7)
    first = (1 + 2) * math.log(3) + (3 + 4) * math.log(7)
    second = 1 * math.log(7) + 3 * math.log(15)
    assert value("logsynflow", products()) == pytest.approx(first + second)


def test_diversity_by_hand() -> None:
    # The gradients are of rank one; the nuclear norm of a 2 x 2 is sqrt(|W|^2 + 2 |det W|).
    first = 2 * math.sqrt(10) * math.sqrt(2) * math.sqrt(30 + 2 * 2)
    second = 2 * math.sqrt(2) * math.sqrt(58) * (1 + 3)
    assert value("dss-diversity", products()) == pytest.approx(first + second, rel=1e-6)
    assert value("dss-saliency", products()) == 0  # there is no MLP


def test_a_network_with_norms_equals_a_copy_without_them() -> None:
    model = copy.deepcopy(foreign())
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.abs_()
    x = torch.ones(1, 3, 3, dtype=torch.float64)
    for stage in model.stages:
        assert isinstance(stage, Block)
        stage.norm = torch.nn.Identity()  # type: ignore[assignment]
        scale = x.detach().max()
        x = scale * stage(x / scale)
    x.sum().backward()
    matrices = {n: p for n, p in model.stages.named_parameters() if p.ndim == 2}
    flows = {n: float((p.detach() * p.grad).sum()) for n, p in matrices.items()}  # type: ignore[operator]
    assert value("synflow", network()) == pytest.approx(sum(flows.values()), rel=1e-9)
    mlp = sum(flow for name, flow in flows.items() if ".mlp." in name)
    assert value("dss-saliency", network()) == pytest.approx(mlp, rel=1e-9)
    nuclear = sum(
        float(torch.linalg.svdvals(p.detach()).sum() * torch.linalg.svdvals(p.grad).sum())
        for name, p in matrices.items()
        if ".mlp." not in name and p.grad is not None
    )
    assert value("dss-diversity", network()) == pytest.approx(nuclear, rel=1e-6)


def test_tokens_do_not_matter() -> None:
    other = Network(foreign(), TOKENS.flip(0), next_token)
    assert value("synflow", other) == value("synflow", network())


def test_deep_and_wide_networks_stay_finite() -> None:
    wide = [[50.0, 60.0], [70.0, 80.0]]
    model = Products(*[wide] * 40)
    net = Network(model, torch.tensor([[0, 1]]), lambda output, _: output.sum((1, 2)))
    expected = 40 * 2 * float(torch.linalg.matrix_power(torch.tensor(wide).double(), 40).sum())
    assert value("synflow", net) == pytest.approx(expected, rel=1e-9)
    assert math.isfinite(value("dss-diversity", net))


def test_the_pixels_of_an_image_are_ones() -> None:
    network = vision()
    model = copy.deepcopy(network.model)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.abs_()
    x = model.embedding(torch.ones(1, 3, 12, 12, dtype=torch.float64)).detach()
    for block in model.blocks:
        block.attention_norm = block.feed_forward_norm = torch.nn.Identity()
        scale = x.detach().max()
        x = scale * block(x / scale)
    x.sum().backward()
    found = [p for block in model.blocks for p in block.parameters() if p.ndim == 2]
    flows = sum(float((p.detach() * p.grad).sum()) for p in found)
    assert value("synflow", network) == pytest.approx(flows, rel=1e-9)


QUICK = ("dss-diversity", "dss-saliency", "synflow")


def test_a_quick_network_has_nearly_the_same_flow() -> None:
    model, images = TINY_VISION.build(IMAGES, 0), TINY_VISION.batch(0)
    exact, quick = Network(model, images), Network(model, images, is_quick=True)
    for name in QUICK:
        assert value(name, quick) == pytest.approx(value(name, exact), rel=1e-4), name
    assert "opening" in exact.kept
    assert "opening" not in quick.kept  # the blocks take their input alone
    # Products of many blocks exceed float32: 40 of them reach 1e82.
    wide = Products(*[[[50.0, 60.0], [70.0, 80.0]]] * 40)
    tokens = torch.tensor([[0, 1]])
    deep = [Network(wide, tokens, lambda y, _: y.sum((1, 2)), is_quick=q) for q in (False, True)]
    assert value("synflow", deep[0]) > 1e80
    assert value("synflow", deep[1]) == pytest.approx(value("synflow", deep[0]), rel=1e-4)


def test_looked_up_norms_are_those_that_are_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pruning, "_NORMS", {})
    model, images = TINY_VISION.build(IMAGES, ByName(2)), TINY_VISION.batch(0)
    first = value("dss-diversity", Network(model, images))
    n_known = len(pruning._NORMS)
    assert n_known == sum(m.part == "attention" for b in Network(model, images).matrices for m in b)
    plain = copy.deepcopy(model)  # copies are not as drawn
    assert value("dss-diversity", Network(plain, images)) == first
    assert len(pruning._NORMS) == n_known
    for drawn in pruning._NORMS:
        pruning._NORMS[drawn] *= 2
    assert value("dss-diversity", Network(model, images)) == pytest.approx(2 * first)


def test_quick_products_are_within_a_thousandth() -> None:
    rng = torch.Generator().manual_seed(0)
    sizes = (1.0, 30.0, 0.3, 1e-5, 0.0)
    shapes = ((6, 9), (9, 6), (8, 8), (12, 5), (4, 4))
    matrices = [
        size * torch.randn(*shape, generator=rng) for size, shape in zip(sizes, shapes, strict=True)
    ]
    exact = [2.0 * float(torch.linalg.svdvals(matrix.double()).sum()) for matrix in matrices]
    found = pruning.quick_products([2.0] * 5, matrices)
    assert found[:3] == pytest.approx(exact[:3], rel=1e-6)
    assert found[3] == pytest.approx(2 * float(matrices[3].norm()))  # smaller than it is
    assert sum(found) == pytest.approx(sum(exact), rel=1e-6)
    assert found[4] == 0


FLOWS = ("synflow", "logsynflow", "dss-saliency", "dss-diversity")


@pytest.mark.parametrize("space", ["nano-gpt2", "nano-flexibert"])
def test_a_block_at_a_time_gives_the_same_flow(space: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found = spaces.get(space)
    arch = found.sample(random.Random(0))

    def scores() -> list[float]:
        built = Network(found.build(arch, 0), found.batch(0))
        return [value(name, built) for name in FLOWS]

    whole = scores()
    monkeypatch.setattr(flow, "_SMALL", 0)
    assert scores() == whole


def test_flows_beyond_the_largest_float_keep_their_order() -> None:
    steps = [Scaled(0.75, e) for e in (1000, 1020, 1025, 3000, 9000)]
    sums = [math.fsum(in_range([[one, one], [one.times(2.0)]])[0]) for one in steps]
    assert sums[0] == 2 * math.ldexp(0.75, 1000)
    assert sums == sorted(sums)
    assert len(set(sums)) == len(sums)
    assert math.isfinite(sums[-1])
    ((first, second), (third,)) = in_range([[steps[3], steps[3]], [steps[3].times(2.0)]])
    assert first == second
    assert third == pytest.approx(2 * first)


@pytest.mark.parametrize("name", FLOWS)
def test_a_deep_networks_flow_is_finite(name: str) -> None:
    def score(depth: int) -> float:
        torch.manual_seed(0)
        return value(name, Network(Deep(depth), torch.ones(2, 3, dtype=torch.int64)))

    # A block multiplies by about 1e11, so that 40 exceed any float.
    assert math.isfinite(score(60))
    assert score(60) > score(40) > score(20) > 0


class Deep(nn.Module):
    """Blocks of one attention's and one MLP's matrix with large entries."""

    def __init__(self, depth: int) -> None:
        super().__init__()
        self.words = nn.Embedding(5, 4)
        self.blocks = nn.ModuleList(
            nn.Sequential(OrderedDict(q=nn.Linear(4, 4), ffn=nn.Linear(4, 4))) for _ in range(depth)
        )
        for weight in self.blocks.parameters():
            nn.init.uniform_(weight, 1e5, 2e5)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.words(tokens)
        for block in self.blocks:
            x = block(x)
        return x
