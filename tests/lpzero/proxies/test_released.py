"""The released recipes, worked out the slow way on tiny networks."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import nn

import spaces
from lpzero.proxies import Context, Measurements, Network, evaluate, get, names
from lpzero.proxies.families.released import _ez
from lpzero.proxies.flow import released_flow
from lpzero.proxies.measurements import released_batch
from lpzero.proxies.passes import kept, train_mode_dropout
from spaces.flexibert import FlexiBertArch, FlexiBertSpace, Layer
from spaces.gpt2.space import Gpt2Arch, Gpt2Space
from spaces.minibatch import Minibatch
from spaces.pit import PitArch, PitSpace
from tests.lpzero.proxies.tiny_networks import network

DECODER = Gpt2Space(
    name="tiny-gpt2",
    n_layers=range(1, 4),
    d_model=range(4, 9, 4),
    d_inner=range(6, 9),
    min_ratio=1,
    n_head=(1, 2),
    accepted_d_model=range(4, 9, 4),
    accepted_d_inner=range(6, 9),
    d_embed=(4,),
    div_val=(2,),
    vocabulary=30,
    cutoffs=(10, 20),
    context=5,
    batch_shape=(3, 5),
)
ARCH = Gpt2Arch(d_model=4, n_head=(2, 1), d_inner=(6, 7), d_embed=4, div_val=2)


def decoder() -> Network:
    return Network(DECODER.build(ARCH, 0).double(), DECODER.batch(0))


ENCODER = FlexiBertSpace(
    name="tiny", hidden=(8,), n_layers=(2, 3), ffn=(6,), vocabulary=20, embedding=8,
    batch_shape=(3, 5),
)  # fmt: skip


def encoder(operations: tuple[str, ...] = ("wma", "dct", "dsc5")) -> Network:
    arch = FlexiBertArch(8, tuple(Layer(operation, 2, 6, 1) for operation in operations))
    return Network(ENCODER.build(arch, 0).double(), ENCODER.batch(0))


def value(name: str, net: Network) -> float:
    (measure,) = get(name).measures
    return evaluate(measure, net).score


def linears(net: Network) -> list[nn.Module]:
    return [
        m for b in net.blocks for m in b.modules() if getattr(m, "weight", torch.ones(1)).ndim == 2
    ]


def outputs(net: Network) -> list[torch.Tensor]:
    """The output (B, T, f) of each matrix in a pass with dropout, by hooks of its own."""
    seen: list[torch.Tensor] = []
    handles = [
        m.register_forward_hook(lambda _, __, out: seen.append(out.detach())) for m in linears(net)
    ]
    with train_mode_dropout(net.model, net.seed, slice(0, len(net.tokens))):
        net.model(net.tokens)
    for handle in handles:
        handle.remove()
    return seen


def mask(run: int, branch: int, place: int, shape: tuple[int, ...]) -> torch.Tensor:
    """The mask of a residual branch for the input at that place of the batch, of seed 0."""
    return kept((0, 17, run, branch, place), torch.Size(shape))


def test_dropout_drops_a_tenth_and_scales_the_rest() -> None:
    drawn = mask(0, 0, 0, (200, 50))
    assert set(drawn.unique().tolist()) == {0.0, 1 / 0.9}
    assert float((drawn == 0).double().mean()) == pytest.approx(0.1, abs=0.01)


def dropped(net: Network, seed: int, part: slice = slice(0, 3), run: int = 0) -> torch.Tensor:
    """The model's output for a part of the batch in a pass with dropout."""
    with train_mode_dropout(net.model, seed, part, run):
        found: torch.Tensor = net.model(net.tokens[part])
    return found


@pytest.mark.parametrize("kind", ["decoder", "encoder"])
def test_masks_come_from_the_seed_whatever_the_split_and_leave_no_trace(kind: str) -> None:
    net = {"decoder": decoder, "encoder": encoder}[kind]()
    plain = net.model(net.tokens)
    whole = dropped(net, 3)
    assert torch.equal(dropped(net, 3), whole)
    parts = [dropped(net, 3, slice(i, i + 1)) for i in range(3)]
    assert torch.allclose(torch.cat(parts), whole, rtol=1e-12)
    assert not torch.allclose(dropped(net, 4), whole)
    assert not torch.allclose(dropped(net, 3, run=1), whole)
    assert not torch.allclose(plain, whole)
    assert torch.equal(net.model(net.tokens), plain)


def test_a_given_model_drops_at_the_rate_of_each_dropout_that_it_has() -> None:
    other = network()
    assert torch.equal(dropped(other, 3), other.model(other.tokens))
    model = nn.Sequential(nn.Dropout(0.0), nn.Dropout(0.25), nn.Dropout(1.0)).eval()
    ones = torch.ones(3, 50, 40)
    with train_mode_dropout(model[:2], 3, slice(0, 3)):
        found = model[:2](ones)
    assert found.unique().tolist() == pytest.approx([0.0, 1 / 0.75])
    assert float((found == 0).double().mean()) == pytest.approx(0.25, abs=0.02)
    with train_mode_dropout(model, 3, slice(0, 3)):
        assert not model(ones).any()


def test_dropout_of_what_all_inputs_share_is_one_mask() -> None:
    model = nn.Sequential(nn.Dropout(0.5)).eval()
    shared = torch.ones(5, 4)  # positions, say
    with train_mode_dropout(model, 3, slice(0, 3)):
        whole = model(shared)
    with train_mode_dropout(model, 3, slice(2, 3)):
        assert torch.equal(model(shared), whole)
    assert not torch.equal(whole, shared)


def test_an_encoder_drops_its_embedding_its_probabilities_and_its_residual_branches() -> None:
    net = encoder(("sdp", "dct"))
    model, tokens = net.model, net.tokens
    x: torch.Tensor = model.embeddings.word(tokens) + model.embeddings.position.weight[:5]
    x = model.embeddings.norm(x + model.embeddings.segment.weight[0])
    x = x * masks(0, (5, 8))
    first, second = model.blocks
    heads = first.mixing.attention
    q, k, v = (
        one(x).unflatten(-1, (2, 4)).transpose(1, 2)
        for one in (heads.query, heads.key, heads.value)
    )
    probabilities = (q @ k.transpose(-1, -2) / 2).softmax(-1) * masks(1, (2, 5, 5))
    joined = (probabilities @ v).transpose(1, 2).flatten(-2)
    output = first.mixing.output
    x = output.norm(output.dense(joined) * masks(2, (5, 8)) + x)
    x = fed_forward(first, x, masks(3, (5, 8)))
    x = fed_forward(second, second.mixing(x), masks(4, (5, 8)))
    assert torch.allclose(dropped(net, 0), x, rtol=1e-12)


def masks(place: int, shape: tuple[int, ...]) -> torch.Tensor:
    """The masks of the three inputs at a place of the model, of seed 0."""
    return torch.stack([mask(0, place, i, shape) for i in range(3)])


def fed_forward(block: nn.Module, x: torch.Tensor, kept_share: torch.Tensor) -> torch.Tensor:
    """The feed-forward layer of an encoder's block, its branch dropped."""
    layer = block.feed_forward
    y = nn.functional.gelu(layer.stacks[0](x))
    z: torch.Tensor = layer.output.norm(layer.output.dense(y) * kept_share + x)
    return z


@pytest.mark.parametrize(
    "name",
    [
        "grasp-released",
        "synflow-released",
        "logsynflow-released",
        "dss-diversity-released",
        "dss-saliency-released",
        "activation-distance-released",
        "attention-confidence-released",
        "head-confidence-released",
        "eznas-released",
        "jacobian-cosine-released",
    ],
)
def test_a_released_score_of_an_encoder_repeats_and_needs_its_masks(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    score = value(name, encoder())
    assert value(name, encoder()) == score
    monkeypatch.setattr("lpzero.proxies.passes._DROPPED", {})
    assert value(name, encoder()) != score


@pytest.mark.slow
@pytest.mark.parametrize("name", ["grasp", "snip", "synflow", "attention-confidence", "eznas"])
def test_ours_run_without_dropout_after_a_released_recipe_too(name: str) -> None:
    net = encoder()
    for released in ("grasp-released", "eznas-released", "synflow-released"):
        value(released, net)
    assert value(name, net) == value(name, encoder())


@pytest.mark.parametrize("kind", ["decoder", "encoder"])
@pytest.mark.parametrize("name", ["grasp-released", "eznas-released", "jacobian-cosine-released"])
def test_scores_with_dropout_do_not_depend_on_how_the_batch_is_split(kind: str, name: str) -> None:
    whole = {"decoder": decoder, "encoder": encoder}[kind]()
    one_by_one = Network(whole.model, whole.tokens, chunk=1)
    assert value(name, one_by_one) == pytest.approx(value(name, whole))


def test_grasp_takes_gradient_and_hessian_of_two_passes_with_masks_of_their_own() -> None:
    net = decoder()
    weights = net.weights
    losses = []
    for run in (0, 1):
        with train_mode_dropout(net.model, 0, slice(0, 3), run):
            hidden = net.model(net.tokens)
        losses.append(net.model.token_losses(hidden, net.tokens).mean())  # type: ignore[operator]
    first = torch.autograd.grad(losses[0], weights)
    second = torch.autograd.grad(losses[1], weights, create_graph=True)
    inner = sum((a.detach() * b).sum() for a, b in zip(first, second, strict=True))
    products = torch.autograd.grad(inner, weights)
    expected = -sum(float((w.detach() * p).sum()) for w, p in zip(weights, products, strict=True))
    assert value("grasp-released", decoder()) == pytest.approx(expected)


def test_activation_distance_adds_the_agreements_of_all_pairs_of_tokens_of_the_first_input() -> (
    None
):
    read = outputs(decoder())
    assert len(read) == 8
    assert value("activation-distance-released", decoder()) == pytest.approx(agreements(read))


def test_activation_distance_of_an_encoder_reads_the_activations_only() -> None:
    net = encoder()
    read: list[torch.Tensor] = []
    taps = [block.feed_forward.taps[0] for block in net.blocks]  # type: ignore[union-attr,index]
    handles = [tap.register_forward_hook(lambda _, __, out: read.append(out)) for tap in taps]
    dropped(net, net.seed)
    for handle in handles:
        handle.remove()
    assert [tuple(one.shape) for one in read] == [(3, 5, 6)] * 3
    assert value("activation-distance-released", net) == pytest.approx(agreements(read))


def agreements(read: list[torch.Tensor]) -> float:
    """All entries of x x' + (1 - x)(1 - x)' of the first input, by products."""
    signs = [(one[0] > 0).double() for one in read]
    return sum(float((x @ x.T + (1 - x) @ (1 - x).T).sum()) for x in signs)


def test_attention_confidence_of_a_decoder_reads_every_matrix() -> None:
    net = decoder()
    expected = sum(float(o.max(dim=1).values.mean()) for o in outputs(net))
    assert value("attention-confidence-released", net) == pytest.approx(expected)
    assert len(outputs(net)) == 8


def test_attention_confidence_of_an_encoder_reads_the_projections_only() -> None:
    net = encoder()
    wanted = {"query": 2, "key": 2, "value": 2, "weight": 1, "input": 1}
    total, found = 0.0, dict.fromkeys(wanted, 0)
    for block in net.blocks:
        for name, module in block.mixing.named_modules():  # type: ignore[union-attr,operator]
            last = name.rpartition(".")[2]
            if last in wanted and isinstance(module, nn.Linear):
                found[last] += 1
                seen: list[torch.Tensor] = []
                handle = module.register_forward_hook(lambda _, __, o, s=seen: s.append(o.detach()))
                dropped(net, net.seed)
                handle.remove()
                total += float(seen[0].max(dim=1).values.mean())
    assert found == wanted
    assert value("attention-confidence-released", net) == pytest.approx(total)
    assert value("head-confidence-released", net) == pytest.approx(total)


def test_eznas_is_the_sigmoid_of_the_log_determinant_of_the_signs() -> None:
    net = decoder()
    expected = 0.0
    for block in net.released_pass.gradients:
        for gradient in block:
            gram = gradient.sign() @ gradient.sign().T
            determinant = round(float(torch.linalg.det(gram)))
            expected += determinant / (1 + determinant)  # sigmoid(log x) = x / (1 + x)
    assert 1 < expected < 6  # two of eight matrices are taller than wide
    assert value("eznas-released", net) == pytest.approx(expected, abs=1e-3)


def test_eznas_counts_a_matrix_with_a_few_equal_rows_and_not_one_with_more_rows_than_columns() -> (
    None
):
    signs = torch.randn(32, 40, generator=torch.Generator().manual_seed(0)).sign()
    signs[5], signs[6] = signs[4], -signs[4]
    assert int(torch.linalg.matrix_rank(signs)) == 30
    assert _ez(signs) == pytest.approx(1)
    assert _ez(signs.T) == 0
    assert _ez(signs[:1].expand(32, -1)) == pytest.approx(0)  # all rows equal
    assert _ez(torch.zeros(3, 4)) == 0
    assert math.isnan(_ez(torch.full((3, 4), math.nan)))


def test_the_cosine_is_between_channels_at_positions_and_halved() -> None:
    J = network().passed.input_gradients[0]  # (3, 3, 3)
    rows = J.sum(0).T.numpy()
    cosines = [
        abs(float(a @ b) / math.sqrt(float(a @ a) * float(b @ b))) ** (1 / 20)
        for i, a in enumerate(rows)
        for b in rows[:i]
    ]
    assert value("jacobian-cosine-released", network()) == pytest.approx(1 - sum(cosines) / 6)


def absolute_pass() -> tuple[nn.Module, torch.Tensor]:
    """The tiny decoder with absolute weights, run by hand; attention looks at what follows."""
    model = DECODER.build(ARCH, 0).double()
    model.load_state_dict({name: t.abs() for name, t in model.state_dict().items()})
    x = 1 + model.position.weight[None]
    for index, block in enumerate(model.blocks):
        y = block.attention_norm(x)
        q, k, v = block.attention.c_attn(y).split(4, dim=-1)
        heads = []
        n = block.attention.heads
        for a, b, c in zip(*(t[0].chunk(n, dim=-1) for t in (q, k, v)), strict=True):
            rows = []
            for i in range(5):
                scores = [float("1e4")] * 5 if i < 4 else None
                if scores is None:
                    rows.append(torch.softmax(a[i] @ b.T / math.sqrt(4 // n), -1) @ c)
                else:
                    rows.append(c[i + 1 :].mean(0))  # all weight on the tokens after it
            heads.append(torch.stack(rows))
        mixed = block.attention.c_proj(torch.cat(heads, dim=-1)[None])
        x = x + mixed * mask(0, 2 * index, 0, (5, 4))
        x = x + block.feed_forward(block.feed_forward_norm(x)) * mask(0, 2 * index + 1, 0, (5, 4))
    hidden = model.norm(x)
    words = torch.cat([model.embedding.tables[0], model.head.cluster_weight])
    biases = torch.cat([model.head.bias[:10], model.head.cluster_bias])
    total = ((hidden @ model.head.projection) @ words.T + biases).sum()
    return model, total


def test_synflow_and_logsynflow_are_those_of_the_pass_by_hand() -> None:
    model, total = absolute_pass()
    total.backward()
    plain = logs = 0.0
    for block in model.blocks:
        for parameter in block.parameters():
            if parameter.ndim == 2:
                gradient = parameter.grad
                plain += float((parameter.detach() * gradient).abs().sum())
                sizes = gradient.abs()[gradient != 0]
                logs += float((parameter.detach()[gradient != 0] * sizes.log().abs()).sum())
    assert value("synflow-released", decoder()) == pytest.approx(plain)
    assert value("logsynflow-released", decoder()) == pytest.approx(logs)


def test_dss_splits_the_linears_by_shape_and_keeps_every_norm() -> None:
    space = PitSpace(
        name="tiny-stages", base_dims=(4,), ratios=(2,), depths=((1,), (1,), (1,)),
        heads=(1, 2, 4), image=18, patch=4, stride=2, classes=5, n_images=2,
    )  # fmt: skip
    model = space.build(PitArch(4, 2, (1, 1, 1), (1, 2, 4)), 0).double()
    net = Network(model, space.batch(0))
    attention = others = 0.0
    for matrix in released_flow(net).linears:
        place, _, last = matrix.name.removesuffix(".weight").rpartition(".")
        if last == "qkv" or (last == "output" and place.endswith("attention")):
            norms = [torch.linalg.svdvals(m).sum() for m in (matrix.weight, matrix.gradient)]
            attention += float(norms[0] * norms[1])
        else:
            others += float((matrix.weight * matrix.gradient).abs().sum())
    assert others > 0 < attention
    assert value("dss-diversity-released", net) == pytest.approx(attention)
    assert value("dss-saliency-released", net) == pytest.approx(others)


def test_a_released_proxy_runs_on_its_own_batch_unless_another_is_chosen(tmp_path: Path) -> None:
    name = "activation-distance-released"
    space = DECODER
    own = get(name).score(space, [ARCH], Measurements(Context(folder=tmp_path)))
    assert released_batch(space) == Minibatch(16, 5)
    assert released_batch(spaces.get("gpt2")) == Minibatch(16, 192)
    same = Context(folder=tmp_path, batch=Minibatch(16, 5))
    shorter = Context(folder=tmp_path, batch=Minibatch(3, 4))
    assert get(name).score(space, [ARCH], Measurements(same)) == own
    assert get(name).score(space, [ARCH], Measurements(shorter)) != own


def test_every_released_name_has_one_of_ours() -> None:
    released = [name for name in names() if name.endswith("-released")]
    assert len(released) == 15
    news = {"head-confidence"}
    assert {name.removesuffix("-released") for name in released} - news <= set(names())
