"""A space of Hugging Face configurations, and searching it."""

from __future__ import annotations

import json
import pickle
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import lpzero
from lpzero.cli.main import run
from lpzero.errors import InputError
from lpzero.proxies import Context, Measurements, find
from lpzero.sketches.sketch import SketchOptions, address
from spaces.errors import ArchitectureError, DeclarationError, MemoryLimitError

pytest.importorskip("transformers", reason="the extra lpzero[hf] is not installed")
from lpzero import hf
from lpzero.hf.spaces import HfSpace, make_space

GIVEN: dict[str, Any] = {
    "model_type": "gpt2",
    "fields": {"vocab_size": 40, "n_positions": 16},
    "search": {"n_layer": [1, 2], "n_embd": {"from": 12, "to": 24, "step": 4}, "n_head": [2, 3]},
    "batch": [3, 8],
}


VIT: dict[str, Any] = {"model_type": "vit", "search": {"num_hidden_layers": [1, 2]}}
REPEATED: list[Any] = [1]
for _ in range(12):
    REPEATED = [REPEATED] * 9


def made(**other: Any) -> HfSpace:
    return make_space("tiny", {**GIVEN, **other})


def test_only_what_can_be_built_is_drawn() -> None:
    space, rng = made(), random.Random(0)
    drawn = [space.sample(rng) for _ in range(40)]
    drawn += [space.mutate(arch, 0.5, rng) for arch in drawn[:20]]
    drawn += [space.crossover(a, b, rng) for a, b in zip(drawn[:20], drawn[20:40], strict=True)]
    assert {arch.n_embd for arch in drawn} == {12, 16, 20, 24}
    assert all(arch.n_embd % arch.n_head == 0 for arch in drawn)
    assert {arch.n_head for arch in drawn} == {2, 3}
    refused = {"n_layer": 1, "n_embd": 16, "n_head": 3}
    with pytest.raises(ArchitectureError, match="divisible"):
        space.validate(space.from_json(refused))


def test_heads_that_key_value_heads_do_not_divide_are_drawn_again() -> None:
    fields = {"vocab_size": 40, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1}
    search = {"num_attention_heads": [2, 4], "num_key_value_heads": [1, 2, 4]}
    given = {"model_type": "llama", "fields": fields, "search": search, "batch": [2, 4]}
    space = make_space("grouped", given)
    drawn = {tuple(space.to_json(space.sample(random.Random(i))).values()) for i in range(40)}
    assert drawn == {(2, 1), (2, 2), (4, 1), (4, 2), (4, 4)}
    with pytest.raises(ArchitectureError, match="2 is not divisible by num_key_value_heads = 4"):
        space.validate(space.from_json(dict(zip(search, (2, 4), strict=True))))


@pytest.mark.slow
def test_sizes_are_those_of_the_model() -> None:
    space = made()
    arch = space.from_json({"n_layer": 2, "n_embd": 12, "n_head": 3})
    model = space.build(arch, 5)
    assert space.parameters(arch) == sum(p.numel() for p in model.parameters())
    assert (space.depth(arch), space.width(arch)) == (2, 12)
    again = pickle.loads(pickle.dumps(space)).build(arch, 5)  # noqa: S301 (as workers get it)
    pairs = zip(model.parameters(), again.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert space.absent_statistics == frozenset()


def test_sketches_belong_to_the_fields_that_are_fixed() -> None:
    space, other = made(), made(fields={**GIVEN["fields"], "activation_function": "relu"})
    arch = space.sample(random.Random(0))
    assert space != other
    assert address(space, arch, SketchOptions()) != address(other, arch, SketchOptions())


@pytest.mark.slow
def test_formulas_and_proxies_score_it_as_lpzero_score_does(tmp_path: Path) -> None:
    import lpzero

    space = made()
    arch = space.from_json({"n_layer": 2, "n_embd": 12, "n_head": 2})
    asked = ["snip", "fisher", "softmax-confidence", "ntk-condition", "mean(sub(abs(H), abs(S)))"]
    scores = lpzero.score(space.build(arch, 0), space.batch(0), asked)
    measurements = Measurements(Context(folder=tmp_path))
    for text in asked:
        (ranked,) = find(text).score(space, [arch], measurements)
        assert scores[find(text).name] == pytest.approx(ranked, rel=1e-5), text


@pytest.mark.slow
def test_a_space_is_searched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "tiny-space.yaml"
    file.write_text(json.dumps(GIVEN))  # JSON is YAML
    command = ["search", "--hf", str(file), "--loop", "etas", "--proxy", "snip", "--samples", "6"]
    command += ["--mutants", "3", "--iterations", "1", "--quiet", "--device", "cpu"]
    command += ["--cache", str(tmp_path / "cache"), "--format", "json"]
    assert run(command) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["scored"] >= 6
    space = hf.read_space(file)
    best = space.from_json(result["best"]["arch"])
    (score,) = find("snip").score(space, [best], Measurements(Context(folder=tmp_path / "new")))
    assert score == pytest.approx(result["best"]["score"])


@pytest.mark.parametrize(
    ("other", "reason"),
    [
        ({"model_type": "gtp2"}, "did you mean gpt2"),
        ({"search": {}}, "expected fields and search"),
        ({"search": {"n_layers": [1]}}, "has no n_layers"),
        ({"search": {"n_layer": 2}}, "expected a list or a range"),
        ({"search": {"n_layer": {"from": 3, "to": 1}}}, "from, to and step"),
        ({"search": {"n_layer": {"from": 1, "to": 2.5}}}, "from, to and step"),
        ({"batch": "all"}, "batch is 'all'"),
        ({"fields": {"auto_map": {"AutoModel": "a.B"}}}, "asks for code"),
        ({"fields": {"tables": "name/repo"}}, "outside the configuration"),
        ({"fields": {"tables": REPEATED}}, "more than 200,000 values"),
        ({"search": {"n_layer": REPEATED}}, "more than 200,000 values"),
        ({"search": {"n_layer": [1, REPEATED]}}, "expected texts or finite numbers"),
        ({"search": {"n_embd": {"from": 2, "to": 10**8}}}, "at most 1,000,000 values"),
        ({"search": {"n_embd": {"from": 2, "to": 10**30}}}, "at most 1,000,000 values"),
        ({"search": {"n_embd": {"from": 2, "to": 8, "step": 0}}}, "from, to and step"),
        ({"search": {"n_layer": [10**15]}}, "expected at most 5,000"),
        ({"batch": [10**9]}, "batch is"),
        ({"batch": [-3, 4]}, "batch is"),
        ({**VIT, "fields": {"image_size": [1, 2, 3]}}, "image_size is"),
        ({"fields": {"vocab_size": -3}}, "vocab_size is -3"),
    ],
)
def test_a_space_that_is_none_is_refused(other: dict[str, Any], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        made(**other)


def test_a_network_that_does_not_fit_ends_the_search_on_every_machine_alike() -> None:
    space = made(search={"n_embd": [12, 3 * 10**6], "n_head": [2]})
    rng = random.Random(0)
    with pytest.raises(MemoryLimitError, match="network of tiny needs about"):
        [space.sample(rng) for _ in range(20)]
    assert space.draw_batch((2, 3), 0).shape == (2, 3)
    with pytest.raises(MemoryLimitError, match="network of tiny needs about"):
        space.build(space.from_json({"n_embd": 3 * 10**6, "n_head": 2}), 0)
    with pytest.raises(MemoryLimitError):
        made().draw_batch((10**9, 16), 0)
    with pytest.raises(MemoryLimitError, match="a batch of 1,000,000,000 x 1,000,000,000"):
        made(batch=[10**9, 10**9])


@pytest.mark.slow
@pytest.mark.parametrize("levels", [8, 16])
def test_an_alias_bomb_is_one_line(
    levels: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "bomb.yaml"
    names = "abcdefghijklmnopq"[: levels + 1]
    lines = [f"  {names[0]}: &{names[0]} [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    for before, name in pairwise(names):
        lines.append(f"  {name}: &{name} [{', '.join([f'*{before}'] * 9)}]")
    file.write_text("\n".join(["model_type: gpt2", "fields:", *lines, "search: {n_layer: [1, 2]}"]))
    assert run(["search", "--hf", str(file), "--loop", "random", "--proxy", "snip"]) == 2
    shown = capsys.readouterr().err
    assert "YAML with aliases" in shown
    assert shown.count("\n") == 1


def test_a_file_that_is_no_space_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "broken.yaml"
    for text in ("{", "- 1", "model_type: gpt2\nlayers: 3"):
        file.write_text(text)
        assert run(["search", "--hf", str(file), "--loop", "random", "--proxy", "snip"]) == 2
        shown = capsys.readouterr().err
        assert shown.startswith("error: ")
        assert shown.count("\n") == 1


def test_a_configuration_and_choices_are_a_space_in_one_call() -> None:
    from transformers import LlamaConfig

    def fits(c: Any) -> bool:
        return bool(c.num_attention_heads % c.num_key_value_heads == 0 and c.vocab_size == 40)

    space = hf.space(
        LlamaConfig(vocab_size=40, max_position_embeddings=16, intermediate_size=8),
        num_hidden_layers=[1, 2],
        hidden_size=[12, 24],
        num_attention_heads=[2, 3],
        num_key_value_heads=[1, 2],
        where=fits,
    )
    assert (space.choices.cardinality(), space.cardinality()) == (16, 12)
    rng = random.Random(0)
    drawn = [space.sample(rng) for _ in range(20)]
    assert all(fits(space.shown_to_where(arch)) for arch in drawn)
    model = space.build(drawn[0], 0)
    assert model.config.vocab_size == 40
    assert space.parameters(drawn[0]) == sum(p.numel() for p in model.parameters())
    refused = {"hidden_size": 12, "num_attention_heads": 3, "num_key_value_heads": 2}
    with pytest.raises(ArchitectureError, match=r"where .* refuses .*num_key_value_heads=2"):
        space.from_json({"num_hidden_layers": 1, **refused})
    with pytest.raises(InputError, match=r"an? int is no configuration"):
        hf.space(7, n_layer=[1])


def test_a_file_states_its_constraint_as_an_expression() -> None:
    space = made(where="n_embd == 4 * n_head * n_layer or vocab_size < n_layer")
    assert space.cardinality() == 3
    assert space.identity()["where"].startswith("n_embd == 4")
    with pytest.raises(InputError, match=r"names n_heads, which is no choice"):
        made(where="n_embd % n_heads == 0")
    with pytest.raises(InputError, match=r"Call in"):
        made(where="__import__('os').system('true')")
    with pytest.raises(DeclarationError, match=r"none of 1,000 draws .* refuses"):
        made(where="n_layer > 7").sample(random.Random(0))


def test_the_first_that_is_within_the_bounds_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    from lpzero.search import constraints

    space, counted = made(), []
    plain = constraints.count
    monkeypatch.setattr(constraints, "count", lambda *given: counted.append(given) or plain(*given))
    bounds = constraints.Constraints({"parameters": (None, 1e9)})
    bounds.check(space, lambda arch: 0.0, None)
    assert len(counted) == 1


_GROUPED = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "max_position_embeddings": 32,
}
# Experts, a state space, an encoder of a decoder: fixed fields, choices, a formula that is refused.
OTHER_FAMILIES: dict[str, tuple[dict[str, Any], dict[str, Any], str | None]] = {
    "mixtral": (_GROUPED, {"num_local_experts": [2, 4]}, None),
    "mamba": (
        {"vocab_size": 40, "hidden_size": 16, "state_size": 4},
        {"num_hidden_layers": [1, 2]},
        "sum(l1(H))",
    ),
    "t5": (
        {"vocab_size": 40, "d_model": 16, "num_heads": 2, "d_kv": 8, "d_ff": 32},
        {"num_layers": [1, 2]},
        None,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("family", OTHER_FAMILIES)
def test_experts_state_spaces_and_encoders_are_scored_or_refused_in_a_line(family: str) -> None:
    fields, search, refused = OTHER_FAMILIES[family]
    given = {"model_type": family, "fields": fields, "search": search, "batch": [2, 6]}
    space = make_space(family, given)
    archs = [space.sample(random.Random(seed)) for seed in range(2)]
    measurements = Measurements(Context())
    for text in ("synflow", "snip", "sum(mul(abs(G), abs(W)))", "sum(l1(A))"):
        proxy = find(text)
        assert proxy.applies_to(space), text
        assert np.isfinite(proxy.score(space, archs, measurements)).all(), text
    assert refused is None or not find(refused).applies_to(space)
    scores = lpzero.score(space.build(archs[0], 0), space.batch(), ["synflow", "v-pca"])
    assert np.isfinite(scores["synflow"])
    reasons = scores.refused.values()
    assert not [reason for reason in reasons if "Error" in reason or "\n" in reason]
