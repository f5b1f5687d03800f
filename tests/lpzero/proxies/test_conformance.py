"""What must hold for every proxy: a newcomer is registered and inherits these tests."""

from __future__ import annotations

import math
import random
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import rankdata
from torch import Tensor, nn

import spaces
from lpzero.parallel import Workers
from lpzero.proxies import (
    Context,
    FormulaProxy,
    Measurements,
    Needs,
    Network,
    evaluate,
    find,
    get,
    names,
    rank_mean,
)
from lpzero.proxies.base import Measure, NetworkProxy
from lpzero.proxies.families.supernet import SupernetProxy
from spaces.autoformer import AutoFormerArch, AutoFormerLayer, AutoFormerSpace
from spaces.bignas import BigNasArch, BigNasSpace
from spaces.flexibert import FlexiBertArch, FlexiBertSpace, Layer
from spaces.gpt2 import Gpt2Arch
from spaces.minibatch import Minibatch
from spaces.nlp_rnn import RnnSpace
from spaces.openlm import OpenLmArch, OpenLmSpace
from spaces.pit import PitArch, PitSpace
from spaces.shunted import ShuntedArch, ShuntedBlock, ShuntedSpace
from spaces.transformer_xl import TransformerXlSpace

pytestmark = pytest.mark.slow

# Every operation of FlexiBERT at a size that runs in milliseconds.
TINY = FlexiBertSpace(
    name="tiny",
    hidden=(16,),
    n_layers=(1, 5),
    ffn=(24,),
    vocabulary=60,
    embedding=16,
    batch_shape=(3, 10),
)
ENCODER = FlexiBertArch(16, tuple(Layer(o, 2, 24, 1) for o in ("wma", "dct", "dsc5", "dft", "sdp")))
TINY_VISION = AutoFormerSpace(
    name="tiny-vision",
    hidden=(12,),
    n_layers=(2,),
    heads=(1, 2),
    ratios=(1.5, 2.0),
    image=12,
    patch=4,
    classes=5,
    head_width=6,
    n_images=3,
)
IMAGES = AutoFormerArch(12, (AutoFormerLayer(2, 1.5), AutoFormerLayer(1, 2.0)))
# Blocks that differ in width and in the number of tokens.
TINY_STAGES = PitSpace(
    name="tiny-stages",
    base_dims=(4,),
    ratios=(2,),
    depths=((1, 2), (1,), (1,)),
    heads=(1, 2, 4),
    image=18,
    patch=4,
    stride=2,
    classes=5,
    n_images=3,
)
STAGES = PitArch(4, 2, (2, 1, 1), (1, 2, 4))
# Attention to merged tokens, at two scales.
TINY_SCALES = ShuntedSpace(
    name="tiny-scales",
    bases=(8,),
    stems=(0,),
    depths=((1,), (1,), (1,), (1,)),
    ratios=(1, 2),
    image=32,
    classes=5,
    n_images=3,
)
SCALES = ShuntedArch(8, 0, tuple((ShuntedBlock(2, ratio),) for ratio in (2, 1, 2, 1)))
# Convolutions: no heads and no attention.
TINY_CONVOLUTIONS = BigNasSpace(
    name="tiny-convolutions",
    resolutions=(16,),
    stems=(4,),
    channels=((4,), (8,)),
    depths=((1,), (2,)),
    kernels=((3,), (3, 5)),
    expansions=(1, 2),
    strides=(1, 2),
    lasts=(16,),
    image=16,
    classes=5,
    n_images=3,
)
CONVOLUTIONS = BigNasArch(16, 4, (4, 8), (1, 2), (3, 5), 16)
# A layer of another width than its input, and two states.
TINY_CELLS = RnnSpace(
    name="tiny-cells",
    embedding=6,
    hidden=10,
    vocabulary=30,
    batch_shape=(3, 9),
    wide_shape=(5, 9),
)
CELL = TINY_CELLS.from_json(
    {
        "a": {"op": "linear", "input": ["x", "h_prev_0"]},
        "b": {"op": "activation_leaky_relu", "input": ["a"]},
        "h_new_0": {"op": "activation_tanh", "input": ["c"]},
        "c": {"op": "linear", "input": ["x", "b", "h_prev_1"]},
        "h_new_1": {"op": "elementwise_prod", "input": ["b", "h_new_0"]},
    }
)
# Heads narrower together than the model, and a gate in the feed-forward layer.
TINY_GATES = OpenLmSpace(
    name="tiny-gates",
    widths=(10,),
    depths=(2, 3),
    heads=(2, 4),
    vocabulary=60,
    batch_shape=(3, 10),
)
GATES = OpenLmArch(10, 2, 4)
# Segments of six tokens with a memory, so that a block attends twice.
TINY_SEGMENTS = TransformerXlSpace(
    name="tiny-segments",
    n_layers=(2,),
    d_model=(8,),
    d_inner=(16, 24),
    accepted_d_model=(8,),
    accepted_d_inner=(12, 20),
    vocabulary=60,
    cutoffs=(20, 40),
    context=10,
    memory=4,
    batch_shape=(3, 10),
)
SEGMENTS = Gpt2Arch(8, (2, 4), (12, 20), 128, 2)
MEASURES = {m.name: m for name in names() for m in get(name).measures}
EVERYWHERE = [name for name in names() if get(name).applies_to(spaces.get("nano-gpt2"))]
IN_COMPANY = [name for name in names() if getattr(get(name), "how", "").startswith("rank")]


def archs(n: int) -> list[Any]:
    """Small ones of unlike width and depth, the second of them wide."""
    space = spaces.get("nano-gpt2")
    return [space.sample(random.Random(seed)) for seed in (22, 26, 36, 32)[:n]]


# Of their networks, a part of the usual batch.
context = partial(Context, batch=Minibatch(4, 16))


def encoder(chunk: int | None = None) -> Network:
    return Network(TINY.build(ENCODER, 0).double(), TINY.batch(0), chunk=chunk)


def vision(chunk: int | None = None) -> Network:
    return Network(TINY_VISION.build(IMAGES, 0).double(), TINY_VISION.batch(0), chunk=chunk)


def staged(chunk: int | None = None) -> Network:
    return Network(TINY_STAGES.build(STAGES, 0).double(), TINY_STAGES.batch(0), chunk=chunk)


def scaled(chunk: int | None = None) -> Network:
    return Network(TINY_SCALES.build(SCALES, 0).double(), TINY_SCALES.batch(0), chunk=chunk)


def convolved(chunk: int | None = None) -> Network:
    model = TINY_CONVOLUTIONS.build(CONVOLUTIONS, 0).double()
    return Network(model, TINY_CONVOLUTIONS.batch(0), chunk=chunk)


def recurrent(chunk: int | None = None) -> Network:
    model = TINY_CELLS.build(CELL, 0).double()
    wide = TINY_CELLS.wide_batch(0)
    return Network(model, TINY_CELLS.batch(0), chunk=chunk, wide_tokens=wide)


def gated(chunk: int | None = None) -> Network:
    return Network(TINY_GATES.build(GATES, 0).double(), TINY_GATES.batch(0), chunk=chunk)


def segmented(chunk: int | None = None) -> Network:
    return Network(TINY_SEGMENTS.build(SEGMENTS, 0).double(), TINY_SEGMENTS.batch(0), chunk=chunk)


def decoder(chunk: int | None = None) -> Network:
    space = spaces.get("nano-gpt2")
    model = space.build(archs(1)[0], 0).double()
    return Network(model, space.batch(0)[:3, :12], chunk=chunk)


NETWORKS = {
    encoder: TINY,
    decoder: spaces.get("nano-gpt2"),
    vision: TINY_VISION,
    staged: TINY_STAGES,
    scaled: TINY_SCALES,
    convolved: TINY_CONVOLUTIONS,
    recurrent: TINY_CELLS,
    gated: TINY_GATES,
    segmented: TINY_SEGMENTS,
}


def measures_on(space: Any) -> dict[str, Measure]:
    """Every measure of a proxy that applies to the space."""
    applying = [get(name) for name in names() if get(name).applies_to(space)]
    return {measure.name: measure for proxy in applying for measure in proxy.measures}


def test_every_proxy_says_what_it_is() -> None:
    assert len(names()) > 50
    for name in names():
        proxy = get(name)
        assert proxy.name == name == name.lower()
        assert proxy.definition, name
        assert isinstance(proxy.needs, Needs), name
        assert str(proxy.needs), name
        assert proxy.direction in (1, -1), name


def snapshot(model: nn.Module) -> list[Any]:
    flags = [m.training for m in model.modules()]
    hooks = [len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules()]
    return [
        (n, p.detach().clone().numpy().tobytes(), p.requires_grad, p.grad is None)
        for n, p in model.named_parameters()
    ] + [flags, hooks]


@pytest.mark.parametrize("make", NETWORKS, ids=lambda make: make.__name__)
def test_splitting_the_batch_changes_rounding_only_and_nothing_is_left_behind(make: Any) -> None:
    """In a network in training mode without gradients, whose passes the measures share."""
    net, parts = make(), make(chunk=2)
    net.model.train()
    net.model.requires_grad_(False)
    before, state = snapshot(net.model), torch.get_rng_state()
    measures = measures_on(NETWORKS[make])
    assert len(measures) > 0.8 * len(MEASURES)
    for name, measure in measures.items():
        whole = evaluate(measure, net)
        assert snapshot(net.model) == before, name
        assert torch.equal(torch.get_rng_state(), state), name
        split = evaluate(measure, parts)
        assert math.isfinite(whole.score), name
        assert split.score == pytest.approx(whole.score, rel=1e-8), name
        assert split.count == whole.count, name


@pytest.fixture(scope="module")
def measurements(tmp_path_factory: pytest.TempPathFactory) -> Measurements:
    made = Measurements(context(folder=tmp_path_factory.mktemp("cache")))
    made.records(spaces.get("nano-gpt2"), archs(4), list(MEASURES.values()))
    return made


@pytest.mark.parametrize("name", EVERYWHERE)
def test_scores_do_not_depend_on_order_or_company(name: str, measurements: Measurements) -> None:
    space, four = spaces.get("nano-gpt2"), archs(4)
    scores = get(name).score(space, four, measurements)
    assert scores.shape == (4,)
    assert scores.dtype == np.float64
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(get(name).score(space, four[::-1], measurements), scores[::-1])
    if name not in IN_COMPANY:
        np.testing.assert_array_equal(get(name).score(space, four[1:2], measurements), scores[1:2])


TINY_PAIRS: dict[Any, list[Any]] = {
    TINY_VISION: [IMAGES, AutoFormerArch(12, IMAGES.layers[::-1])],
    TINY_STAGES: [STAGES, PitArch(4, 2, (1, 1, 1), (2, 2, 4))],
    TINY_GATES: [GATES, OpenLmArch(10, 3, 2)],
    TINY_SEGMENTS: [SEGMENTS, Gpt2Arch(8, (4, 2), (20, 20), 128, 1)],
    TINY_CELLS: [
        CELL,
        TINY_CELLS.from_json(
            TINY_CELLS.to_json(CELL)
            | {"h_new_1": {"op": "blend", "input": ["b", "h_new_0", "h_prev_0"]}}
        ),
    ],
}


@pytest.fixture(scope="module")
def tiny_measurements(tmp_path_factory: pytest.TempPathFactory) -> Measurements:
    """All measures of the pairs of tiny networks, from one network each."""
    made = Measurements(Context(folder=tmp_path_factory.mktemp("tiny")))
    for space, pair in TINY_PAIRS.items():
        made.records(space, pair, list(measures_on(space).values()))
    return made


@pytest.mark.parametrize("space", TINY_PAIRS, ids=lambda space: space.name)
def test_every_proxy_scores_what_it_applies_to(space: Any, tiny_measurements: Measurements) -> None:
    """Images, blocks of unlike width and length, other decoders, recurrent cells."""
    applying = {name for name in names() if get(name).applies_to(space)}
    assert len(applying) > 0.7 * len(names())
    assert space is not TINY_VISION or applying == set(names())
    has_attention = all(space.attention_parameters(arch) for arch in TINY_PAIRS[space])
    for name in applying:
        scores = get(name).score(space, TINY_PAIRS[space], tiny_measurements)
        divides = not has_attention and "attention-parameters" in columns_of(get(name))
        assert divides or np.isfinite(scores).all(), name


def columns_of(proxy: Any) -> set[str]:
    """The counters and proxies that a formula, or one of those combined, names."""
    if isinstance(proxy, FormulaProxy):
        return set(proxy.formula.columns)
    return set().union(*(columns_of(part) for part in getattr(proxy, "parts", ())))


def test_a_formula_that_reads_attention_does_not_apply_to_recurrent_cells() -> None:
    assert not find("sum(mul(abs(S), abs(W)))").applies_to(TINY_CELLS)
    assert find("sum(mul(abs(H), abs(W)))").applies_to(TINY_CELLS)
    left_out = {name for name in names() if not get(name).applies_to(TINY_CELLS)}
    assert {"softmax-confidence", "head-importance", "synaptic-diversity", "dss"} <= left_out


def test_the_second_call_is_a_look_up(
    measurements: Measurements, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> Any:
        raise AssertionError("a network was built")

    fresh = Measurements(context(folder=measurements.context.folder))
    monkeypatch.setattr(spaces.gpt2.Gpt2Space, "build", fail)
    space = spaces.get("nano-gpt2")
    for name in ("snip", "ntsr", "dss", "snip-normalised"):
        expected = get(name).score(space, archs(4), measurements)
        np.testing.assert_array_equal(get(name).score(space, archs(4), fresh), expected)


@pytest.mark.slow
def test_two_jobs_give_the_same_as_one(measurements: Measurements, tmp_path: Path) -> None:
    space, measures = spaces.get("nano-gpt2"), [MEASURES["snip"], MEASURES["ntkt"]]
    two = Measurements(context(folder=tmp_path, workers=Workers(2)))
    found, expected = (c.records(space, archs(4), measures) for c in (two, measurements))
    for name in ("snip", "ntkt"):
        assert [r.score for r in found[name]] == [r.score for r in expected[name]]


def test_seeds_and_batches_make_other_values(tmp_path: Path, measurements: Measurements) -> None:
    space, first = spaces.get("nano-gpt2"), archs(1)
    base = get("snip").score(space, first, measurements)
    other_weights = get("snip").score(space, first, Measurements(context(seed=1, folder=tmp_path)))
    other_batch = get("snip").score(
        space, first, Measurements(context(batch_seed=1, folder=tmp_path))
    )
    assert len({float(base[0]), float(other_weights[0]), float(other_batch[0])}) == 3


@pytest.mark.parametrize("damage", ["cut", "digit", "swapped"])
def test_a_broken_file_is_made_again(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    space, first = spaces.get("nano-gpt2"), archs(2)
    expected = get("snip").score(space, first, Measurements(context(folder=tmp_path)))
    file, other = tmp_path.rglob("*.json")
    whole = file.read_text()
    digit = re.sub(r"(\d)(?=, \d)", lambda found: str(9 - int(found[1])), whole, count=1)
    assert digit != whole
    file.write_text({"cut": whole[:20], "digit": digit, "swapped": other.read_text()}[damage])
    np.testing.assert_array_equal(
        get("snip").score(space, first, Measurements(context(folder=tmp_path))), expected
    )
    assert f"{file}: " in caplog.text


def test_what_the_paper_wants_small_is_turned_round(measurements: Measurements) -> None:
    proxy = get("ntk-condition")
    space, measure = spaces.get("nano-gpt2"), MEASURES["ntk-condition"]
    raw = [r.score for r in measurements.records(space, archs(4), [measure])[measure.name]]
    assert proxy.direction == -1
    assert proxy.score(space, archs(4), measurements).tolist() == [-value for value in raw]


def test_an_interrupted_run_goes_on(tmp_path: Path) -> None:
    seen = []

    def stops_once(network: Network) -> float:
        seen.append(network)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return float(len(network.blocks))

    space, measure = spaces.get("nano-gpt2"), Measure("stops-once", stops_once)
    with pytest.raises(KeyboardInterrupt):
        Measurements(context(folder=tmp_path)).records(space, archs(4), [measure])
    assert len(list(tmp_path.rglob("*.json"))) == 2
    found = Measurements(context(folder=tmp_path)).records(space, archs(4), [measure])["stops-once"]
    assert [r.score for r in found] == [space.depth(arch) for arch in archs(4)]
    assert len(seen) == 5  # two before, one interrupted, two after
    assert list(tmp_path.rglob(".*")) == []


def test_one_failing_architecture_has_no_score_and_the_others_do(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def fails_on_the_narrow(network: Network) -> float:
        if network.matrices[0][0].weight.shape[0] < 100:
            raise MemoryError("no room")
        return 1.0

    space, some = spaces.get("nano-gpt2"), archs(4)
    measure = Measure("moody", fails_on_the_narrow)
    proxy = NetworkProxy("moody", measure)
    scores = proxy.score(space, some, Measurements(context(folder=tmp_path)))
    wide = np.array([space.width(arch) >= 100 for arch in some])
    assert wide.any()
    assert not wide.all()
    np.testing.assert_array_equal(np.isfinite(scores), wide)
    assert "no room" in caplog.text


WITH_BLOCKS = [n for n in EVERYWHERE if get(n).has_blocks]
# A combination of ranks has blocks whose values are ranks: see the test after these.
ADDING_UP = [n for n in WITH_BLOCKS if getattr(get(n), "how", "sum") == "sum"]


# The records of a formula of several terms hold its terms, not blocks; a product has none.
BY_BLOCK = [
    n
    for n in EVERYWHERE
    if get(n).measures and not n.startswith("engine-") and getattr(get(n), "how", "") != "product"
]


def test_a_proxy_has_blocks_if_all_its_measures_have(measurements: Measurements) -> None:
    space, four = spaces.get("nano-gpt2"), archs(4)
    assert len(BY_BLOCK) > 40
    for proxy in map(get, BY_BLOCK):
        blocks = [measurements.records(space, four, [m])[m.name][0].blocks for m in proxy.measures]
        assert proxy.has_blocks == all(found is not None for found in blocks), proxy.name


def test_blocks_of_a_proxy_without_them_are_refused(measurements: Measurements) -> None:
    without = set(EVERYWHERE) - set(WITH_BLOCKS)
    assert without
    for name in without:
        proxy: Any = get(name)
        with pytest.raises(ValueError, match="block"):
            proxy.block_scores(spaces.get("nano-gpt2"), archs(4), measurements)


def test_every_block_has_a_value(measurements: Measurements) -> None:
    space, four = spaces.get("nano-gpt2"), archs(4)
    assert len(WITH_BLOCKS) > 20
    for name in WITH_BLOCKS:
        proxy: Any = get(name)
        blocks = proxy.block_scores(space, four, measurements)
        assert [len(values) for values in blocks] == [space.depth(arch) for arch in four], name


@pytest.mark.parametrize("name", ADDING_UP)
def test_values_of_blocks_add_up(name: str, measurements: Measurements) -> None:
    proxy: Any = get(name)
    space, four = spaces.get("nano-gpt2"), archs(4)
    blocks = proxy.block_scores(space, four, measurements)
    if (
        isinstance(proxy, FormulaProxy)
        and proxy.formula.is_term
        and proxy.formula.term.reduction == "mean"
    ):
        total = np.array([values.mean() for values in blocks])
    else:
        total = np.array([values.sum() for values in blocks])
    scores = proxy.score(space, four, measurements)
    # The proxies of a supernet divide within each block, the others by a size of the network.
    if name.endswith("-normalised") and not isinstance(proxy, SupernetProxy):
        scores = get(name.removesuffix("-normalised")).score(space, four, measurements)
    np.testing.assert_allclose(total, scores, rtol=1e-9)


def test_ranks_of_blocks_are_among_all_blocks_together(measurements: Measurements) -> None:
    space, four = spaces.get("nano-gpt2"), archs(4)
    expected = 0
    for part in ("dss-diversity", "dss-saliency"):
        proxy: Any = get(part)
        expected = expected + rankdata(
            np.concatenate(proxy.block_scores(space, four, measurements))
        )
    both: Any = get("dss++")
    found = both.block_scores(space, four, measurements)
    np.testing.assert_array_equal(np.concatenate(found), expected)
    assert [len(values) for values in found] == [space.depth(arch) for arch in four]
    mean = rank_mean(*both.parts).block_scores(space, four, measurements)
    np.testing.assert_allclose(np.concatenate(mean), np.asarray(expected) / 2)


def test_the_size_of_a_network_has_no_blocks() -> None:
    assert not get("parameters").has_blocks
    assert not rank_mean(get("snip"), get("parameters")).has_blocks


@pytest.mark.parametrize(
    "text", ["sum(mul(abs(G), abs(W)))", "-mean(add(square(W), softmax(J)))", "lpzero-gpt2"]
)
def test_formulas_score_networks_as_they_score_sketches(
    text: str, measurements: Measurements
) -> None:
    space, four = spaces.get("nano-gpt2"), archs(4)
    proxy = find(text)
    assert isinstance(proxy, FormulaProxy)
    direct = proxy.on_networks()
    np.testing.assert_allclose(
        direct.score(space, four, measurements), proxy.score(space, four, measurements), rtol=1e-9
    )
    for found, expected in zip(
        direct.block_scores(space, four, measurements),
        proxy.block_scores(space, four, measurements),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-9)


class Encoder(nn.Module):
    """torch's own transformer, as anybody would write it."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 16)
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True, dropout=0.0)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, tokens: Tensor) -> Tensor:
        y: Tensor = self.encoder(self.embedding(tokens))
        return y


def plain_encoder() -> Network:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Encoder()
    cotangent = torch.linspace(-1, 1, 16)
    tokens = torch.arange(18).view(3, 6)
    return Network(model, tokens, lambda hidden, _: (hidden * cotangent).mean((1, 2)))


def test_any_torch_transformer_can_be_scored() -> None:
    net, scored = plain_encoder(), 0
    assert len(net.blocks) == 2
    for name, measure in MEASURES.items():
        proxy = next(p for p in map(get, names()) if measure in p.measures)
        if Needs.TAPS not in proxy.needs:
            assert math.isfinite(evaluate(measure, net).score), name
            scored += 1
    assert scored > 0.7 * len(MEASURES)


def test_pooling_is_neither_attention_nor_feed_forward() -> None:
    parts = [[(m.name, m.part) for m in block] for block in staged().matrices]
    pools = ("pool.convolution.weight", "pool.class_token.weight")
    assert all(part == "pooling" for b in parts for name, part in b if name in pools)
    assert [sum(part == "pooling" for _, part in b) for b in parts] == [0, 0, 2, 2]
    assert [sum(part == "attention" for _, part in b) for b in parts] == [2, 2, 2, 2]
    assert len(get("dss-diversity").measure.function(staged())[2]) == 2
    assert len(get("snip").measure.function(staged())[2]) == 6


@pytest.mark.slow
def test_dss_knows_weights_and_an_input_of_ones_alone(tmp_path: Path) -> None:
    space, four = spaces.get("nano-gpt2"), archs(4)
    one, other = (Measurements(context(batch_seed=seed, folder=tmp_path)) for seed in (0, 1))
    scores = get("dss").score(space, four, one)
    np.testing.assert_array_equal(scores, get("dss").score(space, four, other))
    assert not np.array_equal(
        get("snip").score(space, four, one), get("snip").score(space, four, other)
    )
    parts = [get(name).score(space, four, one) for name in ("dss-diversity", "dss-saliency")]
    np.testing.assert_allclose(scores, sum(parts))
    ranks = sum(rankdata(part) for part in parts)
    np.testing.assert_array_equal(get("dss++").score(space, four, one), ranks)
