"""A configuration is a stranger's file: nothing is fetched or run, and sizes are counted first."""

from __future__ import annotations

import json
import os
import random
import resource
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from lpzero.cli.main import run
from lpzero.errors import InputError
from spaces import memory
from spaces.errors import DeclarationError, MemoryLimitError
from tests.faults.attempt import BUSY, attempt
from tests.lpzero.hf import audited_builds
from tests.lpzero.hf.families import FAMILIES

pytest.importorskip("transformers", reason="the extra lpzero[hf] is not installed")
from huggingface_hub import constants

from lpzero import hf
from lpzero.hf.configuration import checked_fields, transformers_offline
from lpzero.hf.spaces import make_space

GPT2, VIT, LLAMA = (FAMILIES[name] for name in ("gpt2", "vit", "llama"))
MIXTRAL = {**LLAMA, "model_type": "mixtral"}


def printed(act: Callable[[list[str]], int], folder: Path) -> Any:
    """What the function prints in a process of its own, as JSON."""
    done = attempt([], folder / "said", act=act, limit=BUSY)
    assert done.code == 0, done.err
    return json.loads(done.out)


@pytest.mark.slow
def test_no_type_of_model_asks_the_network_or_opens_other_files(tmp_path: Path) -> None:
    seen = printed(lambda _: audited_builds.main(50), tmp_path)
    assert seen["requests"] == []
    assert seen["opened"] == []
    assert seen["further lines"] == 0
    assert seen["built"] >= 8
    assert seen["backbone refused"] == seen["types"]


@pytest.mark.parametrize(
    "model_type",
    ["upernet", "detr", "dpt", "depth_anything", "vitmatte", "maskformer", "rt_detr"],
)
@pytest.mark.parametrize(
    "fields",
    [
        {"backbone": "name/repo"},
        {"backbone": "resnet50"},
        {"backbone_config": {"model_type": "timm_backbone", "backbone": "resnet50"}},
        {"backbone_config": {"model_type": "resnet", "use_pretrained_backbone": True}},
        {"use_timm_backbone": True},
    ],
    ids=str,
)
def test_a_backbone_elsewhere_is_refused(model_type: str, fields: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="outside the configuration; nothing is downloaded"):
        hf.build({"model_type": model_type, **fields})


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"text_config": {"auto_map": {"AutoModel": "a.B"}}}, "asks for code"),
        ({"text_config": [{"trust_remote_code": True}]}, "asks for code"),
        ({"vision_tower": "openai/clip"}, "outside the configuration"),
        ({"attn_implementation": "kernels-community/flash-attn"}, "outside the configuration"),
        ({"tables": ["../../etc/passwd"]}, "outside the configuration"),
        ({"tables": "~/.ssh/id"}, "outside the configuration"),
        ({"tables": "C:\\secret"}, "outside the configuration"),
        ({"model_type": "timm_wrapper"}, "outside the configuration"),
    ],
)
def test_what_names_code_or_files_is_refused_at_every_level(
    fields: dict[str, Any], reason: str
) -> None:
    with pytest.raises(InputError, match=reason):
        checked_fields({"model_type": "gpt2", **fields}, "it")


def test_what_saved_configurations_have_is_accepted() -> None:
    origin = {"_name_or_path": "name/repo", "task_specific_params": {"a": {"prefix": "a/b"}}}
    labels = {"id2label": {"0": "n/a", "1": "and/or"}, "label2id": {"n/a": 0, "and/or": 1}}
    checked = checked_fields({**GPT2, **origin, **labels, "nested": dict(origin)}, "it")
    assert checked == {**GPT2, **labels, "nested": {}}
    assert hf.build({**GPT2, **origin, **labels}).config.num_labels == 2


def test_the_hub_is_offline_only_while_transformers_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("TRANSFORMERS_OFFLINE", "0")
    with transformers_offline("it"):
        with pytest.raises(InputError, match="cannot be built: broken"), transformers_offline("it"):
            raise RuntimeError("broken")
        assert constants.HF_HUB_OFFLINE
        assert os.environ["HF_HUB_OFFLINE"] == os.environ["TRANSFORMERS_OFFLINE"] == "1"
    assert not constants.HF_HUB_OFFLINE
    assert "HF_HUB_OFFLINE" not in os.environ
    assert os.environ["TRANSFORMERS_OFFLINE"] == "0"


def test_a_folder_of_weights_leads_to_no_other_files(tmp_path: Path) -> None:
    hf.build(FAMILIES["bert"]).save_pretrained(tmp_path)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "../other.safetensors"}}))
    with pytest.raises(InputError, match="not a file of the folder"):
        hf.load(tmp_path)
    index.write_text("[]")
    with pytest.raises(InputError, match="is not a list of weights"):
        hf.load(tmp_path)
    index.unlink()
    (tmp_path / "adapter_config.json").write_text('{"base_model_name_or_path": "name/repo"}')
    with pytest.raises(InputError, match="an adapter of another model"):
        hf.load(tmp_path)


def repeated(n_levels: int) -> Any:
    value: Any = [1]
    for _ in range(n_levels):
        value = [value] * 8
    return value


HOSTILE: list[tuple[dict[str, Any], dict[str, int]]] = [
    ({**GPT2, "n_embd": 20_000, "n_layer": 20}, {}),
    ({**GPT2, "n_layer": 10**9}, {}),
    ({**GPT2, "n_layer": 4_999}, {}),
    ({**GPT2, "n_positions": 10**11}, {}),
    ({**GPT2, "num_labels": 10**9}, {}),
    ({**GPT2, "num_labels": 99_999}, {}),
    ({**VIT, "image_size": 100_000}, {}),
    ({**VIT, "image_size": 8_000, "patch_size": 1}, {}),
    ({**MIXTRAL, "num_local_experts": 10**6}, {}),
    ({**MIXTRAL, "num_local_experts": 19_999, "hidden_size": 8192}, {}),
    ({**LLAMA, "vocab_size": 10**12}, {}),
    ({**LLAMA, "vocab_size": 10**30}, {}),
    ({**LLAMA, "max_position_embeddings": 10**8}, {"length": 10**7}),
    (LLAMA, {"inputs": 10**9}),
    ({"model_type": "gpt_neo", "attention_types": [[["global"], 10**9]]}, {}),
    ({"model_type": "distilbert", "sinusoidal_pos_embds": True, "dim": 10**9}, {}),
    ({"model_type": "swin", "depths": [4_999] * 4}, {}),
    ({**GPT2, "nested": repeated(8)}, {}),
    ({**GPT2, "nested": [[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]}, {}),
]

HOSTILE_SPACES: list[dict[str, Any]] = [
    {"n_embd": {"from": 2, "to": 100_000_000}},
    {"n_embd": {"from": 2, "to": 10**30}},
    {"n_layer": [10**15]},
    {"n_embd": [10**15]},
    {"n_embd": {"from": 20_000, "to": 1_019_999}},
]


def drawn(search: dict[str, Any]) -> None:
    space = make_space("it", {"model_type": "gpt2", "search": search})
    space.sample(random.Random(0))


def measure_hostile_sizes(_: list[str]) -> int:
    """Prints what each is told, the seconds of the processor and the kilobytes that it took."""
    for family in ("distilbert", "swin", "mixtral", "gpt_neo"):
        import_module(f"transformers.models.{family}.modeling_{family}")
    for name in ("gpt2", "vit", "llama"):
        hf.build(FAMILIES[name])
    rows = []
    tasks: list[Callable[[], Any]] = [partial(hf.build, one, 0, **more) for one, more in HOSTILE]
    tasks += [partial(drawn, search) for search in HOSTILE_SPACES]
    for task in tasks:
        before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
        try:
            task()
            line = ""
        except (InputError, DeclarationError, MemoryLimitError) as error:
            line = str(error)
        seconds = time.process_time() - start
        rows.append([line, seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before])
    print(json.dumps(rows))
    return 0


@pytest.mark.slow
def test_hostile_sizes_cost_little_and_are_one_line(tmp_path: Path) -> None:
    rows = printed(measure_hostile_sizes, tmp_path)
    given = [*HOSTILE, *HOSTILE_SPACES]
    for (line, seconds, kilobytes), one in zip(rows, given, strict=True):
        shown = str(one)[:200]
        assert line, shown
        assert "\n" not in line
        assert len(line) < 500
        assert kilobytes < 300 << 10, shown
        assert seconds < 3, shown  # of the processor; below 2 if no other process runs


@pytest.mark.slow
def test_the_limit_is_what_the_user_says(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(memory.VARIABLE, "1MB")
    large = {**GPT2, "n_embd": 512}
    with pytest.raises(
        MemoryLimitError, match=r"more than the 1 MB allowed: .* give --memory more"
    ):
        hf.build(large)
    config = tmp_path / "config.json"
    config.write_text(json.dumps(large))
    command = ["score", "--hf", str(config), "--proxy", "snip", "--device", "cpu"]
    assert run(command) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert run([*command, "--memory", "2GB"]) == 0
    assert os.environ[memory.VARIABLE] == "1MB"
    monkeypatch.setenv(memory.VARIABLE, "lots")
    assert run(command) == 2
    assert "is not an amount of memory" in capsys.readouterr().err


def test_activations_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(memory.VARIABLE, "50MB")
    long = {**LLAMA, "max_position_embeddings": 4096}
    assert hf.build(long, 0, 8, 64) is not None
    with pytest.raises(MemoryLimitError):
        hf.build(long, 0, 8, 4096)  # 8 x 4 heads x 4096 x 4096 probabilities


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({**GPT2, "n_layer": 0}, "has no blocks"),
        ({**GPT2, "n_layer": -1}, "has no blocks"),
        ({**GPT2, "n_embd": -4}, "cannot be built"),
        ({**VIT, "image_size": [1, 2, 3]}, "image_size is [1, 2, 3]"),
        ({**VIT, "image_size": -16}, "image_size is -16"),
        ({**VIT, "num_channels": 0}, "0 channels"),
        ({**GPT2, "vocab_size": -3}, "cannot be built"),
    ],
)
def test_sizes_that_no_model_has_are_one_line_and_code_two(
    fields: dict[str, Any], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(fields))
    assert run(["score", "--hf", str(config), "--proxy", "snip", "--device", "cpu"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert reason in shown.err
    assert "unexpected" not in shown.err
    assert shown.err.count("\n") == 1
