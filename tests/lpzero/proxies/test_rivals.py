"""W-PCA, SWAP, AZ-NAS and Auto-Prox worked out by hand or the slow way, on tiny networks."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import spaces
from lpzero.errors import InputError
from lpzero.proxies import Context, Measurements, Network, get
from lpzero.proxies.families.activations import distinct, size_factor
from lpzero.proxies.families.attention import _norm
from lpzero.proxies.families.covariances import count_components, spectrum
from lpzero.proxies.passes import _SIGNS, LayerRows, block_jacobians, entropy
from spaces.flexibert.model import FeedForward
from tests.lpzero.proxies.test_saliency import value
from tests.lpzero.proxies.tiny_networks import (
    LAYOUT,
    TOKENS,
    Product,
    Products,
    foreign,
    network,
    next_token,
)

SPACE = spaces.get("nano-gpt2")


def larger() -> tuple[Network, list[Tensor], list[Tensor]]:
    """A network, the hidden layers of its MLPs before activation, and its states."""
    model = foreign(3, d=5, f=9, vocabulary=40)
    tokens = torch.randint(0, 40, (6, 7), generator=torch.Generator().manual_seed(0))
    hidden: list[Tensor] = []
    states: list[Tensor] = []
    handles = [model.table.register_forward_hook(lambda *args: states.append(args[2].detach()))]
    for stage in model.stages:
        handles.append(
            stage.mlp[0].register_forward_hook(lambda *args: hidden.append(args[2].detach()))
        )
        handles.append(stage.register_forward_hook(lambda *args: states.append(args[2].detach())))
    model(tokens)
    for handle in handles:
        handle.remove()
    return Network(model, tokens, next_token, layout=LAYOUT), hidden, states


def test_components_are_counted_until_they_have_the_share() -> None:
    assert count_components(torch.tensor([1.0, 2.0, 97.0])) == 2  # 97 and 2 are 99 of 100
    assert count_components(torch.tensor([1.1, 1.9, 97.0])) == 3
    assert count_components(torch.tensor([0.0, 0.0, 5.0])) == 1


def test_v_pca_is_that_of_the_covariance_of_each_hidden_layer() -> None:
    net, hidden, _ = larger()
    expected = []
    for layer in hidden:
        values = np.linalg.eigvalsh(np.cov(layer.flatten(0, 1).numpy(), rowvar=False))[::-1]
        n, held = 0, 0.0
        while held < 0.99:
            held += values[n] / values.sum()
            n += 1
        expected.append(n)
    assert set(expected) <= {3, 4, 5}, "a function of five inputs has five components at most"
    assert value("v-pca", net) == sum(expected)


def test_outputs_that_are_no_affine_function_keep_their_own_spectrum() -> None:
    x = torch.randn(20, 2, generator=torch.Generator().manual_seed(0)).double()
    for y in (
        x @ torch.tensor([[1.0, 2, 3], [0, 1, 1]]).double() + 4,
        torch.cat([x, x[:, :1] ** 3], 1),
    ):
        found = spectrum(LayerRows(x, y)).numpy()[::-1][:3]
        whole = np.linalg.eigvalsh(np.cov(y.numpy(), rowvar=False))[::-1] * 19
        np.testing.assert_allclose(found, whole[: len(found)], rtol=1e-9)
    assert len(found) == 3


def test_w_pca_is_v_pca_times_the_parameters(tmp_path: Path) -> None:
    archs = [SPACE.sample(random.Random(seed)) for seed in range(3)]
    measurements = Measurements(Context(folder=tmp_path))
    v, w = (get(name).score(SPACE, archs, measurements) for name in ("v-pca", "w-pca"))
    assert w.tolist() == [a * SPACE.parameters(arch) for a, arch in zip(v, archs, strict=True)]


def test_v_pca_needs_a_hidden_layer() -> None:
    net = Network(Products([[2.0, 1.0], [0.0, 3.0]]), torch.tensor([[0, 1, 1]]), next_token)
    with pytest.raises(InputError, match=r"block 0 of Products has no hidden layer"):
        value("v-pca", net)


def test_distinct_columns_are_counted_once() -> None:
    columns = torch.tensor([[1, 0, 1, 1], [0, 1, 0, 1], [1, 1, 1, 1]]) > 0
    assert len(distinct(columns)) == 3  # 101, 011, 101, 111
    many = torch.zeros(70, 4, dtype=torch.bool)  # two words to a pattern
    many[0, 1] = many[69, 2] = many[69, 3] = True
    assert len(distinct(many)) == 3


def test_swap_counts_the_patterns_of_all_blocks_together() -> None:
    net, hidden, _ = larger()
    patterns = {
        tuple(bool(one > 0) for one in layer[:, t, unit])  # GELU(x) has the sign of x
        for layer in hidden
        for t in range(layer.shape[1])
        for unit in range(layer.shape[2])
    }
    assert 20 < len(patterns) < 2**6
    assert value("swap", net) == len(patterns)


def test_swap_of_stacked_feed_forward_layers_counts_the_units_of_every_layer() -> None:
    space = spaces.get("nano-flexibert")
    drawn = (space.sample(random.Random(seed)) for seed in range(200))
    arch = next(a for a in drawn if len({block.stacks for block in space.blocks(a)}) > 1)
    model = space.build(arch, 0)
    # Of so many inputs no layer alone has every pattern.
    tokens = torch.from_numpy(np.random.default_rng(0).integers(0, space.vocabulary, (24, 5)))
    signs: list[Tensor] = []
    for module in model.modules():
        if isinstance(module, FeedForward):
            for linear in module.stacks:  # GELU(x) has the sign of x
                linear.register_forward_hook(lambda _, __, out: signs.append((out > 0).flatten(1)))
    with torch.no_grad():
        model(tokens)
    assert len(signs) == sum(block.stacks for block in space.blocks(arch)) > space.depth(arch)
    columns = {tuple(row) for layer in signs for row in layer.T.tolist()}
    assert len(columns) > 1000
    assert value("swap", Network(model, tokens)) == len(columns)


@pytest.mark.slow
def test_the_regularised_swap_falls_off_on_both_sides_of_the_mean_size(tmp_path: Path) -> None:
    rng = random.Random(0)
    sizes = [SPACE.parameters(SPACE.sample(rng)) for _ in range(1000)]
    archs = [SPACE.sample(random.Random(seed)) for seed in range(3)]
    measurements = Measurements(Context(folder=tmp_path))
    plain, regular = (
        get(name).score(SPACE, archs, measurements) for name in ("swap", "swap-regularised")
    )
    for arch, a, b in zip(archs, plain, regular, strict=True):
        bell = math.exp(-0.5 * (SPACE.parameters(arch) - np.mean(sizes)) ** 2 / np.var(sizes))
        assert size_factor(SPACE, arch) == pytest.approx(bell)
        assert b == pytest.approx(a * bell)


def test_entropy_is_that_of_the_shares_of_the_eigenvalues() -> None:
    # Tokens at 2 and -2 on one axis, at 1 and -1 on another: variances 4 to 1, so 0.8 and 0.2.
    states = torch.tensor([[[2.0, 0, 0], [-2, 0, 0]], [[0, 1, 0], [0, -1, 0]]])
    assert entropy(states) == pytest.approx(-0.8 * math.log(0.8) - 0.2 * math.log(0.2), abs=1e-6)
    assert entropy(states) == pytest.approx(0.5004, abs=1e-4)


def test_expressivity_and_progressivity_are_of_the_entropies_of_states() -> None:
    net, _, states = larger()
    found = []
    for state in states:
        values = np.linalg.eigvalsh(np.cov(state.flatten(0, 1).numpy(), rowvar=False))
        shares = values / values.sum()
        found.append(float(-(shares * np.log(shares + 1e-8)).sum()))
    assert value("az-expressivity", net) == pytest.approx(found[1] + found[2])
    least = min(found[1] - found[0], found[2] - found[1])
    assert value("az-progressivity", net) == pytest.approx(least)


def test_trainability_is_two_less_the_largest_singular_value_and_its_inverse() -> None:
    weights = [[2.0, 1.0], [0.0, 3.0]], [[1.0, -1.0], [0.5, 1.0]]
    net = Network(Products(*weights), torch.tensor([[0, 1, 1], [1, 1, 0]]), next_token)
    rng = net.draw(_SIGNS)
    scores = []
    for weight in weights:
        g = (rng.integers(0, 2, (2, 3, 2)) * 2.0 - 1).reshape(6, 2)
        back = np.stack([np.array(weight).T @ one for one in g])  # y = W x, so J' g = W' g
        mean = sum(np.outer(b, one) for b, one in zip(back, g, strict=True)) / 6
        s = float(np.linalg.svd(mean)[1][0])
        scores.append(2 - s - 1 / (s + 1e-6))
    assert value("az-trainability", net) == pytest.approx(np.mean(scores), rel=1e-12)


class Halving(nn.Module):
    """Every second token."""

    def forward(self, x: Tensor) -> Tensor:
        return x[:, ::2]


def test_a_block_that_pools_has_no_jacobian_between_tokens() -> None:
    model = Products([[2.0, 1.0], [0.0, 3.0]])
    model.blocks.append(Halving())
    model.blocks.append(Product([[1.0, 0.0], [0.0, 1.0]]))
    found = block_jacobians(Network(model, torch.tensor([[0, 1, 1, 0]]), next_token))
    assert [matrix is None for matrix in found] == [False, True, False]


def test_a_matrix_is_normalised_before_its_norm() -> None:
    found = _norm(torch.tensor([[1.0, 2.0], [3.0, 5.0]]))  # 0, 1/4, 1/2, 1
    assert found == pytest.approx(math.sqrt(1 / 16 + 1 / 4 + 1))


def test_auto_prox_reads_the_matrix_after_the_heads_and_the_last_gradient() -> None:
    model = foreign()
    next_token(model(TOKENS), TOKENS).mean().backward()
    terms = []
    for stage in model.stages:
        weight = stage.out.weight.detach().numpy()
        scaled = (weight - weight.min()) / (weight.max() - weight.min())
        slope = stage.mlp[2].weight.grad.numpy()
        root = np.sqrt(1 / (1 + np.exp(-slope)))
        terms.append(np.sqrt((scaled**2).sum()) + root.mean())
    assert value("auto-prox", network()) == pytest.approx(sum(terms), rel=1e-7)
