"""Conformance: what every space must do. A new space in the registry inherits these tests."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import random
import subprocess
import sys
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

import spaces
from lpzero.judgement import counters
from spaces.autoformer import AutoFormerSpace
from spaces.autoformer.model import AutoFormer, _places
from spaces.base import Space
from spaces.bignas import BigNasSpace
from spaces.bignas.model import BigNas
from spaces.errors import ArchitectureError, UnknownNameError
from spaces.flexibert import FlexiBertSpace
from spaces.flexibert.model import FlexiBert, cosine_matrix, fourier_matrices
from spaces.flexibert.space import FlexiBertArch, Layer
from spaces.gpt2 import Gpt2Space
from spaces.gpt2.model import Gpt2
from spaces.gpt2.space import EMBED_LIKE_MODEL, Gpt2Arch
from spaces.images import ImageSpace
from spaces.nlp_rnn import RnnSpace
from spaces.nlp_rnn.model import RecurrentModel
from spaces.openlm import OpenLmArch, OpenLmSpace
from spaces.openlm.model import OpenLm
from spaces.pit import PitSpace
from spaces.pit.model import Pit
from spaces.shunted import ShuntedSpace
from spaces.shunted.model import Shunted
from spaces.taps import Tap
from spaces.transformer_xl import TransformerXlSpace
from spaces.transformer_xl.model import TransformerXl

TINY_FLEXIBERT = FlexiBertSpace(
    name="tiny-flexibert", hidden=(8, 16), n_layers=(1, 2), operations=("sdp", "dft"), ffn=(8,)
)
TINY_GPT2 = Gpt2Space(
    name="tiny-gpt2",
    n_layers=(1, 2),
    d_model=(8, 16),
    d_inner=(16, 24, 32),
    n_head=(2, 4),
    d_embed=(4, 8),
    div_val=(1, 2),
)


def one_of_each_kind() -> list[str]:
    """The names of a space of every class, a small one where there is one."""
    kinds: dict[type, str] = {}
    for name in sorted(spaces.names(), key=lambda name: not name.startswith("nano-")):
        kinds.setdefault(type(spaces.get(name)), name)
    return list(kinds.values())


@pytest.fixture(params=spaces.names())
def space(request: pytest.FixtureRequest) -> Space[Any]:
    return spaces.get(request.param)


def layout(space: Space[Any], arch: Any) -> nn.Module:
    """The model's modules and shapes without memory."""
    with torch.device("meta"):
        if isinstance(space, FlexiBertSpace):
            return FlexiBert(space, space.as_built(arch))
        if isinstance(space, AutoFormerSpace):
            return AutoFormer(space, arch)
        if isinstance(space, PitSpace):
            return Pit(space, arch)
        if isinstance(space, ShuntedSpace):
            return Shunted(space, arch)
        if isinstance(space, BigNasSpace):
            return BigNas(space, arch)
        if isinstance(space, RnnSpace):
            return RecurrentModel(space, arch)
        if isinstance(space, OpenLmSpace):
            return OpenLm(space, arch)
        if isinstance(space, TransformerXlSpace):
            return TransformerXl(space, arch)
        assert isinstance(space, Gpt2Space)
        return Gpt2(space, arch)


def n_parameters(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())


def samples(space: Space[Any], n: int) -> list[Any]:
    rng = random.Random(7)
    return [space.sample(rng) for _ in range(n)]


@lru_cache(maxsize=32)
def layouts(space: Space[Any]) -> list[tuple[Any, nn.Module]]:
    """Some architectures with their layouts, which several tests share: leave them unchanged."""
    return [(arch, layout(space, arch)) for arch in samples(space, 4)]


def small_sample(space: Space[Any]) -> Any:
    """The smallest of a few samples, because some spaces reach 100 million parameters."""
    return min(samples(space, 30), key=space.parameters)


def test_an_architecture_survives_json(space: Space[Any]) -> None:
    for arch in samples(space, 20):
        again = space.from_json(json.loads(json.dumps(space.to_json(arch))))
        assert again == arch
        assert hash(again) == hash(arch)


def test_samples_are_valid_and_differ(space: Space[Any]) -> None:
    archs = samples(space, 40)
    for arch in archs:
        space.validate(arch)
    assert len(set(archs)) > 30


def test_sampling_uses_the_given_generator_alone(space: Space[Any]) -> None:
    random.seed(1)
    before = random.getstate()
    assert samples(space, 3) == samples(space, 3)
    assert random.getstate() == before


@pytest.mark.slow
@pytest.mark.parametrize("probability", [0.0, 0.3, 1.0])
def test_mutation_stays_valid(space: Space[Any], probability: float) -> None:
    rng = random.Random(3)
    archs = samples(space, 40)
    mutants = [space.mutate(arch, probability, rng) for arch in archs]
    for mutant in mutants:
        space.validate(mutant)
    changed = sum(a != b for a, b in zip(archs, mutants, strict=True))
    assert changed == 0 if probability == 0 else changed > 20


def test_crossover_stays_valid_and_mixes(space: Space[Any]) -> None:
    rng = random.Random(5)
    archs = samples(space, 60)
    children = []
    for first, second in itertools.pairwise(archs):
        child = space.crossover(first, second, rng)
        space.validate(child)
        parents = space.to_json(first), space.to_json(second)
        for name, value in space.to_json(child).items():
            # The nodes of a graph get other names where they go.
            known = [
                inherited(one)
                for parent in parents
                for other, one in parent.items()
                if other == name or isinstance(value, dict)
            ]
            assert inherited(value) in known
        children.append(child not in (first, second))
    assert sum(children) > 20


def inherited(value: Any) -> Any:
    """What a child has from a parent: how many layers, a node's operation, else the value."""
    if isinstance(value, list):
        return len(value)
    return value["op"] if isinstance(value, dict) else value


def test_crossover_of_equals_changes_nothing(space: Space[Any]) -> None:
    for arch in samples(space, 10):
        assert space.crossover(arch, arch, random.Random(0)) == arch


def test_blocks_can_be_exchanged(space: Space[Any]) -> None:
    arch = next(arch for arch in samples(space, 50) if space.depth(arch) >= 2)
    blocks = space.blocks(arch)
    assert len(blocks) == space.depth(arch)
    same = space.with_block(arch, 1, blocks[1])
    assert same == arch
    stage = getattr(blocks[1], "stage", None)  # where the choices of stages differ
    other = next(
        block
        for a in samples(space, 50)
        for block in space.blocks(a)
        if block != blocks[1] and getattr(block, "stage", None) == stage
    )
    changed = space.with_block(arch, 1, other)
    space.validate(changed)
    assert space.blocks(changed)[1] == other
    if not space.shares_blocks:
        assert space.blocks(changed) == (blocks[0], other, *blocks[2:])


def test_a_block_can_be_drawn_anew(space: Space[Any]) -> None:
    rng = random.Random(9)
    redrawn = set()
    for arch in samples(space, 20):
        index = rng.randrange(space.depth(arch))
        changed = space.redraw_block(arch, index, rng)
        space.validate(changed)
        assert space.depth(changed) == space.depth(arch)
        redrawn.add(changed == arch)
    assert False in redrawn


def test_the_shape_can_be_drawn_anew(space: Space[Any]) -> None:
    rng, archs = random.Random(9), samples(space, 30)
    changed = [space.redraw_shape(arch, rng) for arch in archs]
    for arch, other in zip(archs, changed, strict=True):
        space.validate(other)
        assert set(space.blocks(arch)) & set(space.blocks(other))
    for size in (space.depth, space.width):
        is_changed = any(size(a) != size(b) for a, b in zip(archs, changed, strict=True))
        # All networks of a recurrent space, for one, have the same depth and width.
        assert is_changed == (len(set(map(size, archs))) > 1)


def test_a_field_out_of_range_is_named(space: Space[Any]) -> None:
    fields = space.to_json(samples(space, 1)[0])
    name, value = next(iter(fields.items()))
    wrong = rf" = 77 is outside space {space.name}" if isinstance(value, int) else ": got 77"
    with pytest.raises(ArchitectureError, match=f"^{name}{wrong}"):
        space.from_json(fields | {name: 77})


def test_a_whole_number_written_as_a_float_is_refused(space: Space[Any]) -> None:
    fields = space.to_json(samples(space, 1)[0])
    whole = [name for name, value in fields.items() if isinstance(value, int)]
    if not whole:
        pytest.skip("no field is a whole number")
    name = whole[0]
    with pytest.raises(ArchitectureError, match=rf"^{name} = {fields[name]}.0 is outside"):
        space.from_json(fields | {name: float(fields[name])})


def test_a_missing_field_is_named(space: Space[Any]) -> None:
    fields = space.to_json(samples(space, 1)[0])
    removed = sorted(fields)[0]
    del fields[removed]
    with pytest.raises(ArchitectureError, match=removed):
        space.from_json(fields)


@pytest.mark.slow
def test_parameters_are_the_models(space: Space[Any]) -> None:
    for arch, model in layouts(space):
        assert space.parameters(arch) == n_parameters(model)


@pytest.mark.slow
def test_block_sizes_are_those_of_the_models_blocks(space: Space[Any]) -> None:
    for arch, model in layouts(space):
        sizes = space.block_sizes(arch)
        assert len(sizes) == space.depth(arch) == len(model.blocks)
        assert [one["params"] for one in sizes] == [n_parameters(block) for block in model.blocks]
        for one, block in zip(sizes, model.blocks, strict=True):
            assert list(one) == ["params", "width", "ffn", "heads"]
            assert one["heads"] == n_heads(block)
    for arch, model in layouts(space)[:1]:
        with torch.no_grad():
            found = widths(model, space.batch()[:1].to("meta"))
        assert [(one["width"], one["ffn"]) for one in space.block_sizes(arch)] == found


def n_heads(block: nn.Module) -> int:
    """The heads of a block, those that attend and those that convolve."""
    kinds = ("heads", "kernel_heads")
    return sum(int(getattr(m, kind, 0)) for m in block.modules() for kind in kinds)


def widths(model: nn.Module, batch: torch.Tensor) -> list[tuple[int, int]]:
    """How wide what enters each block is, and what its feed-forward activation puts out."""
    entered, activated, hooks = [], [], []
    for block in model.blocks:
        hooks.append(
            block.register_forward_pre_hook(lambda _, args: entered.append(args[0].shape[-1]))
        )
        tap = next(m for m in block.modules() if isinstance(m, Tap) and m.statistic == "A")
        hooks.append(
            tap.register_forward_hook(lambda _, __, output: activated.append(output.shape[-1]))
        )
    model(batch)
    for hook in hooks:
        hook.remove()
    return list(zip(entered, activated, strict=True))


@pytest.mark.slow
def test_end_sizes_are_those_before_and_after_the_blocks(space: Space[Any]) -> None:
    for arch, model in layouts(space):
        ends = space.end_sizes(arch)
        assert {end: list(sizes) for end, sizes in ends.items()} == {
            "embedding": ["params", "width"],
            "head": ["params", "width"],
        }
        named = {name: p.numel() for name, p in model.named_parameters()}
        head = sum(n for name, n in named.items() if name.startswith("head"))
        inside = sum(n for name, n in named.items() if name.startswith(("blocks", "norm")))
        assert ends["head"] == {"params": head, "width": space.width(arch)}
        assert ends["embedding"]["params"] == sum(named.values()) - inside - head
        assert ends["embedding"]["width"] == embedding_width(model)


def embedding_width(model: nn.Module) -> int:
    """The width of the word vectors, or of the patches' projections."""
    if isinstance(model, FlexiBert):
        return int(model.embeddings.word.weight.shape[1])
    if isinstance(model, (Gpt2, TransformerXl)):
        return int(model.embedding.tables[0].shape[1])
    if isinstance(model, (RecurrentModel, OpenLm)):
        return int(model.embedding.weight.shape[1])
    return int(model.embedding.projection.weight.shape[0])


@pytest.mark.slow
def test_decoder_parameters_are_those_of_blocks_and_final_norm(space: Space[Any]) -> None:
    for arch, model in layouts(space):
        inside = sum(
            p.numel() for name, p in model.named_parameters() if name.startswith(("blocks", "norm"))
        )
        assert space.decoder_parameters(arch) == inside


@pytest.mark.slow
def test_attention_parameters_are_those_of_the_mixing_halves(space: Space[Any]) -> None:
    for arch, model in layouts(space):
        mixing = 0
        for name, p in model.named_parameters():
            is_mixing = name.startswith("blocks") and (".attention." in name or ".mixing." in name)
            mixing += p.numel() if is_mixing and "norm" not in name else 0
        assert space.attention_parameters(arch) == mixing


@pytest.mark.slow
def test_projections_are_those_that_are_tapped(space: Space[Any]) -> None:
    for arch, model in layouts(space):
        taps = (module for module in model.modules() if isinstance(module, Tap))
        assert space.projections(arch) == sum(tap.statistic == "H" for tap in taps)


@pytest.mark.slow
def test_flops_are_what_torch_counts(space: Space[Any]) -> None:
    for arch, model in layouts(space)[:1]:
        one = space.batch()[:1].to("meta")
        counter = FlopCounterMode(display=False)
        with counter, torch.no_grad():
            model(one)
        assert space.flops(arch) == counter.get_total_flops()


@pytest.mark.slow
def test_build_gives_eval_mode_and_leaves_the_global_generator_alone(space: Space[Any]) -> None:
    torch.manual_seed(11)
    before = torch.get_rng_state()
    arch = small_sample(space)
    model = space.build(arch, seed=0)
    assert not any(module.training for module in model.modules())
    assert torch.equal(torch.get_rng_state(), before)
    assert n_parameters(model) == space.parameters(arch)
    with torch.no_grad():
        hidden = model(space.batch()[:1])
    assert hidden.shape == (1, last_tokens(space, arch), space.width(arch))
    assert torch.isfinite(hidden).all()


def last_tokens(space: Space[Any], arch: Any) -> int:
    """The number of tokens of the final hidden state of the default batch."""
    if isinstance(space, PitSpace):
        return space.grids[-1] ** 2 + 1
    if isinstance(space, ShuntedSpace):
        return space.grids[-1] ** 2
    if isinstance(space, BigNasSpace):
        return int(arch.resolution // 32) ** 2
    return space.batch_shape[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", one_of_each_kind())
def test_weights_depend_on_the_seed(name: str) -> None:
    space = spaces.get(name)
    arch = small_sample(space)
    first, same, other = (dict(space.build(arch, s).named_parameters()) for s in (0, 0, 1))
    assert all(torch.equal(first[key], same[key]) for key in first)
    matrices = [name for name in first if first[name].ndim >= 2]
    assert not any(torch.equal(first[name], other[name]) for name in matrices)


@pytest.mark.slow
@pytest.mark.parametrize("name", one_of_each_kind())
def test_a_pass_that_is_only_counted_leaves_no_tensor_without_numbers(name: str) -> None:
    for remembered in (_places, fourier_matrices, cosine_matrix):
        remembered.cache_clear()
    space = spaces.get(name)
    arch, one = small_sample(space), space.batch()[:1]
    with torch.no_grad():
        with torch.device("meta"):
            layout(space, arch)(one.to("meta"))
        assert torch.isfinite(space.build(arch, 0)(one)).all()


REBUILD = """
import hashlib, json, sys, spaces
for name, arch in json.loads(sys.argv[1]).items():
    model = spaces.get(name).build(spaces.get(name).from_json(arch), 5)
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().numpy().tobytes())
    print(digest.hexdigest())
"""


@pytest.mark.slow
def test_another_process_builds_the_same_weights() -> None:
    archs, digests = {}, []
    for space in map(spaces.get, ("nano-flexibert", "nano-gpt2", "nano-rnn")):
        arch = small_sample(space)
        archs[space.name] = space.to_json(arch)
        digest = hashlib.sha256()
        for parameter in space.build(arch, 5).parameters():
            digest.update(parameter.detach().numpy().tobytes())
        digests.append(digest.hexdigest())
    command = [sys.executable, "-c", REBUILD, json.dumps(archs)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == digests


def test_the_batch_fits_the_space_and_its_seed(space: Space[Any]) -> None:
    first, same, other = space.batch(0), space.batch(0), space.batch(1)
    assert len(first) == space.batch_shape[0] >= 2
    assert torch.equal(first, same)
    assert not torch.equal(first, other)
    if isinstance(space, ImageSpace):
        assert first.shape[1:] == (3, space.image, space.image)
        assert first.dtype == torch.float32
        return
    assert first.shape == space.batch_shape
    assert int(first.min()) >= 0
    assert int(first.max()) < space.vocabulary


@pytest.mark.slow
def test_the_batch_shape_counts_the_tokens_of_the_first_block(space: Space[Any]) -> None:
    archs = samples(space, 100)
    if isinstance(space, BigNasSpace):  # networks resize images to a side of their own
        archs = [arch for arch in archs if arch.resolution == space.image]
    model = layout(space, min(archs, key=space.parameters))
    entered: list[torch.Size] = []
    model.blocks[0].register_forward_pre_hook(lambda _, args: entered.append(args[0].shape))
    with torch.no_grad():
        model(space.batch().to("meta"))
    assert entered[0][:2] == space.batch_shape


def test_every_counter_of_the_sizes_is_finite(space: Space[Any]) -> None:
    for arch in samples(space, 5):
        for name in counters.names():
            assert math.isfinite(counters.get(name)(space, arch)), name


def all_flexibert(space: FlexiBertSpace) -> Iterator[FlexiBertArch]:
    layers = [
        Layer(*fields)
        for fields in itertools.product(space.operations, space.heads, space.ffn, space.stacks)
    ]
    for hidden, n in itertools.product(space.hidden, space.n_layers):
        for chosen in itertools.product(layers, repeat=n):
            yield FlexiBertArch(hidden, chosen)


def all_gpt2(space: Gpt2Space) -> Iterator[Gpt2Arch]:
    for d, n in itertools.product(space.d_model, space.n_layers):
        inner = [x for x in space.d_inner if x >= space.min_ratio * d]
        heads = itertools.product(space.n_head, repeat=n)
        inners = itertools.product(inner, repeat=n)
        for h, f, e, v in itertools.product(heads, list(inners), space.d_embed, space.div_val):
            yield Gpt2Arch(d, h, f, e, v)


def test_flexibert_cardinality_is_the_count() -> None:
    archs = set(all_flexibert(TINY_FLEXIBERT))
    assert TINY_FLEXIBERT.cardinality() == len(archs)
    rng = random.Random(0)
    assert {TINY_FLEXIBERT.sample(rng) for _ in range(4000)} == archs


def test_gpt2_cardinality_is_the_count() -> None:
    archs = set(all_gpt2(TINY_GPT2))
    assert TINY_GPT2.cardinality() == len(archs)
    rng = random.Random(0)
    assert {TINY_GPT2.sample(rng) for _ in range(12000)} == archs


def test_the_paper_spaces_have_the_sizes_their_ranges_give() -> None:
    assert spaces.FLEXIBERT.cardinality() == 10_621_440
    # The papers speak of 10^54, which their own ranges (inner widths in steps of 64) do not give.
    assert 3 * 10**37 < spaces.GPT2.cardinality() < 4 * 10**37


def test_the_bert_space_holds_bert_base() -> None:
    # The paper speaks of 1.6 * 10^12, which its own ranges do not give either.
    assert spaces.BERT.cardinality() == 16**6 + 16**8 + 16**10 + 16**12
    base = FlexiBertArch(768, (Layer("sdp", 12, 3072, 1),) * 12)
    pooler = 768 * 768 + 768
    assert spaces.BERT.parameters(base) + pooler == 109_482_240
    # 22.5 billion is printed, for 128 tokens.
    assert spaces.BERT.flops(base, 128) == pytest.approx(22.5e9, rel=0.01)


def test_openlm_has_the_published_sizes() -> None:
    space = spaces.get("openlm")
    # A twentieth of the tokens in the names of the released runs.
    assert space.parameters(OpenLmArch(1024, 24, 16)) == 411_616_256
    q, f = 12 * 40, 6 * 256  # heads that do not divide the width; 8 * 488 / 3 rounded up
    of_block = 4 * 488 * q + 3 * 488 * f + 2 * 488
    assert space.parameters(OpenLmArch(488, 4, 12)) == 2 * 50432 * 488 + 4 * of_block + 488


def test_transformer_xl_has_the_sizes_of_its_recipe() -> None:
    space, d, e, n = spaces.get("transformer-xl"), 64, 128, 267_736
    fields = space.parameter_fields(Gpt2Arch(d, (2, 4, 8, 2, 4), (600,) * 5, e, 2))
    attention, feed_forward = 5 * (5 * d * d + 2 * d), 5 * (2 * d * 600 + 600 + d)
    words = 19_997 * e + 20_000 * 64 + 160_000 * 32 + 67_739 * 16 + d * (e + 64 + 32 + 16)
    blocks = attention + feed_forward + 5 * 4 * d
    assert fields == {
        "AdaEmb": words,
        "Attn": attention,
        "FFN": feed_forward,
        "nonembedding": blocks,
        "total": words + blocks + n + 3 * e + 3 + d * e,
    }


def test_an_unknown_space_is_answered_with_the_nearest() -> None:
    with pytest.raises(
        UnknownNameError, match="unknown space 'flexbert'; did you mean 'flexibert'"
    ):
        spaces.get("flexbert")


@pytest.mark.parametrize("width", [EMBED_LIKE_MODEL, 128, 512])
def test_word_vectors_of_released_tables_are_accepted_where_none_are_drawn(width: int) -> None:
    space = spaces.get("gpt2-lm1b")
    given = {"d_model": 64, "n_head": [2, 2], "d_inner": [600, 700], "d_embed": width, "div_val": 2}
    (table,) = space.embedding_widths(space.from_json(given))[:1]
    assert table == (64 if width == EMBED_LIKE_MODEL else width)
    with pytest.raises(ArchitectureError, match="d_embed"):
        space.from_json({**given, "d_embed": 100})
