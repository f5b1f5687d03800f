"""A user's space: what follows from its choices, and what is measured on its modules."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
import torch
from torch import nn

import lpzero
import spaces
from lpzero.errors import InputError
from lpzero.sketches.builder import build_sketch
from lpzero.sketches.sketch import SketchOptions, address
from lpzero.statistics.extraction import of_architecture
from spaces import memory
from spaces.errors import ArchitectureError, FieldError, MemoryLimitError
from spaces.own import Configuration
from tests.spaces.own.small_space import CHOICES, SPACE, Model

ARCH: dict[str, Any] = {
    "layers": 2,
    "width": 8,
    "activation": "relu",
    "heads": [2, 4],
    "ffn": [16, 24],
}


def test_cardinality_counts_every_depth_with_its_layers() -> None:
    assert SPACE.cardinality() == 2 * 2 * (4 + 4**2 + 4**3)
    small = lpzero.space({"layers": [1, 2], "per_layer": {"ffn": [16, 24]}}, build=Model)
    rng = random.Random(0)
    drawn = Counter(small.sample(rng) for _ in range(300))
    assert len(drawn) == small.cardinality() == 6


def test_json_round_trip_gives_an_equal_architecture() -> None:
    rng = random.Random(1)
    for _ in range(20):
        arch = SPACE.sample(rng)
        again = SPACE.from_json(SPACE.to_json(arch))
        assert again == arch
        assert hash(again) == hash(arch)


def test_variation_stays_in_the_space_and_changes_the_depth() -> None:
    rng = random.Random(2)
    depths = set()
    for _ in range(60):
        first, second = SPACE.sample(rng), SPACE.sample(rng)
        children = SPACE.mutate(first, 0.5, rng), SPACE.crossover(first, second, rng)
        for child in (*children, SPACE.redraw_block(first, 0, rng)):
            SPACE.validate(child)
        depths.add((len(first.per_layer), len(children[0].per_layer)))
        assert SPACE.mutate(first, 0.0, rng) == first
        exchanged = SPACE.with_block(first, 0, SPACE.blocks(second)[0])
        assert SPACE.blocks(exchanged) == (SPACE.blocks(second)[0], *SPACE.blocks(first)[1:])
    assert len(depths) == 9


def test_a_configuration_reads_like_a_mapping_and_like_an_object() -> None:
    config = SPACE.from_json(ARCH)
    assert config.width == config["width"] == 8
    assert config.heads == (2, 4)
    assert [layer.ffn for layer in config.per_layer] == [16, 24]
    assert dict(config) == {**ARCH, "heads": (2, 4), "ffn": (16, 24)}
    with pytest.raises(AttributeError, match="no choice 'with'"):
        _ = getattr(config, "with")


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        ({"width": 9}, "width", "width = 9 is not a choice; use one of 8, 16"),
        ({"heads": [2, 3]}, "heads", r"heads\[1\] = 3 is not a choice; use one of 2, 4"),
        ({"heads": [2]}, "heads", "1 values for 2 layers"),
        ({"heads": 2}, "heads", "expected a list with a value for each layer"),
        ({"layers": True}, "layers", "is not a choice"),
        ({"depth": 2}, "depth", "no such choice; there are layers, width, activation, heads, ffn"),
    ],
)
def test_a_wrong_value_names_its_field(change: dict[str, Any], field: str, message: str) -> None:
    with pytest.raises(FieldError, match=message) as caught:
        SPACE.from_json({**ARCH, **change})
    assert caught.value.field == field


def test_what_follows_from_other_fields_may_be_left_out() -> None:
    one = lpzero.space({"layers": [1, 2], "width": 8, "per_layer": {"ffn": [16, 24]}}, build=Model)
    arch = one.from_json({"ffn": [16.0, 24]})
    assert one.to_json(arch) == {"layers": 2, "width": 8, "ffn": [16, 24]}
    assert type(arch.ffn[0]) is int


def test_sizes_are_those_of_the_built_module() -> None:
    arch = SPACE.from_json(ARCH)
    model = SPACE.build(arch, 0)
    assert isinstance(model, Model)
    n = {name: sum(p.numel() for p in part.parameters()) for name, part in model.named_children()}
    assert SPACE.parameters(arch) == sum(p.numel() for p in model.parameters())
    assert SPACE.decoder_parameters(arch) == n["blocks"] + n["norm"]
    of_blocks = [sum(p.numel() for p in block.parameters()) for block in model.blocks]
    assert SPACE.block_sizes(arch) == [
        {"params": of_blocks[0], "width": 8, "ffn": 16, "heads": 2},
        {"params": of_blocks[1], "width": 8, "ffn": 24, "heads": 4},
    ]
    assert SPACE.end_sizes(arch) == {
        "embedding": {"params": n["embedding"], "width": 8},
        "head": {"params": n["head"], "width": 8},
    }
    assert SPACE.attention_parameters(arch) == 2 * (8 * 24 + 24 + 8 * 8 + 8)
    assert (SPACE.depth(arch), SPACE.width(arch), SPACE.projections(arch)) == (2, 8, 6)
    assert SPACE.absent_statistics == frozenset()


def test_flops_are_counted_by_hand() -> None:
    arch = SPACE.from_json(ARCH)
    T, d = 6, 8
    blocks = sum(T * d * 4 * d + 2 * T * T * d + 2 * T * d * ffn for ffn in (16, 24))
    assert SPACE.flops(arch) == 2 * (blocks + T * d * 5)


def test_given_formulas_are_used_instead_of_measuring() -> None:
    given = lpzero.space(CHOICES, Model, parameters=lambda c: 7, flops=lambda c: c.width)
    arch = given.from_json(ARCH)
    assert (given.parameters(arch), given.flops(arch)) == (7, 8)


def test_weights_depend_on_the_seed_alone() -> None:
    arch = SPACE.from_json(ARCH)
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    first = SPACE.build(arch, 3).state_dict()
    assert torch.equal(torch.random.get_rng_state(), before)
    torch.manual_seed(6)
    second, other = SPACE.build(arch, 3).state_dict(), SPACE.build(arch, 4).state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert not torch.equal(first["head.weight"], other["head.weight"])


def test_the_address_of_a_sketch_depends_on_choices_and_on_the_version() -> None:
    arch, options = SPACE.from_json(ARCH), SketchOptions()
    made = {
        address(lpzero.space(choices, Model, name="small-space", **more), arch, options)
        for choices, more in (
            (CHOICES, {}),
            ({**CHOICES, "width": [8, 16, 32]}, {}),
            (CHOICES, {"version": 2}),
            (CHOICES, {"batch": (2, 6)}),
        )
    }
    assert len(made) == 4
    assert address(SPACE, arch, options) in made


def test_a_sketch_has_every_statistic_that_the_taps_mark() -> None:
    arch = SPACE.from_json(ARCH)
    sketch = build_sketch(SPACE, arch, SketchOptions())
    assert sketch.shapes(1, "A") == [(12, 24, 24)]
    assert sketch.sizes is not None
    assert sketch.sizes["blocks"] == SPACE.block_sizes(arch)
    found = of_architecture(SPACE, arch)
    assert len(found.blocks[0]["H"]) == 3


def test_a_module_that_needs_real_numbers_is_measured_too() -> None:
    class Stubborn(Model):
        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            assert float(self.head.weight[0, 0]) < 1e9  # no number on the device meta
            return super().forward(tokens)

    own = lpzero.space(CHOICES, build=Stubborn, batch=(2, 6))
    assert own.flops(own.from_json(ARCH)) == SPACE.flops(SPACE.from_json(ARCH))


def test_a_module_without_taps_has_the_layout_that_is_found() -> None:
    def build(config: Configuration) -> nn.Module:
        model = Model(SPACE.from_json({**ARCH, "layers": 2}))
        model.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(8, layer.heads, layer.ffn, batch_first=True)
            for layer in config.per_layer
        )
        return model

    own = lpzero.space(CHOICES, build=build, batch=(2, 6))
    arch = own.from_json(ARCH)
    assert own.absent_statistics == {"H"}
    assert [sizes["ffn"] for sizes in own.block_sizes(arch)] == [16, 24]
    assert [sizes["heads"] for sizes in own.block_sizes(arch)] == [2, 4]
    assert own.flops(arch) == SPACE.flops(SPACE.from_json(ARCH))
    assert build_sketch(own, arch, SketchOptions()).shapes(1, "A") == [(12, 24, 24)]


def test_images_and_drawn_batches_have_their_own_shapes() -> None:
    images = lpzero.space(CHOICES, Model, batch=(2, 3, 8, 8))
    assert images.batch(1).shape == (2, 3, 8, 8)
    drawn = lpzero.space(CHOICES, Model, batch=lambda seed: torch.rand(3, 5))
    assert torch.equal(drawn.batch(1), drawn.batch(1))
    assert not torch.equal(drawn.batch(1), drawn.batch(2))
    assert drawn.batch_shape[0] == 3


@pytest.mark.parametrize(
    ("choices", "more", "message"),
    [
        ({}, {}, "a space needs choices"),
        ({"width": []}, {}, "choice width has 0 values"),
        ({"width": [8, 8]}, {}, "choice width has a value twice"),
        ({"width": [[8]]}, {}, "expected texts or finite numbers"),
        ({"a b": [8]}, {}, "cannot name a choice"),
        ({"per_layer": {"ffn": [8]}}, {}, "per_layer needs the number of layers"),
        ({"layers": [0]}, {}, "0 is not one"),
        ({"layers": [10**9], "per_layer": {"ffn": [8]}}, {}, "not one of 1 to 10,000"),
        ({"layers": [1], "per_layer": {"layers": [1]}}, {}, "made once and per layer"),
        ({"width": [8]}, {"depth": "layers"}, "none of the choices width"),
        ({"width": [8]}, {"batch": (1, 4)}, "at least two of them"),
        ({"width": [8]}, {"name": "a/b"}, "cannot be a space's name"),
    ],
)
def test_choices_that_make_no_space_are_refused(
    choices: dict[str, Any], more: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        lpzero.space(choices, Model, **more)


def test_a_build_that_gives_no_module_or_other_blocks_is_named() -> None:
    arch = SPACE.from_json(ARCH)
    with pytest.raises(ArchitectureError, match="gave int, expected a torch module"):
        lpzero.space(CHOICES, lambda config: 3).build(arch, 0)

    def shallow(config: Configuration) -> nn.Module:
        return Model(SPACE.from_json({**ARCH, "layers": 1, "heads": [2], "ffn": [16]}))

    with pytest.raises(ArchitectureError, match=r"layers is 2, but .* has 1 blocks"):
        lpzero.space(CHOICES, shallow).width(arch)


def test_sizes_are_counted_before_a_network_is_allocated(monkeypatch: pytest.MonkeyPatch) -> None:
    built = []

    def build(config: Configuration) -> nn.Module:
        model = Model(SPACE.from_json({**ARCH, "layers": 2}))
        model.table = nn.Linear(config.width, config.width)
        built.append(model.table.weight.device.type)
        return model

    own = lpzero.space({"width": [8, 10**6]}, build, batch=(2, 6))
    assert own.build(own.from_json({"width": 8}), 0) is not None
    built.clear()
    with pytest.raises(MemoryLimitError, match=r"network of .* needs about 3,725\.3 GB"):
        own.build(own.from_json({"width": 10**6}), 0)
    assert built == []
    monkeypatch.setenv(memory.VARIABLE, "1MB")
    with pytest.raises(MemoryLimitError, match="a batch of 1,000 x 1,000"):
        own.draw_batch((1000, 1000), 0)


@pytest.mark.parametrize("batch", [(10**9, 10**9), (2, 10**15), (4, 3, 10**6, 10**6)])
def test_a_batch_that_does_not_fit_is_refused_when_it_is_declared(batch: tuple[int, ...]) -> None:
    with pytest.raises(MemoryLimitError, match="a batch of"):
        lpzero.space(CHOICES, Model, batch=batch)


def test_an_address_finds_the_space_and_its_name_afterwards() -> None:
    found = spaces.load("tests.spaces.own.small_space:SPACE")
    assert found is SPACE
    assert spaces.get("small-space") is SPACE
