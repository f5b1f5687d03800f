"""One pass of the supernet against sums over slices, taken one architecture at a time."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
import torch

import spaces
from lpzero.errors import InputError
from lpzero.proxies import Context, Measurements, Network, evaluate, find, get, names
from lpzero.supernet import Saliency, has_supernet
from spaces.autoformer import AutoFormerArch, AutoFormerSpace
from spaces.errors import ArchitectureError

SPACE = AutoFormerSpace(
    name="tiny-vision",
    hidden=(16, 12),
    n_layers=(1, 2, 3),
    heads=(1, 3, 2),
    ratios=(1.5, 2.0),
    image=12,
    patch=4,
    classes=5,
    head_width=6,
)
SAMPLES = [SPACE.sample(random.Random(seed)) for seed in range(20)]
SUPERNET_PROXIES = ["supernet-snip", "supernet-snip-normalised"]


@pytest.fixture(scope="module")
def saliency() -> Saliency:
    return Saliency.of(SPACE, seed=1, batch_seed=2)


def naive_blocks(arch: AutoFormerArch) -> list[float]:
    """|W * dL/dW| of the supernet added up over the architecture's slices, block by block."""
    supernet = SPACE.supernet(1)
    network = Network(supernet.largest, SPACE.batch(2), seed=2)
    gradients = {
        f"blocks.{index}.{matrix.name}": gradient
        for index, block in enumerate(network.matrices)
        for matrix, gradient in zip(block, network.passed.gradients[index], strict=True)
    }
    totals = [0.0] * len(arch.layers)
    for name, weight in supernet.inherited(arch).items():
        if name in gradients:
            rows, columns = weight.shape
            product = weight.detach() * gradients[name][:rows, :columns]
            totals[int(name.split(".")[1])] += float(product.abs().sum(dtype=torch.float64))
    return totals


@pytest.mark.parametrize("arch", SAMPLES[:8])
def test_scores_are_sums_over_slices(saliency: Saliency, arch: AutoFormerArch) -> None:
    expected = naive_blocks(arch)
    whole = naive_blocks(SPACE.weight_sharing().largest())[: len(expected)]
    np.testing.assert_allclose(saliency.block_scores(arch), expected, rtol=1e-6)
    np.testing.assert_allclose(saliency.scores([arch]), [sum(expected)], rtol=1e-6)
    normalised = np.array(expected) / whole
    np.testing.assert_allclose(saliency.block_scores(arch, normalised=True), normalised, rtol=1e-6)
    np.testing.assert_allclose(saliency.scores([arch], True), [normalised.sum()], rtol=1e-6)


def test_the_supernets_own_score_is_its_snip(saliency: Saliency) -> None:
    network = Network(SPACE.supernet(1).largest, SPACE.batch(2), seed=2)
    [snip] = get("snip").measures
    whole = SPACE.weight_sharing().largest()
    assert saliency.scores([whole])[0] == pytest.approx(evaluate(snip, network).score, rel=1e-6)
    np.testing.assert_allclose(saliency.block_scores(whole, normalised=True), 1.0)


def test_many_architectures_are_scored_as_one_by_one(saliency: Saliency) -> None:
    together = saliency.scores(SAMPLES)
    np.testing.assert_array_equal(together, [saliency.scores([arch])[0] for arch in SAMPLES])
    assert saliency.scores([]).shape == (0,)


def test_a_larger_slice_never_scores_less(saliency: Saliency) -> None:
    for factor in ("heads", "ratio"):
        narrow, wide = (saliency.table(factor, hidden, 3) for hidden in (12, 16))
        assert narrow.shape == (3, len(SPACE.weight_sharing().choices(factor, 12)))
        assert (wide > narrow).all()
    assert (wide[:, 1] > wide[:, 0]).all()  # a ratio of 2 against 1.5


def test_an_architecture_outside_the_space_is_refused(saliency: Saliency) -> None:
    with pytest.raises(ArchitectureError, match="hidden = 13"):
        saliency.scores([AutoFormerArch(13, SAMPLES[0].layers)])


def test_a_space_without_supernet_is_refused() -> None:
    assert not has_supernet(spaces.get("gpt2"))
    with pytest.raises(InputError, match="space gpt2 has no supernet; use an AutoFormer"):
        Saliency.of(spaces.get("gpt2"))


def test_splitting_the_batch_changes_rounding_only(saliency: Saliency) -> None:
    split = Saliency.of(SPACE, seed=1, batch_seed=2, chunk=1)
    np.testing.assert_allclose(split.scores(SAMPLES), saliency.scores(SAMPLES), rtol=1e-4)


@pytest.mark.parametrize("name", SUPERNET_PROXIES)
def test_the_proxies_give_these_scores(name: str, saliency: Saliency, tmp_path: Path) -> None:
    measurements = Measurements(Context(seed=1, batch_seed=2, folder=tmp_path))
    normalised = name.endswith("normalised")
    proxy = get(name)
    scores = proxy.score(SPACE, SAMPLES, measurements)
    np.testing.assert_array_equal(scores, saliency.scores(SAMPLES, normalised))
    blocks = proxy.block_scores(SPACE, SAMPLES, measurements)  # type: ignore[attr-defined]
    assert [len(values) for values in blocks] == [len(arch.layers) for arch in SAMPLES]
    np.testing.assert_allclose([values.sum() for values in blocks], scores)


def test_one_pass_serves_every_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measurements = Measurements(Context(folder=tmp_path))
    first = get("supernet-snip").score(SPACE, SAMPLES, measurements)
    monkeypatch.setattr(AutoFormerSpace, "supernet", None)
    np.testing.assert_array_equal(get("supernet-snip").score(SPACE, SAMPLES, measurements), first)
    get("supernet-snip-normalised").score(SPACE, SAMPLES, measurements)


def test_only_spaces_with_a_supernet_have_these_proxies() -> None:
    left_out = [n for n in names() if not get(n).applies_to(spaces.get("gpt2"))]
    assert set(left_out) == {*SUPERNET_PROXIES, "supernet-snip-released"}
    left_out = [n for n in names() if not get(n).applies_to(spaces.get("nano-gpt2"))]
    assert left_out == ["supernet-snip-released"]  # the public code is for AutoFormer
    assert all(get(name).applies_to(SPACE) for name in names())
    combined = find("rank-mean(snip, supernet-snip)")
    assert not combined.applies_to(spaces.get("flexibert"))
    assert combined.applies_to(SPACE)
