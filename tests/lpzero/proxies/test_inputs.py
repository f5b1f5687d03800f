"""Proxies of inputs, activations and heads against loops."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
from torch import Tensor

from lpzero.errors import InputError
from lpzero.proxies import Network, evaluate, get
from lpzero.proxies.families.activations import spectrum_score
from tests.lpzero.proxies.test_saliency import value
from tests.lpzero.proxies.tiny_networks import TOKENS, Products, foreign, network, next_token


def walk(tokens: Tensor) -> dict[str, list[Tensor]]:
    """Everything inside the foreign model for one sequence, computed by hand."""
    model = foreign()
    x = model.table(tokens[None]).detach().requires_grad_()
    seen: dict[str, list[Tensor]] = {"x": [x], "S": [], "head": [], "A": [], "out": []}
    for stage in model.stages:
        q, k, v = stage.query(x), stage.key(x), stage.value(x)
        S = (q @ k.transpose(1, 2)).softmax(-1)
        head = S @ v
        x = x + stage.out(head)
        A = torch.nn.functional.gelu(stage.mlp[0](stage.norm(x)))
        x = x + stage.mlp[2](A)
        for name, tensor in (("S", S), ("head", head), ("A", A), ("out", x)):
            seen[name].append(tensor)
    seen["loss"] = [next_token(model.head(x), tokens[None]).sum()]
    return seen


WALKS = [walk(tokens) for tokens in TOKENS]


def input_gradients() -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    rows = [torch.autograd.grad(w["loss"][0], w["x"][0], retain_graph=True)[0] for w in WALKS]
    return torch.cat(rows).flatten(1).numpy()


def test_jacobian_covariance_by_numpy() -> None:
    values = np.linalg.eigvalsh(np.corrcoef(input_gradients()))
    expected = -sum(math.log(v + 1e-5) + 1 / (v + 1e-5) for v in values)
    assert value("jacobian-covariance", network()) == pytest.approx(expected, rel=1e-6)


def test_uncorrelated_inputs_score_minus_their_number() -> None:
    assert spectrum_score(torch.eye(4, dtype=torch.float64)) == pytest.approx(-4, rel=1e-4)


def test_jacobian_cosine_pair_by_pair() -> None:
    J = input_gradients()
    total = 0.0
    for a, b in itertools.permutations(J, 2):
        total += abs(float(a @ b) / np.linalg.norm(a) / np.linalg.norm(b)) ** (1 / 20)
    assert value("jacobian-cosine", network()) == pytest.approx(1 - total / 6, rel=1e-9)


def test_noise_changes_the_cosines_and_repeats() -> None:
    names = ("jacobian-cosine", "jacobian-cosine-large-noise", "jacobian-cosine-more-noised")
    first, again = ([value(name, network()) for name in names] for _ in range(2))
    assert first == again
    assert len(set(first)) == 3


def test_activation_distance_by_counting() -> None:
    patterns = [torch.cat([a.flatten() for a in w["A"]]) > 0 for w in WALKS]
    kernel = np.array([[float((p == q).sum()) for q in patterns] for p in patterns])
    expected = math.log(abs(np.linalg.det(kernel)))
    assert value("activation-distance", network()) == pytest.approx(expected, rel=1e-8)
    scaled = expected - 3 * math.log(len(patterns[0]))
    assert value("activation-distance-normalised", network()) == pytest.approx(scaled, rel=1e-8)


def test_linear_regions_by_sets() -> None:
    expected = 0
    for block in range(2):
        tokens = torch.cat([w["A"][block][0] for w in WALKS]) > 0
        expected += len({tuple(row.tolist()) for row in tokens})
    assert value("linear-regions", network()) == expected


def test_meco_by_numpy() -> None:
    expected = 0.0
    for block in range(2):
        channels = torch.cat([w["out"][block][0] for w in WALKS]).T.detach().numpy()
        expected += np.linalg.eigvalsh(np.corrcoef(channels))[0]  # 3 channels, all taken
    assert value("meco", network()) == pytest.approx(expected, rel=1e-6)


def test_length_distortion_of_a_scaling_is_its_factor() -> None:
    model = Products([[3.0, 0.0], [0.0, 3.0]], [[0.0, 2.0], [2.0, 0.0]])
    net = Network(model, torch.tensor([[0, 1]]), lambda output, _: output.sum((1, 2)))
    assert value("length-distortion", net) == pytest.approx(6)


def test_heads_by_loops() -> None:
    confidence = softmax = importance = 0.0
    for w in WALKS:
        for block in range(2):
            [g] = torch.autograd.grad(w["loss"][0] / 3, w["head"][block], retain_graph=True)
            head, S = w["head"][block][0].detach(), w["S"][block][0].detach()
            confidence += float(head.max(0).values.abs().mean()) / 3
            softmax += sum(float(row.max()) for row in S) / 9
            importance += sum(abs(float(a @ b)) for a, b in zip(head, g[0], strict=True))
    assert value("attention-confidence", network()) == pytest.approx(confidence, rel=1e-9)
    assert value("attention-confidence-normalised", network()) == pytest.approx(confidence / 2)
    assert value("softmax-confidence", network()) == pytest.approx(softmax, rel=1e-9)
    assert value("head-importance", network()) == pytest.approx(importance, rel=1e-9)


@pytest.mark.parametrize(
    "name",
    [
        "fisher",
        "activation-distance",
        "linear-regions",
        "softmax-confidence",
        "attention-confidence",
        "head-importance",
    ],
)
def test_without_taps_the_error_says_what_to_name(name: str) -> None:
    bare = Network(foreign(), TOKENS, next_token)
    with pytest.raises(InputError, match=r"name the sub-module .* in Layout\."):
        evaluate(get(name).measure, bare)  # type: ignore[attr-defined]
