"""H, W and G as the authors' code takes them."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import spaces
from lpzero.cli.main import run
from lpzero.errors import InputError
from lpzero.export import json_form
from lpzero.export.fields import Fields
from lpzero.export.record import Exported, Provenance
from lpzero.proxies import Context, Measurements
from lpzero.proxies.formula import FormulaProxy
from lpzero.runs.run import open_run
from lpzero.sketches.builder import build_sketch
from lpzero.sketches.sketch import SketchOptions, address
from lpzero.statistics import StatisticsError
from lpzero.statistics.extraction import extract
from primitives.parser import parse
from spaces.flexibert import FlexiBertArch, FlexiBertSpace, Layer
from spaces.tables.table import make_table

SPACE = FlexiBertSpace(
    name="tiny", hidden=(8,), n_layers=(1, 6), ffn=(6,), vocabulary=20, embedding=8,
    batch_shape=(2, 5),
)  # fmt: skip
OPERATIONS = ("sdp", "wma", "dft", "dct", "dsc5", "dsc9")
ARCH = FlexiBertArch(8, tuple(Layer(operation, 2, 6, 1) for operation in OPERATIONS))


def seen_by_the_authors(model: nn.Module, tokens: torch.Tensor) -> list[torch.Tensor]:
    """The first of query and input that a block has, as its module returns it."""
    found: list[torch.Tensor] = []
    for block in model.blocks:  # type: ignore[union-attr]
        named = dict(block.mixing.named_modules())
        module = next(m for n, m in named.items() if n.endswith("query") or n == "input")
        module.register_forward_hook(lambda _, __, output: found.append(output.detach()))
    model(tokens)
    return found


def test_h_is_the_query_or_the_input_of_a_transform_and_w_the_linears_of_the_operation() -> None:
    model, tokens = SPACE.build(ARCH, 0), SPACE.batch(0)
    released = extract(model, tokens, definitions="released").blocks
    ours = extract(model, tokens).blocks
    expected = seen_by_the_authors(model, tokens)
    for position, block in enumerate(model.blocks):
        [found] = released[position]["H"]
        assert torch.equal(found.values, expected[position].flatten(0, 1))
        linears = [
            module.weight
            for name, module in block.mixing.named_modules()  # type: ignore[union-attr,operator]
            if isinstance(module, nn.Linear) and not name.startswith("output")
        ]
        W, G = (released[position][name] for name in "WG")
        assert len(W) == len(G) == len(linears)
        assert all(torch.equal(one.values, w) for one, w in zip(W, linears, strict=True))
        for name in ("A", "J", "S"):
            pairs = zip(released[position][name], ours[position][name], strict=True)
            assert all(torch.equal(a.values, b.values) for a, b in pairs)
        assert len(W) < len(ours[position]["W"])
    assert [len(block["W"]) for block in released] == [3, 4, 1, 1, 5, 5]


def test_the_gradients_stay_aligned_with_their_weights() -> None:
    model, tokens = SPACE.build(ARCH, 0), SPACE.batch(0)
    released = extract(model, tokens, definitions="released").blocks
    ours = extract(model, tokens).blocks
    for block, usual in zip(released, ours, strict=True):
        whole = list(zip(usual["W"], usual["G"], strict=True))
        for weight, gradient in zip(block["W"], block["G"], strict=True):
            [other] = [g for w, g in whole if torch.equal(w.values, weight.values)]
            assert torch.equal(other.values, gradient.values)


def test_a_decoder_gives_its_queries_and_the_projection_of_all_three() -> None:
    space = spaces.get("nano-gpt2")
    arch = space.sample(random.Random(0))
    block = extract(space.build(arch, 0), space.batch(0), definitions="released").blocks[0]
    model = space.build(arch, 0)
    [weight] = block["W"]
    assert torch.equal(weight.values, model.blocks[0].attention.c_attn.weight)
    assert len(block["H"]) == 1


def test_cells_have_no_operation_that_mixes_tokens() -> None:
    space = spaces.get("nano-rnn")
    arch = space.sample(random.Random(0))
    with pytest.raises(StatisticsError, match="--definitions ours"):
        extract(space.build(arch, 0), space.batch(0), definitions="released")


def test_definitions_are_in_the_address_and_ours_leave_it_as_it_was() -> None:
    usual, released = SketchOptions(), SketchOptions(definitions="released")
    assert "definitions" not in usual.to_json()
    assert address(SPACE, ARCH, usual) != address(SPACE, ARCH, released)
    shapes = build_sketch(SPACE, ARCH, released).header["blocks"][0]
    assert (len(shapes["H"]), len(shapes["W"])) == (1, 3)
    with pytest.raises(InputError, match="ours, released"):
        SketchOptions(definitions="theirs")


@pytest.mark.slow
def test_an_exported_formula_keeps_its_definitions_on_sketches_and_on_networks(
    tmp_path: Path,
) -> None:
    options = SketchOptions(definitions="released")
    one = Exported("mine", parse("sum(mean(square(W)))"), Provenance("file"), options)
    value = json.loads(json.dumps(json_form.to_value(one)))
    assert json_form.options(Fields(value["sketch"], "here")) == options
    proxy = FormulaProxy("mine", one.formula, options=options)
    measurements = Measurements(Context(folder=tmp_path))
    [kept] = proxy.score(SPACE, [ARCH], measurements)
    [run] = proxy.on_networks().score(SPACE, [ARCH], measurements)
    plain = FormulaProxy("mine", one.formula)
    [ours] = plain.score(SPACE, [ARCH], measurements)
    asked = Measurements(Context(folder=tmp_path, definitions="released"))
    assert kept == pytest.approx(run, rel=1e-5)
    assert plain.score(SPACE, [ARCH], asked) == [kept]
    assert abs(kept - ours) > 1e-3 * abs(ours)


@pytest.fixture
def small_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table of 24 architectures under the name nano-gpt2."""
    space = spaces.get("nano-gpt2")
    rows = [(str(i), space.sample(random.Random(i)), float(i)) for i in range(24)]
    table = make_table("nano-gpt2", space, rows, "made up", "none")
    for place in ("load", "load_any"):
        monkeypatch.setattr(f"spaces.tables.{place}", lambda *_, **__: table)
    monkeypatch.setattr("lpzero.discover.discovery.load", lambda *_, **__: table)


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert run([*arguments, "--format", "json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
def test_verbs_take_definitions_and_share_the_sketches(
    small_table: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ("--cache", str(tmp_path / "cache"), "--definitions", "released")
    assert command(capsys, "stats", "nano-gpt2", *asked)["built"] == 24
    formula = "sum(mean(square(W)))"
    [released] = command(capsys, "rank", "nano-gpt2", "--proxy", formula, *asked)
    [ours] = command(capsys, "rank", "nano-gpt2", "--proxy", formula, *asked[:2])
    assert released["n"] == ours["n"] == 24
    assert command(capsys, "stats", "nano-gpt2", *asked)["present"] == 24
    out = str(tmp_path / "run")
    small = ("--generations", "1", "--population", "4", "--terms", "1", "--choose", "train")
    command(capsys, "discover", "nano-gpt2", "--out", out, *small, "--permutations", "0", *asked)
    assert json.loads(Path(out, "config.json").read_text())["request"]["sketch"] == {
        **SketchOptions(definitions="released").to_json()
    }
    words = open_run(Path(out)).command
    assert words is not None
    assert words[words.index("--definitions") + 1] == "released"
