"""The released recipes, worked out the slow way on tiny networks."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch
from torch import nn

import spaces
from lpzero.proxies import Context, Measurements, Network, evaluate, get, names
from lpzero.proxies.ranking import measures_of
from lpzero.proxies.released_batch import released_batch
from lpzero.proxies.released_dropout import kept, residual_dropout
from lpzero.proxies.released_flow import released_flow
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


def value(name: str, net: Network) -> float:
    (measure,) = measures_of(get(name))
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
    with residual_dropout(net.model, net.seed):
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


def test_dropout_does_not_depend_on_how_the_batch_is_split_and_leaves_other_models_alone() -> None:
    model = DECODER.build(ARCH, 0).double()
    tokens = DECODER.batch(0)
    with residual_dropout(model, 3):
        whole = model(tokens)
    parts = []
    for i in range(3):
        with residual_dropout(model, 3, first=i):
            parts.append(model(tokens[i : i + 1]))
    assert torch.allclose(torch.cat(parts), whole, rtol=1e-12)
    with residual_dropout(model, 3, run=1):
        assert not torch.allclose(model(tokens), whole)
    assert not torch.allclose(model(tokens), whole)
    other = network()
    with residual_dropout(other.model, 3):
        dropped = other.model(other.tokens)
    assert torch.equal(dropped, other.model(other.tokens))


@pytest.mark.parametrize("name", ["grasp-released", "eznas-released", "jacobian-cosine-released"])
def test_scores_with_dropout_do_not_depend_on_how_the_batch_is_split(name: str) -> None:
    model = DECODER.build(ARCH, 0).double()
    one_by_one = Network(model, DECODER.batch(0), chunk=1)
    assert value(name, one_by_one) == pytest.approx(value(name, decoder()))


def test_grasp_takes_gradient_and_hessian_of_two_passes_with_masks_of_their_own() -> None:
    net = decoder()
    weights = net.weights
    losses = []
    for run in (0, 1):
        with residual_dropout(net.model, 0, run=run):
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
    expected = 0.0
    for output in outputs(network()):
        x = (output[0] > 0).double()
        expected += float((x @ x.T + (1 - x) @ (1 - x).T).sum())
    assert value("activation-distance-released", network()) == pytest.approx(expected)


def test_attention_confidence_of_a_decoder_reads_every_matrix() -> None:
    net = decoder()
    expected = sum(float(o.max(dim=1).values.mean()) for o in outputs(net))
    assert value("attention-confidence-released", net) == pytest.approx(expected)
    assert len(outputs(net)) == 8


def test_attention_confidence_of_an_encoder_reads_the_projections_only() -> None:
    space = FlexiBertSpace(
        name="tiny", hidden=(8,), n_layers=(1, 3), ffn=(6,), vocabulary=20, embedding=8,
        batch_shape=(2, 5),
    )  # fmt: skip
    arch = FlexiBertArch(8, tuple(Layer(o, 2, 6, 1) for o in ("wma", "dct", "dsc5")))
    net = Network(space.build(arch, 0).double(), space.batch(0))
    wanted = {"query": 2, "key": 2, "value": 2, "weight": 1, "input": 1}
    total, found = 0.0, dict.fromkeys(wanted, 0)
    for block in net.blocks:
        for name, module in block.mixing.named_modules():  # type: ignore[union-attr,operator]
            last = name.rpartition(".")[2]
            if last in wanted and isinstance(module, nn.Linear):
                found[last] += 1
                seen: list[torch.Tensor] = []
                handle = module.register_forward_hook(lambda _, __, o, s=seen: s.append(o.detach()))
                net.model(net.tokens)
                handle.remove()
                total += float(seen[0].max(dim=1).values.mean())
    assert found == wanted
    assert value("attention-confidence-released", net) == pytest.approx(total)
    assert value("head-confidence-released", net) == pytest.approx(total)


def test_eznas_is_the_sigmoid_of_the_log_determinant_and_0_for_a_singular_matrix() -> None:
    net = decoder()
    expected = 0.0
    for block in net.released_pass.gradients:
        for gradient in block:
            gram = gradient.sign() @ gradient.sign().T
            determinant = round(float(torch.linalg.det(gram)))
            expected += determinant / (1 + determinant)  # sigmoid(log x) = x / (1 + x)
    assert 1 < expected < 6  # two of eight matrices are taller than wide
    assert value("eznas-released", net) == pytest.approx(expected)


def test_the_cosine_is_between_channels_and_halved() -> None:
    J = network().passed.input_gradients[0]  # (3, 3, 3)
    rows = J.reshape(-1, 3).T.numpy()
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
