"""Models of Hugging Face: what is found in them, and that every proxy scores every family."""

from __future__ import annotations

import copy
import json
import math
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import lpzero
import spaces
from lpzero.errors import InputError
from lpzero.judgement import counters
from lpzero.proxies import names
from lpzero.proxies.model_scores import given_network
from lpzero.proxies.network import Network
from lpzero.statistics.extraction import extract
from lpzero.statistics.objective import next_token, own_loss
from lpzero.verbs import Screen
from lpzero.verbs import score as score_verb
from spaces.gpt2 import Gpt2Arch
from tests.lpzero.hf.families import CAUSAL, FAMILIES

pytest.importorskip("transformers", reason="the extra lpzero[hf] is not installed")
from lpzero import hf

pytestmark = pytest.mark.slow

FORMULAS = (
    "sum(mul(abs(G), abs(W)))",
    "mul(embedding(l1(relu(A))), sum(exp(fro(W))))",
    "mean(sub(log(abs(H)), abs(S)))",
    "mul(sqrt(inner(params)), last(l1(J)), sum(ffn), sum(heads))",
)


@cache
def model(family: str) -> nn.Module:
    return hf.build(FAMILIES[family])


@cache
def batch(family: str) -> torch.Tensor:
    return hf.batch(model(family), 4, None if family in ("vit", "deit") else 10)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_statistic_is_found_in_every_family(family: str) -> None:
    found = hf.layout(model(family), batch(family))
    seen = extract(model(family), batch(family), loss="cotangent", layout=found)
    assert len(seen.blocks) == 2
    for block in seen.blocks:
        assert all(block[name] for name in "AJGHWS")
        B = 4
        T = len(block["J"][0].values) // B
        (S,) = block["S"]
        heads = 4 if family in ("llama", "mistral", "qwen2", "qwen3") else 2
        assert S.values.shape == (B * heads * T, T)
        assert torch.allclose(S.values.sum(1), torch.ones(B * heads * T), atol=1e-5)
        assert len(block["H"]) == 3
        assert {len(h.values) for h in block["H"]} == {B * T}
        assert [a.values.shape for a in block["A"]] == [(B * T, 64 if family == "gpt2" else 32)]
    assert seen.ends["embedding"]["W"]
    assert bool(seen.ends["head"]["W"]) == (family in (*CAUSAL, "bert-masked", "deit"))
    parts = [found.part(name) for name, w in _block(family).named_parameters() if w.ndim > 1]
    # A gated MLP has three matrices, T5's first block a table of relative positions.
    assert parts.count("feed-forward") == (3 if len(_gates(family)) else 2)
    assert parts.count("attention") in (2, 4, 5)


def _block(family: str) -> nn.Module:
    return hf.layout(model(family), batch(family)).find_blocks(model(family))[1]


def _gates(family: str) -> list[str]:
    return [name for name, _ in _block(family).named_modules() if name.endswith("gate_proj")]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_proxy_scores_every_family_or_says_why_not(family: str) -> None:
    asked = [*names(), *FORMULAS]
    before = copy.deepcopy(model(family).state_dict())
    attention = model(family).config._attn_implementation
    scores = lpzero.score(model(family), batch(family), asked)
    assert scores.proxies == asked
    refused = {name for name, reason in scores.refused.items() if reason}
    for row in scores:
        assert math.isfinite(row.score) != (row.proxy in refused)
    expected = {name for name in asked if "supernet" in name}
    expected |= {"ntsr", "te-score", "dss++", "dss++-released", "az-nas", "az-nas-vit"}
    expected |= {"swap-regularised"}  # it compares sizes with those of a space
    expected |= {name for name in asked if re.match(r"engine-\w+-20", name)}
    if family not in (*CAUSAL, "bert-masked", "deit"):
        expected.add("engine-decoder@0.2")  # reads the head
    assert refused == expected
    after = model(family).state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert model(family).config._attn_implementation == attention


@pytest.mark.parametrize("family", FAMILIES)
def test_the_loss_is_next_token_where_the_model_is_causal(family: str) -> None:
    found = hf.loss(model(family), batch(family))
    assert (found is next_token) == (family in CAUSAL)
    assert family in CAUSAL or found == "cotangent"


def test_fused_projections_are_taken_apart() -> None:
    (fused,) = hf.layout(model("gpt2")).readings("H")
    assert (fused.widths, fused.groups) == ((16, 16, 16), 1)
    (by_head,) = hf.layout(model("gpt-neox")).readings("H")
    assert (by_head.widths, by_head.groups) == ((8, 8, 8), 2)


def test_a_fused_kernel_does_not_hide_the_probabilities() -> None:
    built = hf.build(FAMILIES["gpt2"])
    built.set_attn_implementation("sdpa")
    fused = lpzero.score(built, batch("gpt2"), ["softmax-confidence"])
    assert built.config._attn_implementation == "sdpa"
    plain = lpzero.score(model("gpt2"), batch("gpt2"), ["softmax-confidence"])
    assert fused["softmax-confidence"] == plain["softmax-confidence"]


def test_labels_in_the_batch_give_the_models_own_loss() -> None:
    tokens = batch("gpt2")
    named = {"input_ids": tokens, "labels": tokens}
    network = given_network(model("gpt2"), named)
    assert network.loss is own_loss
    own = lpzero.score(model("gpt2"), named, ["snip", "grad-norm"])
    ours = lpzero.score(model("gpt2"), tokens, ["snip", "grad-norm"])
    assert [row.score for row in own] == pytest.approx([row.score for row in ours], rel=1e-5)


def test_padding_that_a_mask_hides_does_not_count() -> None:
    tokens = batch("gpt2")[:, :6]
    padded = torch.cat([tokens, torch.zeros_like(tokens)], 1)
    mask = torch.cat([torch.ones_like(tokens), torch.zeros_like(tokens)], 1)
    asked = ["snip", "grad-norm", "zico"]
    short = lpzero.score(model("gpt2"), tokens, asked)
    long = lpzero.score(model("gpt2"), {"input_ids": padded, "attention_mask": mask}, asked)
    assert [row.score for row in long] == pytest.approx([row.score for row in short], rel=1e-4)


# Passes of public code make a mask absolute where it is stored in the model, as ours is.
OWN_MASK = {
    "synflow-released",
    "logsynflow-released",
    "dss-diversity-released",
    "dss-saliency-released",
    "dss-released",
}
BIAS_AT_HEAD = {"parameters", "w-pca"}  # ours counts one there


def same_function() -> tuple[nn.Module, nn.Module, torch.Tensor]:
    """A decoder of our space and one of transformers with the same weights and dropout."""
    space = spaces.get("nano-gpt2")
    arch = Gpt2Arch(d_model=32, d_inner=(64, 64), n_head=(2, 2), d_embed=-1, div_val=1)
    ours = space.build(arch, 0)
    fields = {"n_layer": 2, "n_embd": 32, "n_head": 2, "n_inner": 64, "n_positions": 64}
    fields |= {"embd_pdrop": 0, "attn_pdrop": 0, "resid_pdrop": 0.1}
    theirs = hf.build(
        {"model_type": "gpt2", "vocab_size": 256, "tie_word_embeddings": False, **fields}
    )
    table = ours.embedding.tables[0]
    weights = {
        "transformer.wte.weight": table * math.sqrt(32),  # ours are scaled as they are read
        "lm_head.weight": table,
        "transformer.wpe.weight": ours.position.weight,
        "transformer.ln_f.weight": ours.norm.weight,
        "transformer.ln_f.bias": ours.norm.bias,
    }
    renamed = {
        "ln_1": "attention_norm",
        "attn": "attention",
        "ln_2": "feed_forward_norm",
        "mlp": "feed_forward",
    }
    own = dict(ours.named_parameters())
    for name in dict(theirs.named_parameters()):
        if name.startswith("transformer.h."):
            _, _, index, part, rest = name.split(".", 4)
            weights[name] = own[f"blocks.{index}.{renamed[part]}.{rest}"]
    theirs.load_state_dict({name: weight.detach() for name, weight in weights.items()})
    return ours, theirs, space.batch(0)


def test_transformers_gpt2_scores_as_ours_does_with_the_same_weights() -> None:
    ours, theirs, tokens = same_function()
    with torch.no_grad():
        hidden = theirs.transformer(tokens).last_hidden_state
        assert torch.allclose(ours(tokens), hidden, atol=1e-5)
    asked = [name for name in names() if not name.startswith("engine-")]
    asked += [text for text in FORMULAS if "embedding" not in text]
    one, other = (lpzero.score(each, tokens, asked) for each in (ours, theirs))
    agreeing = 0
    for mine, its in zip(one, other, strict=True):
        if mine.proxy in BIAS_AT_HEAD | OWN_MASK:
            continue
        assert (mine.reason is None) == (its.reason is None), mine.proxy
        if mine.reason is None:
            assert its.score == pytest.approx(mine.score, rel=1e-4, abs=1e-12), mine.proxy
            agreeing += 1
    assert agreeing >= 70


def test_a_folder_of_weights_is_read_and_its_code_is_not(tmp_path: Path) -> None:
    trained = hf.build(FAMILIES["bert"], seed=7)
    trained.save_pretrained(tmp_path)
    read = hf.load(tmp_path)
    assert type(read) is type(trained)
    for name, weight in trained.state_dict().items():
        assert torch.equal(weight, read.state_dict()[name])
    config = tmp_path / "config.json"
    fields = json.loads(config.read_text())
    config.write_text(json.dumps(fields | {"auto_map": {"AutoModel": "theirs.Model"}}))
    (tmp_path / "theirs.py").write_text("raise SystemExit('it was run')")
    with pytest.raises(InputError, match="asks for code"):
        hf.load(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    config.write_text(json.dumps(fields))
    with pytest.raises(InputError, match="has no weights"):
        hf.load(tmp_path)


def test_equal_seeds_build_equal_models() -> None:
    first, again, other = (hf.build(FAMILIES["llama"], seed) for seed in (3, 3, 4))
    pairs = zip(first.parameters(), again.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert not torch.equal(next(first.parameters()), next(other.parameters()))


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"model_type": "gpt3"}, "no model_type 'gpt3'; did you mean"),
        ({"n_layer": 2}, "model_type None"),
        ({"model_type": "gpt2", "n_layer": "two"}, "expected int"),
        ({"model_type": "gpt2", "n_embd": 7, "n_head": 2}, "divisible"),
        ({"model_type": "gpt2", "auto_map": {"AutoModel": "a.B"}}, "never run here"),
        ({"model_type": "gpt2", "architectures": ["BertModel"]}, "not a model of type gpt2"),
        ({"model_type": "gpt2", "architectures": ["torch"]}, "does not have"),
    ],
)
def test_a_configuration_that_cannot_be_built_is_refused(
    fields: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        hf.build(fields)


def test_chunks_change_rounding_only() -> None:
    found = hf.layout(model("llama"), batch("llama"))
    whole, parts = (
        Network(model("llama"), batch("llama"), next_token, layout=found, chunk=chunk)
        for chunk in (None, 3)
    )
    for a, b in zip(whole.passed.gradients[0], parts.passed.gradients[0], strict=True):
        assert torch.allclose(a, b, atol=1e-6)


@pytest.mark.parametrize("family", ["llama", "vit"])
def test_batches_of_other_seeds_are_other_inputs(family: str) -> None:
    first, again, other = (hf.batch(model(family), 2, seed=seed) for seed in (5, 5, 6))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


def test_places_in_a_corpus_are_drawn_from_the_seed() -> None:
    class Text:
        """A corpus of which only the seed is read."""

        corpus = "anything"

        def of_text(self, words: int, shape: tuple[int, int], seed: int) -> torch.Tensor:
            return torch.full(shape, seed)

    text: Any = Text()
    assert hf.batch(model("llama"), 2, 3, seed=7, text=text).tolist() == [[7, 7, 7], [7, 7, 7]]


@pytest.mark.parametrize("family", FAMILIES)
def test_counters_on_meta_are_those_of_the_built_model(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(FAMILIES[family]))
    built = lpzero.score(model(family), proxies=counters.names())
    monkeypatch.setattr(hf, "build", None)  # nothing is built
    request = score_verb.Request(hf=(str(config),), proxies=tuple(counters.names()))
    laid_out = score_verb.run(request, Screen(False)).result
    assert [row["score"] for row in laid_out] == [row.to_json()["score"] for row in built]
    assert all(parameter.is_meta for parameter in hf.lay_out(config).parameters())


def test_counters_of_a_network_that_no_memory_holds(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    wide = {"hidden_size": 1 << 16, "intermediate_size": 1 << 20}
    config.write_text(json.dumps(FAMILIES["llama"] | wide))
    request = score_verb.Request(hf=(str(config),), proxies=("parameters",))
    (row,) = score_verb.run(request, Screen(False)).result
    assert row["score"] > 1e11


def test_bfloat16_holds_the_weights_and_scores_nearly_the_same(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(FAMILIES["llama"]))
    half = hf.build(config, dtype="bfloat16")
    assert {parameter.dtype for parameter in half.parameters()} == {torch.bfloat16}
    asked = ("snip", "grad-norm", "ntkt", "synflow", "sum(mul(abs(W), abs(G)))")
    request = score_verb.Request(hf=(str(config),), proxies=asked, dtype="bfloat16")
    found = [row["score"] for row in score_verb.run(request, Screen(False)).result]
    whole = lpzero.score(half.float(), proxies=asked)
    assert found == pytest.approx([row.score for row in whole], rel=0.1)
    assert found[0] != whole["snip"]
