"""AutoFormer: published sizes, relative positions against a naive form, images."""

from __future__ import annotations

import itertools
import random

import pytest
import torch
from torch import Tensor

import spaces
from spaces.autoformer import AutoFormerArch, AutoFormerLayer, AutoFormerSpace
from spaces.autoformer.model import RelativePositions
from spaces.errors import ArchitectureError
from spaces.images import noise_images, random_labels

TINY = AutoFormerSpace(
    name="tiny-vision",
    hidden=(12, 16),
    n_layers=(1, 2),
    heads=(1, 2),
    ratios=(1.5, 2.0),
    image=12,
    patch=4,
    classes=5,
    head_width=6,
)


def arch(hidden: int, ratios: list[float], heads: list[int]) -> AutoFormerArch:
    pairs = zip(heads, ratios, strict=True)
    return AutoFormerArch(hidden, tuple(AutoFormerLayer(n, float(r)) for n, r in pairs))


# The architectures released with PreNAS, and what it prints of three of them in Table 3.
PRENAS_TINY = arch(192, [4, 4, 4, 4, 4, 3.5, 3.5, 4, 4, 3.5, 4, 4],
                   [4, 4, 4, 4, 3, 3, 3, 3, 3, 4, 3, 4])  # fmt: skip
PRENAS_SMALL_18M = arch(320, [4, 4, 3.5, 4, 3.5, 4, 4, 3.5, 4, 4, 3.5, 4, 4],
                        [7, 7, 7, 7, 7, 7, 7, 7, 6, 7, 5, 6, 5])  # fmt: skip
PRENAS_SMALL = arch(384, [4, 4, 3.5, 4, 3.5, 4, 3.5, 3.5, 4, 4, 3, 4, 3.5],
                    [7, 7, 7, 7, 5, 7, 7, 5, 6, 5, 5, 6, 5])  # fmt: skip
PRENAS_BASE_42M = arch(528, [3] * 12 + [3.5, 3], [9] * 14)
PRENAS_BASE = arch(576, [3.5, 4, 3.5, 3.5, 3.5, 4, 3.5, 3.5, 3.5, 3.5, 4, 3, 3.5, 4],
                   [9, 9, 10, 9, 9, 10, 9, 9, 9, 9, 9, 9, 10, 9])  # fmt: skip


@pytest.mark.parametrize(
    ("name", "published", "parameters"),
    [
        ("autoformer-tiny", PRENAS_TINY, 5_994_760),
        ("autoformer-small", PRENAS_SMALL_18M, 17_991_400),
        ("autoformer-small", PRENAS_SMALL, 22_989_928),
        ("autoformer-base", PRENAS_BASE_42M, 41_966_944),
        ("autoformer-base", PRENAS_BASE, 53_876_104),
    ],
)
def test_published_architectures_have_their_published_parameters(
    name: str, published: AutoFormerArch, parameters: int
) -> None:
    space = spaces.get(name)
    space.validate(published)
    assert space.parameters(published) == parameters


@pytest.mark.parametrize(
    ("name", "published", "billions"),
    [
        ("autoformer-tiny", PRENAS_TINY, 1.3),
        ("autoformer-small", PRENAS_SMALL, 5.1),
        ("autoformer-base", PRENAS_BASE, 11),
    ],
)
def test_multiply_adds_are_what_papers_print_as_flops(
    name: str, published: AutoFormerArch, billions: float
) -> None:
    assert spaces.get(name).multiply_adds(published) == pytest.approx(billions * 1e9, rel=0.05)  # type: ignore[attr-defined]


def test_cardinality_is_the_count() -> None:
    layers = [AutoFormerLayer(*pair) for pair in itertools.product(TINY.heads, TINY.ratios)]
    archs = {
        AutoFormerArch(hidden, chosen)
        for hidden, n in itertools.product(TINY.hidden, TINY.n_layers)
        for chosen in itertools.product(layers, repeat=n)
    }
    assert TINY.cardinality() == len(archs)
    rng = random.Random(0)
    assert {TINY.sample(rng) for _ in range(1000)} == archs


def pair_vectors(module: RelativePositions, g: int) -> Tensor:
    """The vector of every pair of tokens (T, T, w), one by one."""
    width = module.vertical.shape[1]
    vectors = torch.empty(g * g + 1, g * g + 1, width, dtype=module.vertical.dtype)
    for i, j in itertools.product(range(g * g + 1), repeat=2):
        row, column = 0, 0
        if i and j:
            down, right = (j - 1) // g - (i - 1) // g, (j - 1) % g - (i - 1) % g
            row, column = (
                max(-module.clip, min(module.clip, d)) + module.clip + 1 for d in (down, right)
            )
        vectors[i, j] = module.vertical[row] + module.horizontal[column]
    return vectors


@pytest.mark.parametrize(("g", "clip"), [(3, 14), (4, 2), (1, 3)])
def test_relative_positions_equal_their_vectors_laid_out(g: int, clip: int) -> None:
    generator = torch.Generator().manual_seed(0)

    def draw(*shape: int) -> Tensor:
        return torch.randn(shape, generator=generator, dtype=torch.float64)

    module = RelativePositions(5, clip).double()
    with torch.no_grad():
        module.vertical.copy_(draw(2 * clip + 2, 5))
        module.horizontal.copy_(draw(2 * clip + 2, 5))
        T = g * g + 1
        vectors = pair_vectors(module, g)
        q, p = draw(2, 3, T, 5), draw(2, 3, T, T).softmax(-1)
        scores = torch.einsum("bnqw,qkw->bnqk", q, vectors)
        values = torch.einsum("bnqk,qkw->bnqw", p, vectors)
        torch.testing.assert_close(module.scores(q), scores)
        torch.testing.assert_close(module.values(p), values)


def test_every_parameter_takes_part() -> None:
    chosen = arch(16, [2.0, 1.5], [2, 1])
    model = TINY.build(chosen, 0)
    loss = model.logits(model(TINY.batch())).square().sum()
    loss.backward()  # type: ignore[no-untyped-call]
    silent = [n for n, p in model.named_parameters() if p.grad is None or not p.grad.any()]
    # A bias of the keys moves every score of a query alike: its gradient is 0 but for rounding.
    assert [name for name in silent if not name.endswith("key.bias")] == []


def test_images_are_standard_and_smooth() -> None:
    images = noise_images((8, 3, 64, 64), seed=0)
    assert float(images.mean()) == pytest.approx(0, abs=0.15)
    assert float(images.std()) == pytest.approx(1, abs=0.15)
    near = float((images[..., 1:] * images[..., :-1]).mean())
    far = float((images[..., 40:] * images[..., :-40]).mean())
    assert near > 0.5 > abs(far)


def test_labels_depend_on_the_seed_alone() -> None:
    assert torch.equal(random_labels(50, 10, 3), random_labels(50, 10, 3))
    assert not torch.equal(random_labels(50, 10, 3), random_labels(50, 10, 4))
    assert set(random_labels(500, 10, 0).tolist()) == set(range(10))


def test_a_ratio_of_four_is_written_one_way() -> None:
    assert TINY.to_json(AutoFormerArch(12, (AutoFormerLayer(1, 2),))) == {
        "hidden": 12,
        "layers": [{"heads": 1, "ratio": 2.0}],
    }
    read = TINY.from_json({"hidden": 12, "layers": [{"heads": 1, "ratio": 2}]})
    assert str(TINY.to_json(read)["layers"][0]["ratio"]) == "2.0"
    with pytest.raises(ArchitectureError, match=r"layers\[0\].ratio = True is outside"):
        TINY.from_json({"hidden": 12, "layers": [{"heads": 1, "ratio": True}]})
