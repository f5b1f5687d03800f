"""What mutation and crossover change: every field, as often as asked, and nothing else."""

from __future__ import annotations

import itertools
import random
import re
from collections import Counter, defaultdict
from typing import Any

import pytest

import spaces
from spaces.base import Space
from spaces.bignas import BigNasSpace
from spaces.choices import flip, redrawing, require
from spaces.errors import ArchitectureError
from spaces.flexibert import FlexiBertArch, Layer
from spaces.gpt2 import Gpt2Arch
from spaces.gpt2.space import Gpt2Layer
from spaces.pit import PitSpace

N = 400


@pytest.fixture(params=spaces.names())
def space(request: pytest.FixtureRequest) -> Space[Any]:
    return spaces.get(request.param)


def fields(space: Space[Any], arch: Any) -> dict[str, Any]:
    """Every number of the architecture under its place, such as layers.0.heads."""
    found: dict[str, Any] = {}

    def visit(place: str, value: Any) -> None:
        if isinstance(value, dict | list):
            items = value.items() if isinstance(value, dict) else enumerate(value)
            for name, inside in items:
                visit(f"{place}.{name}" if place else str(name), inside)
        else:
            found[place] = value

    visit("", space.to_json(arch))
    return found


def kind(place: str) -> str:
    """The place without the layer's number."""
    return re.sub(r"\d+", "*", place)


def drawn(space: Space[Any], n: int = 60) -> list[Any]:
    rng = random.Random(2)
    return [space.sample(rng) for _ in range(n)]


def test_redrawing_happens_as_often_as_asked_and_among_all_choices() -> None:
    rng = random.Random(0)
    redraw = redrawing(0.3, rng)
    drawn = Counter(redraw("now", ("a", "b")) for _ in range(4000))
    assert drawn["now"] / 4000 == pytest.approx(0.7, abs=0.03)
    assert drawn["a"] / 4000 == pytest.approx(0.15, abs=0.03)
    assert Counter(flip(0, 1, rng) for _ in range(4000))[1] / 4000 == pytest.approx(0.5, abs=0.03)


def test_a_mutation_changes_every_field_that_varies(space: Space[Any]) -> None:
    rng = random.Random(1)
    values: dict[str, set[Any]] = defaultdict(set)
    changed: Counter[str] = Counter()
    for arch in drawn(space):
        before, after = fields(space, arch), fields(space, space.mutate(arch, 1.0, rng))
        for place in before.keys() & after.keys():
            values[kind(place)].add(before[place])
            changed[kind(place)] += before[place] != after[place]
    varies = {place for place, seen in values.items() if len(seen) > 1}
    assert {place for place, n in changed.items() if n > 5} == varies


@pytest.mark.slow
def test_a_child_has_every_field_from_either_parent_at_random(space: Space[Any]) -> None:
    rng = random.Random(3)
    taken: dict[str, list[bool]] = defaultdict(list)
    depths = []
    for first, second in itertools.pairwise(drawn(space, 150)):
        child = space.crossover(first, second, rng)
        parents, made = [fields(space, one) for one in (first, second)], fields(space, child)
        for place in parents[0].keys() & parents[1].keys() & made.keys():
            choices = parents[0][place], parents[1][place]
            if choices[0] != choices[1] and made[place] in choices:
                taken[kind(place)].append(made[place] == choices[0])
        if space.depth(first) != space.depth(second):
            depths.append(space.depth(child) == space.depth(first))
    shares = {place: sum(found) / len(found) for place, found in taken.items()}
    assert shares
    assert {place: share for place, share in shares.items() if not 0.3 < share < 0.7} == {}
    # All architectures of a recurrent space have one depth.
    assert not depths or 0.25 < sum(depths) / len(depths) < 0.75


def test_the_width_of_a_child_does_not_depend_on_where_its_layers_come_from() -> None:
    first = FlexiBertArch(128, (Layer("sdp", 2, 512, 1),) * 2)
    second = FlexiBertArch(256, (Layer("dft", 4, 1024, 3),) * 4)
    rng = random.Random(4)
    children = [spaces.FLEXIBERT.crossover(first, second, rng) for _ in range(100)]
    pairs = {(child.hidden, len(child.layers)) for child in children}
    assert pairs == set(itertools.product((128, 256), (2, 4)))
    # Layers beyond the shorter parent come from the longer one.
    tails = {child.layers[2:] for child in children if len(child.layers) == 4}
    assert tails == {second.layers[2:]}


def test_a_shrinking_architecture_keeps_its_first_layers_and_a_growing_one_draws_new_ones() -> None:
    rng = random.Random(5)
    long = FlexiBertArch(
        128, tuple(Layer(operation, 2, 512, 1) for operation in ("sdp", "wma", "dft", "dct"))
    )
    shrunk = [spaces.FLEXIBERT.mutate(long, 0.2, rng) for _ in range(N)]
    first = Counter(arch.layers[0].operation for arch in shrunk if len(arch.layers) == 2)
    assert first["sdp"] > 0.7 * first.total() > 10
    short = FlexiBertArch(128, (Layer("sdp", 2, 512, 1),) * 2)
    grown = [spaces.FLEXIBERT.mutate(short, 0.2, rng) for _ in range(N)]
    added = [layer for arch in grown for layer in arch.layers[2:]]
    for name in ("operation", "heads", "ffn", "stacks"):
        seen = Counter(getattr(layer, name) for layer in added)
        assert min(seen.values()) > 0.08 * seen.total() > 1
        assert len(seen) == len({getattr(layer, name) for arch in drawn(spaces.FLEXIBERT)
                                 for layer in arch.layers})  # fmt: skip


def test_added_gpt2_layers_are_drawn() -> None:
    rng = random.Random(6)
    arch = Gpt2Arch(128, (2, 2), (256, 256), 128, 1)
    grown = [spaces.GPT2.mutate(arch, 0.2, rng) for _ in range(N)]
    heads = Counter(heads for one in grown for heads in one.n_head[2:])
    assert set(heads) == {2, 4, 8}
    assert min(heads.values()) > 0.2 * heads.total()
    assert len({inner for one in grown for inner in one.d_inner[2:]}) > 30


NARROW = Gpt2Arch(512, (2, 4, 8), (256, 300, 2048), 128, 1)


def test_a_layer_of_the_narrower_parent_is_widened_to_fit_the_child() -> None:
    wide = Gpt2Arch(1024, (2, 4, 8), (4096, 4096, 4096), 128, 1)
    narrow = Gpt2Arch(128, (2, 4, 8), (256, 320, 3000), 128, 1)
    rng = random.Random(8)
    children = [spaces.GPT2.crossover(wide, narrow, rng) for _ in range(60)]
    found = {inner for child in children if child.d_model == 1024 for inner in child.d_inner}
    assert found == {2048, 3000, 4096}
    assert {inner for c in children if c.d_model == 128 for inner in c.d_inner} >= {256, 320, 4096}


def test_narrow_layers_of_a_released_model_stay_unless_the_model_widens() -> None:
    """`sample` never gives layers below twice the model's width, released tables have them."""
    spaces.GPT2.validate(NARROW)
    rng = random.Random(7)
    assert spaces.GPT2.mutate(NARROW, 0.0, rng) == NARROW
    assert spaces.GPT2.crossover(NARROW, NARROW, rng) == NARROW
    children = [spaces.GPT2.mutate(NARROW, 0.3, rng) for _ in range(N)]
    moved = [child for child in children if child.d_model != 512]
    assert len(moved) > 50
    assert all(inner >= 2 * child.d_model for child in moved for inner in child.d_inner)
    assert any(child.d_inner[2:3] == (2048,) for child in moved if child.d_model < 1024)
    stayed = Counter(child.d_inner[0] for child in children if child.d_model == 512)
    assert stayed[256] > 0.5 * stayed.total()


def test_a_block_is_taken_only_where_a_sample_could_have_it() -> None:
    arch = Gpt2Arch(512, (2, 4), (1024, 2048), 128, 1)
    assert spaces.GPT2.takes_block(arch, Gpt2Layer(8, 1024))
    assert not spaces.GPT2.takes_block(arch, Gpt2Layer(8, 1023))
    assert not spaces.GPT2.takes_block(arch, Gpt2Layer(8, 512))


def test_redrawing_a_block_leaves_the_rest(space: Space[Any]) -> None:
    if isinstance(space, PitSpace | BigNasSpace):
        pytest.skip("blocks of a stage share fields: see tests/spaces/pit and bignas")
    rng = random.Random(8)
    changed = 0
    for arch in drawn(space):
        index = rng.randrange(space.depth(arch))
        other = space.redraw_block(arch, index, rng)
        assert space.with_block(other, index, space.blocks(arch)[index]) == arch
        changed += other != arch
    assert changed > 30


@pytest.mark.parametrize("value", [True, 1.0, "1", 3])
def test_only_the_very_values_are_allowed(value: Any) -> None:
    require((1, 2), 1, "heads", "made-up")
    with pytest.raises(ArchitectureError, match=f"^heads = {value!r} is outside space made-up"):
        require((1, 2), value, "heads", "made-up")


def test_published_dimensions_replace_the_width_and_the_feed_forward_alone() -> None:
    arch = FlexiBertArch(128, (Layer("wma", 4, 512, 3), Layer("dft", 2, 1024, 1)))
    upstream = spaces.get("flexibert-upstream")
    built = FlexiBertArch(256, (Layer("wma", 4, 1024, 3), Layer("dft", 2, 1024, 1)))
    assert upstream.as_built(arch) == built  # type: ignore[attr-defined]
    assert upstream.parameters(arch) == spaces.FLEXIBERT.parameters(built)
    assert spaces.FLEXIBERT.as_built(arch) == arch
