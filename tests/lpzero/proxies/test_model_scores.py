"""`lpzero.score`: the numbers of `lpzero rank`, the contract of losses, and reasons."""

from __future__ import annotations

import math
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import lpzero
import spaces
from lpzero.errors import InputError
from lpzero.proxies import Context, Measurements, get, names
from lpzero.proxies.network import Network
from lpzero.statistics import extraction
from spaces.memory import NOT_ENOUGH
from spaces.minibatch import Minibatch
from tests.lpzero.proxies.tiny_networks import TOKENS, foreign, next_token

PAGE = Path(__file__).parents[3] / "docs" / "your-own-model.md"


@pytest.mark.slow
@pytest.mark.parametrize("space_name", ["nano-gpt2", "nano-flexibert"])
def test_scores_are_those_of_rank(space_name: str, tmp_path: Path) -> None:
    space = spaces.get(space_name)
    arch = min((space.sample(random.Random(i)) for i in range(20)), key=space.parameters)
    # A chosen batch is that of every proxy, the released ones included.
    context = Context(folder=tmp_path, batch=Minibatch(3, space.batch_shape[1]))
    scores = lpzero.score(space.build(arch, 0), context.options.tokens(space), names())
    compared = set()
    for row in scores:
        proxy = get(row.proxy)
        known = ("ranks models", "reads a supernet", "those of a search space")
        if row.reason and any(reason in row.reason for reason in known):
            continue
        if not proxy.applies_to(space):
            assert row.reason, row.proxy
            continue
        (ranked,) = proxy.score(space, [arch], Measurements(context))
        assert row.score == pytest.approx(ranked, rel=1e-5, nan_ok=True), row.proxy
        compared.add(row.proxy)
    assert {"ntk-condition", "fisher", "snip", "engine-encoder", "flops", "sept"} <= compared
    normalised = {name for name in names() if name.endswith("-normalised")}
    assert normalised - compared == {"supernet-snip-normalised"}
    assert scores["ntk-condition"] < 0
    assert scores["snip-normalised"] < scores["snip"]


@pytest.mark.slow
def test_a_loss_is_one_number_or_one_per_sample() -> None:
    asked = ["snip", "zico", "grasp", "sum(mul(abs(G), abs(W)))", "mean(fro(J))"]

    def mean(output: Tensor, tokens: Tensor) -> Tensor:
        return next_token(output, tokens).mean()

    each, one, parts = (
        lpzero.score(foreign(), TOKENS, asked, loss=loss, chunk=chunk)
        for loss, chunk in ((next_token, None), (mean, None), (mean, 2))
    )
    for other in (one, parts):
        assert [row.score for row in other] == pytest.approx([row.score for row in each], rel=1e-6)
    for wrong in (lambda output, _: output, lambda output, _: 1.0):
        with pytest.raises(InputError, match="expected one number or one per sample"):
            lpzero.score(foreign(), TOKENS, ["snip"], loss=wrong)
    assert len(lpzero.score(foreign(), TOKENS, ["depth"], loss=wrong)) == 1  # which needs none


def test_proxies_are_names_formulas_files_and_functions(tmp_path: Path) -> None:
    text = "sum(mul(abs(G), abs(W)))"
    file = tmp_path / "found.json"
    file.write_text(f'{{"formula": "{text}", "name": "found"}}')

    def twice_the_depth(network: Network) -> float:
        """two for each block"""
        return 2.0 * len(network.blocks)

    scores = lpzero.score(foreign(), TOKENS, [text, file, str(file), twice_the_depth, get("depth")])
    rows = [row.score for row in scores]
    assert rows[0] == rows[1] == rows[2] > 0
    assert scores["twice-the-depth"] == 2 * scores["depth"]
    assert [set(row) for row in scores.to_json()] == [
        {"model", "proxy", "score", "seconds", "needs", "reason"}
    ] * 5
    assert "twice-the-depth" in str(scores)
    assert scores._repr_html_().count("<tr>") == 6
    with pytest.raises(InputError, match="was not scored"):
        scores["snip"]


class Mlp(nn.Module):
    """Blocks without attention."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(20, 8)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)) for _ in range(2)
        )

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens)
        for block in self.blocks:
            x = x + block(x)
        return x


def test_a_model_without_attention_is_told_what_is_missing() -> None:
    scores = lpzero.score(Mlp(), TOKENS, ["snip", "fisher", "softmax-confidence", "mean(S)"])
    assert math.isfinite(scores["snip"])
    assert math.isfinite(scores["fisher"])
    assert set(scores.refused) == {"softmax-confidence", "mean(S)"}
    for reason in scores.refused.values():
        assert "Mlp has no attention probabilities (S)" in reason
        assert "Layout.S" in reason


class Hidden(nn.Module):
    """A block whose probabilities stay inside a fused kernel."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.attn_out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.attn_drop = nn.Dropout(0.1)
        self.fc1, self.fc2 = nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (y.unflatten(-1, (2, 4)).transpose(1, 2) for y in self.qkv(x).chunk(3, -1))
        mixed = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = x + self.attn_drop(self.attn_out(mixed))
        return x + self.fc2(nn.functional.gelu(self.fc1(x)))


def of(*blocks: nn.Module) -> nn.Module:
    return nn.Sequential(nn.Embedding(20, 8), *blocks)


def test_what_a_fused_kernel_leaves_is_found() -> None:
    model = of(Hidden(), Hidden())
    given = lpzero.Layout(blocks=("1", "2"))
    from lpzero.statistics.layout_finder import find_layout

    found = find_layout(model, TOKENS, given)
    (projection,) = found.readings("H")
    assert (projection.module, projection.widths) == ("qkv", (8, 8, 8))
    assert found.heads == ("attn_out",)
    assert found.feed_forward == ("fc1", "fc2")
    (activation,) = found.readings("A")
    assert (activation.module, activation.is_input) == ("fc2", True)
    scores = lpzero.score(model, TOKENS, ["fisher", "softmax-confidence"], layout=given)
    assert scores["fisher"] > 0
    assert re.search(r"modules that look alike: .*attn_drop", scores.refused["softmax-confidence"])


def test_torchs_own_layers_show_their_probabilities() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = of(layer, nn.TransformerEncoderLayer(8, 2, 16, batch_first=True))
    given = lpzero.Layout(blocks=("1", "2"))
    asked = ["softmax-confidence", "snip", "fisher", "head-importance"]
    scores = lpzero.score(model, TOKENS, asked, layout=given)
    assert 1.0 <= scores["softmax-confidence"] <= 4.0  # four heads
    assert set(scores.refused) == {"head-importance"}
    assert not layer.self_attn._forward_pre_hooks


@pytest.mark.parametrize(
    ("layout", "reason"),
    [
        (lpzero.Layout(A=("mlp.7",)), r"reads A at 'mlp.7', .* look at .*mlp"),
        (lpzero.Layout(blocks=("blocks.9",)), "has a block 'blocks.9'"),
        (lpzero.Layout(head=("lm_head",)), "names 'lm_head' at the head"),
    ],
)
def test_a_wrong_layout_is_refused(layout: Any, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        lpzero.score(foreign(), TOKENS, ["snip"], layout=layout)


@pytest.mark.parametrize(
    "batch", [torch.zeros(3), torch.zeros((0, 4), dtype=torch.long), "text", {}, {"x": 1}]
)
def test_a_batch_that_is_none_is_refused(batch: Any) -> None:
    with pytest.raises(InputError):
        lpzero.score(foreign(), batch, ["snip"])


def test_a_model_that_fails_on_the_batch_is_told_in_one_line() -> None:
    with pytest.raises(InputError, match=r"cannot run on the batch: IndexError"):
        lpzero.score(foreign(), TOKENS + 10_000, ["snip"])


def test_several_models_are_ranked() -> None:
    scores = lpzero.score({"a": foreign(0), "b": foreign(1)}, TOKENS, ["te-score", "snip"])
    assert [(row.proxy, row.model) for row in scores] == [
        (proxy, model) for proxy in ("te-score", "snip") for model in ("a", "b")
    ]
    assert not scores.refused


@pytest.mark.slow
def test_importing_the_package_imports_neither_torch_nor_transformers() -> None:
    code = "import sys, lpzero; assert not {'torch', 'transformers'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
    code = "import sys; from lpzero import hf, score; assert 'transformers' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_the_code_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers", reason="the extra lpzero[hf] is not installed")
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(code) == 4
    exec("\n".join(code), {"__name__": "page"})  # noqa: S102 (the page's own code)
    assert "ntk-condition" in capsys.readouterr().out


@pytest.mark.parametrize("space", ["nano-gpt2", "nano-flexibert"])
def test_formulas_read_the_pass_of_other_proxies(
    space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = spaces.get(space)
    model, batch = found.build(found.sample(random.Random(0)), 0), found.batch(0)
    asked = [
        "sum(mul(abs(G), abs(W)))",
        "mean(sub(log(abs(H)), abs(S)))",
        "sum(l1(J))",
        "sum(fro(A))",
    ]
    alone = [lpzero.score(model, batch, one)[one] for one in asked]
    monkeypatch.setattr(extraction, "extract", None)  # no pass of their own
    together = lpzero.score(model, batch, [*asked, "snip"])
    assert [together[one] for one in asked] == alone


def test_a_device_without_memory_left_is_one_line() -> None:
    def greedy(network: Network) -> float:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 80 GiB.\nSee more")

    scores = lpzero.score(foreign(), TOKENS, [greedy], loss=next_token)
    assert scores.refused == {"greedy": NOT_ENOUGH}
    assert "--chunk" in NOT_ENOUGH
