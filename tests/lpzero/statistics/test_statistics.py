"""Statistics: what they are, that nothing changes the model, that splitting changes nothing."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

import spaces
from lpzero.export import export, select
from lpzero.statistics import StatisticsError, isolation
from lpzero.statistics.extraction import (
    NetworkStatistics,
    PositionStatistics,
    extract,
    of_architecture,
    weight_matrices,
)
from lpzero.statistics.isolation import resolve_device, single_thread
from lpzero.statistics.objective import objective
from primitives import Matrix, parse, score
from primitives.statistics import STATISTICS, StatisticSource, forget_statistic, statistic
from spaces.autoformer import AutoFormerArch, AutoFormerLayer, AutoFormerSpace
from spaces.flexibert import FlexiBertArch, FlexiBertSpace, Layer
from spaces.flexibert.space import OPERATIONS
from spaces.gpt2.space import Gpt2Arch, Gpt2Space
from spaces.images import random_labels
from spaces.nlp_rnn import RnnSpace
from spaces.pit import PitArch, PitSpace
from spaces.taps import Tap

# Every operation at a size that runs in milliseconds.
TINY = FlexiBertSpace(
    name="tiny", hidden=(32,), n_layers=(1, 2), ffn=(64,), vocabulary=300, embedding=32
)
VISION = AutoFormerSpace(
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
STAGES = PitSpace(
    name="tiny-stages",
    base_dims=(4,),
    ratios=(2,),
    depths=((1,), (1, 2), (1,)),
    heads=(1, 2, 4),
    image=18,
    patch=4,
    stride=2,
    classes=5,
    n_images=3,
)
STAGED = PitArch(4, 2, (1, 2, 1), (1, 2, 4))
# Word vectors of another width than the model's.
PROJECTED = FlexiBertSpace(
    name="projected", hidden=(16,), n_layers=(1,), ffn=(64,), vocabulary=300, embedding=32
)
# Two clusters of words.
ADAPTIVE = Gpt2Space(
    name="adaptive",
    n_layers=(1,),
    accepted_d_model=(16,),
    accepted_d_inner=(32,),
    d_embed=(8,),
    vocabulary=50,
    cutoffs=(20,),
)
CELLS = RnnSpace(
    name="tiny-cells", embedding=6, hidden=10, vocabulary=30, batch_shape=(3, 9), wide_shape=(5, 9)
)
CELL = CELLS.from_json(
    {
        "a": {"op": "linear", "input": ["x", "h_prev_0"]},
        "b": {"op": "activation_leaky_relu", "input": ["a"]},
        "c": {"op": "linear", "input": ["x", "b", "h_prev_1"]},
        "h_new_0": {"op": "activation_tanh", "input": ["c"]},
        "h_new_1": {"op": "elementwise_prod", "input": ["b", "h_new_0"]},
    }
)
NANO_GPT2 = Gpt2Arch(32, (2, 4), (64, 96), -1, 1)


def encoder(operation: str) -> FlexiBertArch:
    return FlexiBertArch(128, (Layer(operation, 4, 512, 3), Layer(operation, 2, 512, 1)))


def tiny_encoder(*operations: str) -> FlexiBertArch:
    return FlexiBertArch(32, tuple(Layer(operation, 2, 64, 1) for operation in operations))


def whole(space: Any, arch: Any, **options: Any) -> list[dict[str, list[Tensor]]]:
    found = of_architecture(space, arch, **options)
    return [values(block) for block in found.blocks]


def values(position: PositionStatistics) -> dict[str, list[Tensor]]:
    return {name: [piece.values for piece in pieces] for name, pieces in position.items()}


def positions(found: NetworkStatistics) -> list[PositionStatistics]:
    """Blocks and ends in a row."""
    return [*found.blocks, *found.ends.values()]


CASES = [("flexibert", encoder(operation)) for operation in OPERATIONS] + [
    ("gpt2", Gpt2Arch(128, (2, 4), (256, 512), 128, 2)),
    ("nano-gpt2", NANO_GPT2),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("space", "arch"),
    [(spaces.get(name), arch) for name, arch in CASES] + [(VISION, IMAGES), (CELLS, CELL)],
    ids=lambda case: getattr(case, "name", str(case)[:40]),
)
def test_all_six_are_there_finite_and_aligned(space: Any, arch: Any) -> None:
    blocks = whole(space, arch)
    B, T = space.batch_shape
    assert len(blocks) == space.depth(arch)
    for block, sizes in zip(blocks, space.block_sizes(arch), strict=True):
        assert set(block) == set(STATISTICS)
        for name, matrices in block.items():
            assert bool(matrices) == (name not in space.absent_statistics)
            assert all(m.ndim == 2 and bool(m.isfinite().all()) for m in matrices)
        assert [m.shape for m in block["W"]] == [m.shape for m in block["G"]]
        assert all(float(m.abs().max()) > 0 for m in block["G"])
        assert [tuple(m.shape) for m in block["J"]] == [(B * T, sizes["width"])]
        assert all(len(m) == B * T for m in block["A"] + block["H"])
        for m in block["S"]:
            torch.testing.assert_close(m.sum(1), torch.ones(len(m)), rtol=1e-4, atol=1e-4)


def counts(operation: str) -> dict[str, int]:
    blocks = whole(TINY, tiny_encoder(operation))
    return {name: len(matrices) for name, matrices in blocks[0].items()}


def test_every_operation_marks_its_own_tensors() -> None:
    found = {operation: counts(operation) for operation in OPERATIONS}
    assert {operation: found[operation]["H"] for operation in OPERATIONS} == {
        "sdp": 3,
        "wma": 4,
        "dft": 1,
        "dct": 1,
        "dsc5": 4,
        "dsc9": 4,
    }
    assert {operation: found[operation]["S"] for operation in OPERATIONS} == {
        "sdp": 1,
        "wma": 1,
        "dft": 1,
        "dct": 1,
        "dsc5": 2,
        "dsc9": 2,
    }


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
def test_ones_give_an_encoder_no_gradient_but_rounding(operation: str) -> None:
    space, arch = spaces.get("flexibert"), encoder(operation)
    zero = whole(space, arch, loss="ones")
    real = whole(space, arch, loss="cotangent")
    for without, with_ in zip(zero, real, strict=True):
        for name in ("G", "J"):
            assert without[name]
            for nothing, something in zip(without[name], with_[name], strict=True):
                assert float(nothing.norm()) < 1e-4 * float(something.norm())


class Doubling(nn.Module):
    """x W with a tap: small enough to differentiate by hand."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([[2.0, 0.0], [1.0, 3.0]]))
        self.taps = nn.ModuleList(Tap(name) for name in ("A", "H", "S"))

    def forward(self, x: Tensor) -> Tensor:
        y = x @ self.weight
        for tap in self.taps:
            y = tap(y)
        return y


class TwoDoublings(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([Doubling(), Doubling()])

    def forward(self, tokens: Tensor) -> Tensor:
        x = torch.stack([tokens.float(), tokens.float() + 1], dim=-1)
        for block in self.blocks:
            x = block(x)
        return x


def test_a_network_worked_by_hand() -> None:
    model = TwoDoublings()
    tokens = torch.tensor([[1, 2], [3, 4]])
    found = extract(model, tokens, loss="ones")
    assert found.ends == {}
    first, second = found.blocks
    x = torch.tensor([[1.0, 2], [2, 3], [3, 4], [4, 5]])
    weight = torch.tensor([[2.0, 0], [1, 3]])
    one = torch.ones(4, 2) / 4
    torch.testing.assert_close(first["A"][0].values, x @ weight)
    torch.testing.assert_close(second["S"][0].values, x @ weight @ weight)
    torch.testing.assert_close(second["J"][0].values, one @ weight.T)
    torch.testing.assert_close(first["J"][0].values, one @ weight.T @ weight.T)
    torch.testing.assert_close(second["G"][0].values, (x @ weight).T @ one)
    torch.testing.assert_close(first["G"][0].values, x.T @ one @ weight.T)
    torch.testing.assert_close(first["W"][0].values, weight)


@pytest.mark.parametrize(
    ("space", "arch"),
    [
        (TINY, tiny_encoder("sdp", "dsc5")),
        (spaces.get("nano-gpt2"), NANO_GPT2),
        (VISION, IMAGES),
        (STAGES, STAGED),
        (CELLS, CELL),
    ],
    ids=["encoder", "decoder", "vision", "stages", "cells"],
)
def test_gradients_are_those_of_backward(space: Any, arch: Any) -> None:
    model, tokens = space.build(arch, 0), space.batch(0)
    found_in = extract(model, tokens, loss="auto")
    loss = objective(model, "auto", tokens, 0)
    loss(model(tokens), tokens, slice(0, len(tokens))).backward()
    for block, found in zip(model.blocks, found_in.blocks, strict=True):
        weights = weight_matrices(block)
        assert weights
        for weight, piece in zip(weights, found["G"], strict=True):
            assert weight.grad is not None
            torch.testing.assert_close(piece.values, weight.grad.flatten(1), rtol=1e-4, atol=1e-7)
    for end, weights in model.ends().items():
        for weight, piece in zip(weights, found_in.ends[end]["G"], strict=True):
            # Without classes to predict, nothing depends on the head of a vision model.
            gradient, nothing = weight.parameter.grad, torch.zeros_like(weight.parameter)
            expected = weight.matrix(nothing if gradient is None else gradient)
            torch.testing.assert_close(piece.values, expected, rtol=1e-4, atol=1e-7)


WITH_ENDS = [
    (TINY, tiny_encoder("sdp", "dft")),
    (PROJECTED, FlexiBertArch(16, (Layer("sdp", 2, 64, 1),))),
    (spaces.get("nano-gpt2"), NANO_GPT2),
    (ADAPTIVE, Gpt2Arch(16, (2,), (32,), 8, 2)),
    (ADAPTIVE, Gpt2Arch(16, (2,), (32,), -1, 1)),
    (VISION, IMAGES),
    (STAGES, STAGED),
    (CELLS, CELL),
]
END_SHAPES = [
    ([(32, 300), (32, 512), (32, 2)], []),
    ([(32, 300), (32, 512), (32, 2), (16, 32)], []),
    ([(32, 256), (32, 64)], [(32, 256)]),
    ([(8, 20), (4, 30), (16, 8), (16, 4), (16, 192)], [(8, 20), (4, 30), (16, 8), (8, 1)]),
    ([(16, 50), (16, 192)], [(16, 50), (16, 1)]),
    ([(12, 48), (12, 10)], [(12, 5)]),
    ([(4, 48), (4, 64)], [(16, 5)]),
    ([(6, 30)], [(6, 30)]),
]
END_NAMES = [
    "encoder", "projected", "decoder", "clusters", "one table", "vision", "stages",
    "cells",
]  # fmt: skip


@pytest.mark.parametrize(
    ("space", "arch", "shapes"),
    [(*case, shapes) for case, shapes in zip(WITH_ENDS, END_SHAPES, strict=True)],
    ids=END_NAMES,
)
def test_ends_have_their_weights_and_the_states_beside_the_blocks(
    space: Any, arch: Any, shapes: tuple[list[Any], list[Any]]
) -> None:
    model, batch = space.build(arch, 0), space.batch(0)
    found = extract(model, batch)
    assert list(found.ends) == ["embedding", "head"]
    assert all(list(end) == ["A", "J", "G", "W"] for end in found.ends.values())
    embedding, head = (values(end) for end in found.ends.values())
    for end, expected in zip((embedding, head), shapes, strict=True):
        assert [tuple(m.shape) for m in end["W"]] == expected
        assert [m.shape for m in end["G"]] == [m.shape for m in end["W"]]
    with torch.no_grad():
        hidden = model(batch)
    torch.testing.assert_close(head["A"][0], hidden.reshape(-1, space.width(arch)))
    # The embedding's output is the first block's input.
    assert torch.equal(embedding["J"][0], found.blocks[0]["J"][0].values)
    width = space.block_sizes(arch)[0]["width"]
    assert [m.shape for m in embedding["A"]] == [m.shape for m in embedding["J"]]
    assert embedding["A"][0].shape[1] == width
    assert all(bool(m.isfinite().all()) for p in (embedding, head) for of in p.values() for m in of)
    assert float(head["J"][0].abs().max()) > 0
    assert all(float(m.abs().max()) > 0 for m in embedding["G"])


def test_the_state_at_the_embedding_is_its_output_and_the_heads_gradient_the_losss() -> None:
    space = spaces.get("nano-gpt2")
    model, tokens = space.build(NANO_GPT2, 0), space.batch(0)
    ends = extract(model, tokens).ends
    with torch.no_grad():
        x = model.embedding(tokens) + model.position(torch.arange(tokens.shape[1]))
    torch.testing.assert_close(ends["embedding"]["A"][0].values, x.flatten(0, 1))
    hidden = model(tokens).detach().requires_grad_()
    model.token_losses(hidden, tokens).mean().backward()
    assert hidden.grad is not None
    torch.testing.assert_close(ends["head"]["J"][0].values, hidden.grad.flatten(0, 1))


def test_a_shared_table_has_one_gradient_at_both_ends() -> None:
    ends = of_architecture(spaces.get("nano-gpt2"), NANO_GPT2).ends
    for name in ("W", "G"):
        assert torch.equal(ends["embedding"][name][0].values, ends["head"][name][0].values)


@pytest.mark.slow
@pytest.mark.parametrize(("space", "arch"), WITH_ENDS, ids=END_NAMES)
def test_blocks_are_those_of_a_model_that_names_no_ends(
    space: Any, arch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, batch = space.build(arch, 0), space.batch(0)
    with_ends, not_asked = extract(model, batch), extract(model, batch, with_ends=False)
    for base in type(model).__mro__:
        if "ends" in vars(base):
            monkeypatch.delattr(base, "ends")
    without = extract(model, batch)
    assert without.ends == not_asked.ends == {}
    found = zip(with_ends.blocks, not_asked.blocks, without.blocks, strict=True)
    for one, *others in found:
        for name in STATISTICS:
            for a, b, c in zip(one[name], *(other[name] for other in others), strict=True):
                assert torch.equal(a.values, b.values)
                assert torch.equal(a.values, c.values)


def test_the_long_axis_of_a_table_is_cut() -> None:
    space = spaces.get("flexibert")
    ends = of_architecture(space, encoder("sdp"), limit=4096).ends
    pieces = [piece for end in ends.values() for of in end.values() for piece in of]
    assert all(piece.values.numel() <= 4096 for piece in pieces)
    words = ends["embedding"]["W"][0]
    assert (tuple(words.values.shape), words.true_columns) == ((128, 32), space.vocabulary)


def test_stages_have_statistics_of_their_own_width_and_length() -> None:
    blocks = whole(STAGES, STAGED)
    assert [tuple(block["A"][0].shape) for block in blocks] == [
        (3 * 65, 8),
        (3 * 17, 16),
        (3 * 17, 16),
        (3 * 5, 32),
    ]
    # What enters the first block of a stage is still the stage before.
    assert [tuple(block["J"][0].shape) for block in blocks] == [
        (3 * 65, 4),
        (3 * 65, 4),
        (3 * 17, 8),
        (3 * 17, 8),
    ]
    assert [tuple(block["S"][0].shape) for block in blocks] == [
        (3 * 1 * 65, 65),
        (3 * 2 * 17, 17),
        (3 * 2 * 17, 17),
        (3 * 4 * 5, 5),
    ]
    assert all(m.isfinite().all() for b in blocks for found in b.values() for m in found)


def hooks(model: nn.Module) -> int:
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def snapshot(model: nn.Module) -> list[Any]:
    return [
        (name, p.detach().clone().numpy().tobytes(), p.requires_grad, p.grad is None)
        for name, p in model.named_parameters()
    ] + [module.training for module in model.modules()]


@pytest.mark.parametrize("ready", ["fresh", "training", "frozen", "has grads"])
def test_the_model_is_left_as_it_was(ready: str) -> None:
    space = spaces.get("nano-gpt2")
    model, tokens = space.build(NANO_GPT2, 0), space.batch(0)
    if ready == "training":
        model.blocks[0].train()
    elif ready == "frozen":
        model.requires_grad_(False)
    elif ready == "has grads":
        model.token_losses(model(tokens), tokens).mean().backward()
    before, state = snapshot(model), torch.get_rng_state()
    extract(model, tokens)
    assert snapshot(model) == before
    assert torch.equal(torch.get_rng_state(), state)
    assert hooks(model) == 0


def test_the_model_is_left_as_it_was_when_the_pass_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    space = spaces.get("nano-gpt2")
    model, tokens = space.build(NANO_GPT2, 0).train(), space.batch(0)
    before = snapshot(model)

    def fail(_: Tensor) -> Tensor:
        raise MemoryError("no room")

    monkeypatch.setattr(model.blocks[1].feed_forward, "forward", fail)
    with pytest.raises(MemoryError):
        extract(model, tokens)
    assert snapshot(model) == before
    assert hooks(model) == 0


@pytest.mark.parametrize("context", [torch.no_grad, torch.inference_mode])
def test_the_callers_gradient_mode_does_not_matter(context: Callable[[], Any]) -> None:
    space = spaces.get("nano-gpt2")
    model, tokens = space.build(NANO_GPT2, 0), space.batch(0)
    expected = extract(model, tokens)
    with context():
        found = extract(model, tokens)
    assert torch.equal(found.blocks[0]["G"][0].values, expected.blocks[0]["G"][0].values)
    assert torch.equal(found.ends["head"]["G"][0].values, expected.ends["head"]["G"][0].values)


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(
    space=st.sampled_from([TINY, spaces.get("nano-gpt2"), VISION, CELLS]),
    seed=st.integers(0, 1000),
    chunk=st.integers(1, 7),
    limit=st.sampled_from([None, 700, 4096]),
)
def test_splitting_the_batch_changes_rounding_only(
    space: Any, seed: int, chunk: int, limit: int | None
) -> None:
    arch = space.sample(random.Random(seed))
    model, tokens = space.build(arch, seed).double(), space.batch(seed)
    whole_batch = extract(model, tokens, limit=limit)
    split = extract(model, tokens, limit=limit, chunk=chunk)
    for one, other in zip(positions(whole_batch), positions(split), strict=True):
        for name in one:
            for a, b in zip(one[name], other[name], strict=True):
                assert a.true_columns == b.true_columns
                torch.testing.assert_close(a.values, b.values, rtol=1e-6, atol=1e-10)


def test_a_chunk_of_one_equals_the_whole_in_float32() -> None:
    model, tokens = TINY.build(tiny_encoder("wma", "dct"), 0), TINY.batch(0)
    whole_batch, split = extract(model, tokens), extract(model, tokens, chunk=1)
    for one, other in zip(positions(whole_batch), positions(split), strict=True):
        for name in one:
            for a, b in zip(one[name], other[name], strict=True):
                scale = float(a.values.abs().max())
                torch.testing.assert_close(a.values, b.values, rtol=1e-3, atol=1e-4 * scale)


def test_labels_are_the_cross_entropy_of_drawn_classes() -> None:
    model, images = VISION.build(IMAGES, 0), VISION.batch(0)
    loss = objective(model, "labels", images, 4)
    found = loss(model(images), images, slice(0, 3))
    scores = model.logits(model(images)).log_softmax(-1)
    drawn = random_labels(3, VISION.classes, 4)
    torch.testing.assert_close(found, -scores[range(3), drawn].mean())
    parts = [loss(model(images[p]), images[p], p) for p in (slice(0, 1), slice(1, 3))]
    torch.testing.assert_close(sum(parts), found)


def test_labels_need_classes() -> None:
    model, tokens = TINY.build(tiny_encoder("sdp"), 0), TINY.batch(0)
    with pytest.raises(StatisticsError, match="FlexiBert has no classes; use loss cotangent"):
        extract(model, tokens, loss="labels")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize(("name", "arch"), CASES, ids=lambda case: str(case)[:40])
def test_cuda_gives_the_same_up_to_rounding(name: str, arch: Any) -> None:
    space = spaces.get(name)
    on_cpu, on_gpu = (whole(space, arch, device=device) for device in ("cpu", "cuda"))
    for one, other in zip(on_cpu, on_gpu, strict=True):
        for name in STATISTICS:
            for a, b in zip(one[name], other[name], strict=True):
                torch.testing.assert_close(a, b.cpu(), rtol=1e-2, atol=1e-3 * float(a.abs().max()))


def test_what_cannot_be_used_is_named() -> None:
    tokens = torch.zeros(2, 4, dtype=torch.long)
    with pytest.raises(StatisticsError, match="no `blocks`"):
        extract(nn.Linear(2, 2), tokens)
    bare = TwoDoublings()
    for block in bare.blocks:
        block.taps = nn.ModuleList()
    with pytest.raises(StatisticsError, match="no taps"):
        extract(bare, tokens)
    with pytest.raises(StatisticsError, match="predicts no tokens"):
        extract(TwoDoublings(), tokens, loss="next-token")
    with pytest.raises(StatisticsError, match="unknown"):
        extract(TwoDoublings(), tokens, loss="mse")


@pytest.mark.skipif(torch.accelerator.is_available(), reason="there is an accelerator")
def test_a_missing_gpu_is_named() -> None:
    assert resolve_device("auto") == torch.device("cpu")
    for name in ("cuda", "cuda:1", "mps", "xpu"):
        with pytest.raises(StatisticsError, match=f"device {name} is not available.*no GPU"):
            resolve_device(name)


def _accelerated(monkeypatch: pytest.MonkeyPatch, kind: str, worker: str = "MainProcess") -> None:
    """A machine with two devices of that kind, seen from a process of that name."""
    found = torch.device(kind)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda check_available: found)
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    monkeypatch.setattr(isolation, "current_process", lambda: SimpleNamespace(name=worker))


@pytest.mark.parametrize(
    ("kind", "name", "worker", "expected"),
    [
        ("cuda", "auto", "MainProcess", "cuda"),
        ("xpu", "auto", "MainProcess", "xpu"),
        ("mps", "auto", "MainProcess", "cpu"),
        ("mps", "mps", "MainProcess", "mps"),
        ("cuda", "cpu", "LokyProcess-1", "cpu"),
        ("cuda", "cuda:0", "LokyProcess-3", "cuda:0"),
        ("cuda", "cuda", "LokyProcess-3", "cuda:1"),
        ("cuda", "auto", "LokyProcess-4", "cuda:0"),
    ],
)
def test_any_accelerator_is_found_and_workers_take_turns(
    kind: str, name: str, worker: str, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _accelerated(monkeypatch, kind, worker)
    assert resolve_device(name) == torch.device(expected)


def test_a_device_that_the_machine_has_not_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    _accelerated(monkeypatch, "cuda")
    for name in ("xpu", "cuda:2"):
        with pytest.raises(StatisticsError, match=f"device {name} is not.*2 of type cuda"):
            resolve_device(name)


class Tapped(Doubling):
    """A block that has a further tap."""

    def __init__(self) -> None:
        super().__init__()
        self.tap_y = Tap("Y")

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(self.tap_y(x))


@pytest.fixture
def two_more_statistics() -> Iterator[None]:
    statistic("X", "what enters the block", source=StatisticSource.INPUT)
    statistic("Y", "the loss's gradient at the taps Y", group="Y", is_gradient=True)
    yield
    forget_statistic("X")
    forget_statistic("Y")


@pytest.mark.usefixtures("two_more_statistics")
@pytest.mark.parametrize("text", ["sum(matmul(X, X))", "sum(mul(l1(X), std(Y)))"])
def test_a_new_statistic_is_its_declaration_and_the_models_that_have_it(text: str) -> None:
    model, tokens = TwoDoublings(), torch.tensor([[1, 2], [3, 4]])
    model.blocks = nn.ModuleList([Tapped(), Tapped()])
    found = extract(model, tokens, loss="ones").blocks
    x = torch.tensor([[1.0, 2], [2, 3], [3, 4], [4, 5]])
    torch.testing.assert_close(found[0]["X"][0].values, x)
    for block in found:
        torch.testing.assert_close(block["Y"][0].values, block["J"][0].values)
    in_parts = extract(model, tokens, loss="ones", chunk=1).blocks
    for together, split in zip(found, in_parts, strict=True):
        for name in ("X", "Y"):
            torch.testing.assert_close(together[name][0].values, split[name][0].values)
    blocks = [
        {
            name: [Matrix(p.values.double().numpy(), p.true_columns) for p in pieces]
            for name, pieces in block.items()
        }
        for block in found
    ]
    module: dict[str, Any] = {"__name__": "exported"}
    exec(export(select(text), "python"), module)  # noqa: S102  our own text
    on_model = module["score_model"](model, tokens, lambda output, _: output.sum() / 4)
    assert on_model == pytest.approx(score(parse(text), blocks))
    assert all(mine == pytest.approx(engine) for mine, engine in module["self_test"]())


def test_a_tap_of_no_declared_statistic_is_refused() -> None:
    model = TwoDoublings()
    model.blocks = nn.ModuleList([Tapped(), Tapped()])
    with pytest.raises(StatisticsError, match="tap 'Y', which is not declared"):
        extract(model, torch.zeros(2, 4, dtype=torch.long))


def test_one_thread_inside_as_many_as_before_after() -> None:
    before = torch.get_num_threads()
    with single_thread(), single_thread():
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == before


def test_what_was_extracted_does_not_change_with_the_model() -> None:
    space = spaces.get("nano-gpt2")
    arch = space.sample(random.Random(0))
    model = space.build(arch, 0)
    found = extract(model, space.batch(0))
    positions = (*found.blocks, *found.ends.values())
    taken = [one.values for position in positions for of in position.values() for one in of]
    before = [values.clone() for values in taken]
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(7.0)
    assert all(torch.equal(a, b) for a, b in zip(before, taken, strict=True))


@pytest.mark.parametrize("names", ["A", "JW", "G", "HS", "W"])
@pytest.mark.parametrize("space", ["nano-gpt2", "nano-flexibert", "nano-rnn"])
def test_some_statistics_are_the_same_as_among_all(
    space: str, names: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = spaces.get(space)
    model = made.build(made.sample(random.Random(2)), 0)
    full = extract(model, made.batch(0))
    if not set(names) & set("GJ"):

        def no_gradient(*words: Any, **options: Any) -> Any:
            raise AssertionError("nothing should be differentiated")

        monkeypatch.setattr(torch.autograd, "grad", no_gradient)
    some = extract(model, made.batch(0), names=names)
    pairs = [*zip(some.blocks, full.blocks, strict=True)]
    pairs += [(some.ends[end], full.ends[end]) for end in full.ends]
    for mine, all_of_them in pairs:
        assert mine.keys() == all_of_them.keys() & set(names)
        for name, pieces in mine.items():
            for piece, other in zip(pieces, all_of_them[name], strict=True):
                assert torch.equal(piece.values, other.values)
