"""Proxies of heads against the slow way: which maximum, which sum, of what sign."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.lpzero.proxies.test_saliency import value
from tests.lpzero.proxies.tiny_networks import TOKENS, foreign, network, next_token


def heads_and_gradients() -> list[tuple[Tensor, Tensor]]:
    """Of each block what its only head puts out (B, T, d), and the gradient of the loss there."""
    model = foreign()
    found: list[Tensor] = []
    for stage in model.stages:
        stage.out.register_forward_pre_hook(lambda _, args: found.append(args[0]))
    loss = next_token(model(TOKENS), TOKENS).mean()
    return list(zip([x.detach() for x in found], torch.autograd.grad(loss, found), strict=True))


def test_confidence_is_the_size_of_the_largest_output_not_the_largest_size() -> None:
    heads = [head for head, _ in heads_and_gradients()]
    B, T, d = heads[0].shape
    expected = sum(
        sum(abs(max(float(head[b, t, i]) for t in range(T))) for b in range(B) for i in range(d))
        / (B * d)
        for head in heads
    )
    assert any((head.amax(1) < 0).any() for head in heads), "so that the two differ"
    assert value("attention-confidence", network()) == pytest.approx(expected, rel=1e-9)


def test_importance_adds_up_sizes_token_by_token() -> None:
    expected = sum(
        abs(float(head[b, t] @ gradient[b, t]))
        for head, gradient in heads_and_gradients()
        for b in range(len(TOKENS))
        for t in range(TOKENS.shape[1])
    )
    assert value("head-importance", network()) == pytest.approx(expected, rel=1e-9)


def test_softmax_confidence_is_the_mean_of_the_largest_probability() -> None:
    model = foreign()
    found: list[Tensor] = []
    for stage in model.stages:
        stage.probabilities.register_forward_hook(lambda *args: found.append(args[2].detach()))
    model(TOKENS)
    expected = sum(float(S.amax(-1).mean()) for S in found)
    assert value("softmax-confidence", network()) == pytest.approx(expected, rel=1e-9)
