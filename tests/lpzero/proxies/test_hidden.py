"""Proxies of hidden states and the released noise, worked out another way."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from lpzero.proxies import Network, evaluate, get
from lpzero.proxies.families.covariances import unit_spectrum
from spaces.nlp_rnn import RnnSpace

SPACE = RnnSpace(
    name="small", embedding=4, hidden=5, vocabulary=12, batch_shape=(3, 6), wide_shape=(7, 6)
)
CELL = SPACE.from_json(
    {
        "f": {"op": "linear", "input": ["x", "h_prev_0"]},
        "h_new_0": {"op": "activation_tanh", "input": ["f"]},
    }
)
K = 1e-5


def network() -> Network:
    model = SPACE.build(CELL, 0).double()
    return Network(model, SPACE.batch(0), wide_tokens=SPACE.wide_batch(0))


def released_score(rows: np.ndarray) -> float:
    """As the public code has it: NumPy's correlations and eigenvalues."""
    values = np.linalg.eigvalsh(np.corrcoef(rows))
    return float(-np.sum(np.log(values + K) + 1 / (values + K)))


@pytest.mark.parametrize(("B", "T", "d"), [(6, 5, 8), (2, 4, 12)])
def test_the_spectrum_of_units_is_numpys(B: int, T: int, d: int) -> None:
    outputs = torch.randn(B, T, d, generator=torch.Generator().manual_seed(1)).double()
    before = np.zeros((B, T, d))
    before[:, 1:] = outputs[:, :-1].numpy()
    expected = released_score(before.reshape(B * T, d).T)
    # With fewer tokens than units some eigenvalues are zero up to rounding, which 1 / k magnifies.
    assert unit_spectrum(outputs) == pytest.approx(expected, rel=1e-9 if d < B * T else 1e-4)


def test_hidden_covariance_is_that_of_each_layer_on_the_wide_batch() -> None:
    net = network()
    with torch.no_grad():
        x = net.model.embedding(SPACE.wide_batch(0))
        expected = []
        for layer in net.model.blocks:
            x = layer(x)
            expected.append(unit_spectrum(x))
    whole = evaluate(get("hidden-covariance").measure, net)
    assert whole.blocks == pytest.approx(tuple(expected))
    for index in range(3):
        one = evaluate(get(f"hidden-covariance-{index + 1}").measure, net)
        assert one.score == pytest.approx(expected[index])


def test_hidden_saliency_has_the_gradient_through_later_steps() -> None:
    net = network()
    model, tokens = net.model, SPACE.batch(0)
    x, states = model.embedding(tokens), []
    for layer in model.blocks:
        (from_x, from_h), bias = layer.cell[0].weights, layer.cell[0].bias
        h = torch.zeros(3, layer.d, dtype=torch.float64)
        outputs = []
        for t in range(tokens.shape[1]):
            h = torch.tanh(x[:, t] @ from_x.T + h @ from_h.T + bias)
            h.retain_grad()
            outputs.append(h)
        states += outputs[:-1]  # nothing begins with the last one
        x = torch.stack(outputs, 1)
    model.token_losses(x, tokens).mean().backward()
    expected = sum(float((h.detach() * h.grad).abs().sum()) for h in states)
    model.zero_grad(set_to_none=True)
    assert evaluate(get("hidden-saliency").measure, net).score == pytest.approx(expected)


def test_the_released_noise_is_an_amplitude_times_the_variance_over_the_batch() -> None:
    net = network()
    inputs = net.passed.inputs[0]
    noise = torch.from_numpy(net.draw(3).standard_normal(tuple(inputs.shape)))
    scores = {}
    for amplitude in (0.0, 0.1, 10.0, 100.0):
        x = (inputs + amplitude * inputs.var(0, correction=0) * noise).requires_grad_()
        hidden = x
        for layer in net.model.blocks:
            hidden = layer(hidden)
        loss = net.model.token_losses(hidden, SPACE.batch(0)).mean()
        (J,) = torch.autograd.grad(loss, x)
        scores[amplitude] = released_score(J.flatten(1).numpy())
    assert len({round(score, 9) for score in scores.values()}) == 4

    def found(name: str) -> float:
        return evaluate(get(f"jacobian-covariance-{name}").measure, net).score

    assert found("large-noise") == pytest.approx(1 - abs(scores[0.0] - scores[10.0]))
    assert found("more-noised") == pytest.approx(math.prod(scores.values()))
