"""Kernels of single inputs against explicit gradients of every output."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import Tensor

import spaces
from lpzero.proxies import Network
from lpzero.proxies.sample_gradients import PROBE
from spaces.gpt2 import Gpt2Arch
from tests.lpzero.proxies.test_saliency import value
from tests.lpzero.proxies.tiny_networks import LAYOUT, TOKENS, Foreign, foreign, network, next_token


def matrices(model: Foreign) -> list[Tensor]:
    return [p for n, p in model.named_parameters() if n.startswith("stages") and p.ndim == 2]


def jacobians(model: Foreign) -> list[Tensor]:
    """Of each sequence the gradient of every output of the last block (T d, weights)."""
    found = []
    for tokens in TOKENS:
        outputs: list[Tensor] = []
        handle = model.stages[-1].register_forward_hook(
            lambda *args, to=outputs: to.append(args[2])
        )
        model(tokens[None])
        handle.remove()
        rows = [
            torch.cat(
                [
                    g.flatten()
                    for g in torch.autograd.grad(
                        z, matrices(model), retain_graph=True, materialize_grads=True
                    )
                ]
            )
            for z in outputs[0].flatten()
        ]
        found.append(torch.stack(rows))
    return found


def test_ntkt_is_the_probes_quadratic_form_of_every_outputs_gradient() -> None:
    net, rows = network(), jacobians(foreign())
    T, d = TOKENS.shape[1], 3
    signs = net.draw(PROBE).integers(0, 2, (T, d)) * 2.0 - 1.0
    probe = torch.from_numpy(signs).flatten()
    along = torch.stack([probe @ J for J in rows])  # (B, weights)
    kernel = along @ along.T
    assert value("ntkt", net) == pytest.approx(float(kernel.trace()) / T**2, rel=1e-10)
    values = torch.linalg.eigvalsh(kernel)
    condition = float(values[-1] / values[0])
    assert value("ntk-condition", net) == pytest.approx(condition, rel=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("chunk", [None, 1])
def test_the_trace_without_gradients_is_that_of_the_kernel(chunk: int | None) -> None:
    arch = Gpt2Arch(64, (2, 4, 2), (256, 320, 256), -1, 1)
    model, tokens = spaces.NANO_GPT2.build(arch, 1).double(), spaces.NANO_GPT2.batch(0)[:4, :24]
    net = Network(model, tokens, chunk=chunk)
    traced = net.tangent_trace
    assert "tangent" not in net.used  # the gradients were not formed
    assert traced.value == pytest.approx(float(net.tangent.trace()), rel=1e-12)
    assert traced.n_tokens == net.entry[0]
    # A weight used twice has no single layer to read: the whole kernel is taken.
    model.blocks[2].attention = model.blocks[0].attention
    shared = Network(model, tokens)
    assert shared.tangent_trace.value == pytest.approx(float(shared.tangent.trace()), rel=1e-12)
    assert "tangent" in shared.used


def test_the_trace_of_a_quick_network_is_that_of_its_first_sequence_for_each_of_them() -> None:
    arch = Gpt2Arch(64, (2, 4), (256, 320), -1, 1)
    model, tokens = spaces.NANO_GPT2.build(arch, 1).double(), spaces.NANO_GPT2.batch(0)
    first = Network(model, tokens[:1]).tangent_trace
    quick = Network(model, tokens, is_quick=True).tangent_trace
    assert quick.value == pytest.approx(len(tokens) * first.value, rel=1e-12)
    assert quick.n_tokens == first.n_tokens
    assert Network(model, tokens).tangent_trace.value != pytest.approx(quick.value, rel=1e-6)


@pytest.mark.slow
def test_ntkt_is_on_average_the_trace_over_every_output() -> None:
    model = foreign()
    exact = sum(float(J.square().sum()) for J in jacobians(model)) / TOKENS.shape[1] ** 2
    drawn = [
        value("ntkt", Network(model, TOKENS, next_token, layout=LAYOUT, seed=seed))
        for seed in range(60)
    ]
    error = np.std(drawn) / math.sqrt(len(drawn))
    assert abs(np.mean(drawn) - exact) < 4 * error
    assert error < 0.15 * exact


def gradients_of_losses() -> Tensor:
    """(B, weights), each sequence's own loss."""
    model = foreign()
    rows = []
    for tokens in TOKENS:
        loss = next_token(model(tokens[None]), tokens[None]).sum()
        rows.append(torch.cat([g.flatten() for g in torch.autograd.grad(loss, matrices(model))]))
    return torch.stack(rows)


def test_kernels_of_losses() -> None:
    net, g = network(), gradients_of_losses()
    assert value("ntk-trace", net) == pytest.approx(math.sqrt(float(g.square().sum()) / 3))
    assert value("mgm", net) == pytest.approx(float((g @ g.T).sum()) / 9)
    agreement = sum(abs(int(column.sum())) for column in g.sign().T)
    assert value("gradsign", net) == agreement


def test_zico_matrix_by_matrix() -> None:
    net, g = network(), gradients_of_losses().numpy()
    expected, start = 0.0, 0
    for matrix in matrices(foreign()):
        part = g[:, start : start + matrix.numel()]
        start += matrix.numel()
        spread = part.std(0)
        expected += math.log((np.abs(part).mean(0)[spread > 0] / spread[spread > 0]).sum())
    assert value("zico", net) == pytest.approx(expected, rel=1e-8)
