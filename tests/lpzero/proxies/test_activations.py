"""Proxies of activations and noisy inputs against the slow way, on networks with odd sizes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from lpzero.proxies import Network
from lpzero.proxies.families.activations import _CURVE, _STEPS, _length
from lpzero.proxies.passes import NOISE
from tests.lpzero.proxies.test_saliency import value
from tests.lpzero.proxies.tiny_networks import (
    LAYOUT,
    TOKENS,
    Products,
    foreign,
    network,
    next_token,
)


def outputs(model: nn.Module, tokens: Tensor) -> list[Tensor]:
    found: list[Tensor] = []
    handles = [
        stage.register_forward_hook(lambda *args: found.append(args[2].detach()))
        for stage in model.stages  # type: ignore[union-attr]
    ]
    model(tokens)
    for handle in handles:
        handle.remove()
    return found


def test_meco_is_the_least_eigenvalue_of_evenly_spaced_channels() -> None:
    model = foreign(0, d=21, vocabulary=60)
    tokens = torch.randint(0, 60, (9, 8), generator=torch.Generator().manual_seed(0))
    net = Network(model, tokens, next_token, layout=LAYOUT)
    expected = 0.0
    for output in outputs(model, tokens):
        channels = output.reshape(-1, 21).numpy().T
        picked = channels[[0, 3, 6, 9, 11, 14, 17, 20]]  # 20 / 7 apart, rounded
        least = np.linalg.eigvalsh(np.corrcoef(picked))[0]
        assert least > 1e-3, "so that it counts"
        expected += least * 21 / 8
    assert value("meco", net) == pytest.approx(expected, rel=1e-9)


def test_the_length_of_a_polygon_is_closed() -> None:
    triangle = torch.tensor([[0.0, 0.0], [3.0, 0.0], [3.0, 4.0]])
    assert _length(triangle) == pytest.approx(3 + 4 + 5)


def test_length_distortion_is_that_of_the_outputs_along_the_circle() -> None:
    net = Network(Products([[2.0, 1.0], [0.0, 3.0]]), torch.tensor([[0, 1, 1]]), next_token)
    plane, _ = np.linalg.qr(net.draw(_CURVE).standard_normal((6, 2)))
    angles = 2 * math.pi * np.arange(_STEPS) / _STEPS
    around = np.outer(np.cos(angles), plane[:, 0]) + np.outer(np.sin(angles), plane[:, 1])
    circle = math.sqrt(6) * around
    weight = np.array([[2.0, 1.0], [0.0, 3.0]])
    ends = [point.reshape(3, 2) @ weight.T for point in circle]
    lengths = [
        sum(float(np.linalg.norm(points[i] - points[i - 1])) for i in range(_STEPS))
        for points in (ends, list(circle))
    ]
    assert value("length-distortion", net) == pytest.approx(lengths[0] / lengths[1], rel=1e-12)


def naive_agreement() -> tuple[np.ndarray, int]:
    """How many activations are positive or not in both inputs alike."""
    model = foreign()
    found: list[Tensor] = []
    for stage in model.stages:
        stage.mlp[1].register_forward_hook(lambda *args: found.append(args[2].detach()))
    model(TOKENS)
    patterns = torch.cat([(a > 0).flatten(1) for a in found], dim=1)
    B = len(TOKENS)
    kernel = np.array(
        [[int((patterns[i] == patterns[j]).sum()) for j in range(B)] for i in range(B)], float
    )
    return kernel, patterns.shape[1]


def test_activation_distance_counts_what_is_on_and_what_is_off_alike() -> None:
    kernel, n = naive_agreement()
    expected = math.log(abs(np.linalg.det(kernel)))
    assert value("activation-distance", network()) == pytest.approx(expected, rel=1e-9)
    scaled = math.log(abs(np.linalg.det(kernel / n)))
    assert value("activation-distance-normalised", network()) == pytest.approx(scaled, rel=1e-9)


def naive_noised(levels: list[float]) -> float:
    """jacobian-cosine with noise of each level times its input's spread, input by input."""
    model, net = foreign(), network()
    table = model.table.weight.detach()
    inputs = table[TOKENS]
    noise = torch.from_numpy(net.draw(NOISE).standard_normal(tuple(inputs.shape)))
    gradients = []
    for i, level in enumerate(levels):
        spread = float(inputs[i].numpy().std())
        x = (inputs[i : i + 1] + level * spread * noise[i : i + 1]).requires_grad_()
        y = x
        for stage in model.stages:
            y = stage(y)
        loss = next_token(model.head(y), TOKENS[i : i + 1]).sum()
        gradients.append(torch.autograd.grad(loss, x)[0].flatten().numpy())
    cosines = [
        abs(a @ b) / (np.linalg.norm(a) * np.linalg.norm(b))
        for i, a in enumerate(gradients)
        for b in gradients[i + 1 :]
    ]
    return 1 - float(np.mean([c ** (1 / 20) for c in cosines]))


@pytest.mark.parametrize(
    ("name", "levels"),
    [
        ("jacobian-cosine", [0.0, 0.0, 0.0]),
        ("jacobian-cosine-large-noise", [1.0, 1.0, 1.0]),
        ("jacobian-cosine-more-noised", [0.0, 0.5, 1.0]),
    ],
)
def test_noise_is_as_large_as_stated(name: str, levels: list[float]) -> None:
    assert value(name, network()) == pytest.approx(naive_noised(levels), rel=1e-9)
