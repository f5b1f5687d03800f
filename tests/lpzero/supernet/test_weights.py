"""Files of weights: what fits, what is listed, and files that must not harm."""

from __future__ import annotations

import json
import os
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

import spaces
from lpzero.errors import InputError
from lpzero.supernet import load_network, weights
from spaces.autoformer import AutoFormerSpace
from spaces.errors import MemoryLimitError

SPACE = AutoFormerSpace(
    name="tiny-vision",
    hidden=(12, 16),
    n_layers=(1, 2),
    heads=(1, 2),
    ratios=(1.5, 2.0),
    image=12,
    patch=4,
    classes=5,
    head_width=6,
)


def as_released(model: Any) -> dict[str, torch.Tensor]:
    """The model's parameters as AutoFormer's public code names and stores them."""
    found = {}
    for name, parameter in model.named_parameters():
        for theirs, ours in (
            ("patch_embed_super.proj.", "embedding.projection."),
            ("cls_token", "embedding.class_token"),
            ("pos_embed", "embedding.position"),
            (".attn.proj.", ".attention.output."),
            (".attn.rel_pos_embed_k.embeddings_table_v", ".attention.key_positions.vertical"),
            (".attn.rel_pos_embed_k.embeddings_table_h", ".attention.key_positions.horizontal"),
            (".attn.rel_pos_embed_v.embeddings_table_v", ".attention.value_positions.vertical"),
            (".attn.rel_pos_embed_v.embeddings_table_h", ".attention.value_positions.horizontal"),
            (".attn_layer_norm.", ".attention_norm."),
            (".ffn_layer_norm.", ".feed_forward_norm."),
            (".fc1.", ".feed_forward.input."),
            (".fc2.", ".feed_forward.output."),
        ):
            name = name.replace(ours, theirs)
        found[name] = parameter.detach().clone()
    for index in range(len(model.blocks)):
        thirds = [f"blocks.{index}.attention.{part}." for part in ("query", "key", "value")]
        matrices = [found.pop(f"{third}weight") for third in thirds]
        fused = torch.stack(matrices, dim=1).flatten(0, 1)  # rows take turns
        found[f"blocks.{index}.attn.qkv.weight"] = fused
        biases = [found.pop(f"{third}bias") for third in thirds]
        found[f"blocks.{index}.attn.qkv.bias"] = torch.cat(biases)
    return found


def random_model(seed: int) -> Any:
    model = SPACE.build(SPACE.weight_sharing().largest(), 0)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return model


def test_a_released_checkpoint_loads_by_name(tmp_path: Path) -> None:
    source, target = random_model(1), random_model(2)
    path = tmp_path / "supernet.pth"
    torch.save({"model": as_released(source), "epoch": 500}, path)
    fit = weights.load_into(target, weights.read(path))
    assert fit.is_complete
    assert not fit.lines()
    assert len(fit.loaded) == len(list(target.parameters()))
    assert all(
        torch.equal(a, b) for a, b in zip(source.parameters(), target.parameters(), strict=True)
    )


def test_larger_tensors_are_cut_and_others_are_listed(tmp_path: Path) -> None:
    target = random_model(0)
    kept = target.norm.weight.detach().clone()
    tensors = {name: p.detach().clone() for name, p in random_model(1).named_parameters()}
    tensors["head.weight"] = torch.ones(7, 20)
    tensors["norm.weight"] = torch.ones(3)
    del tensors["norm.bias"]
    tensors["teacher.weight"] = torch.ones(2)
    weights.write(tmp_path / "w.safetensors", tensors, {"space": "x"})
    fit = weights.load_into(target, weights.read(tmp_path / "w.safetensors"))
    assert not fit.is_complete
    assert fit.cut == ("head.weight",)
    assert torch.equal(target.head.weight, torch.ones(5, 16))
    assert fit.wrong_shape == ("norm.weight (3 in the file, 16 here)",)
    assert torch.equal(target.norm.weight, kept)
    assert fit.missing == ("norm.bias",)
    assert fit.unused == ("teacher.weight",)
    assert fit.lines()[-1] == "1 in the file and not used: teacher.weight"


class Payload:
    """Its pickle runs a command when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.path}",)


def test_a_pickle_with_a_payload_is_refused_and_nothing_runs(tmp_path: Path) -> None:
    mark, path = tmp_path / "executed", tmp_path / "evil.pth"
    torch.save({"model": {"w": torch.ones(2)}, "args": Payload(mark)}, path)
    with pytest.raises(InputError, match="nothing in it was executed"):
        weights.read(path)
    path.write_bytes(pickle.dumps(Payload(mark)))
    with pytest.raises(InputError, match=r"evil\.pth"):
        weights.read(path)
    assert not mark.exists()


@pytest.mark.parametrize("name", ["w.safetensors", "w.pth"])
@pytest.mark.parametrize("data", [b"root:x:0:0:root\n" * 40, b"0" * 99, bytes(range(256)) * 9])
def test_a_file_of_another_kind_is_one_line(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(InputError):
        weights.read(tmp_path / name)


def test_large_files_are_refused_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "w.safetensors"
    with path.open("wb") as file:
        file.truncate(4 << 30)  # sparse: nothing says how long the header is
    with pytest.raises(InputError, match="a header of 0 bytes"):
        weights.read(path)
    weights.write(path, {"w": torch.ones(50, 50)}, {})
    monkeypatch.setenv("LPZERO_MEMORY", "10000B")
    with pytest.raises(MemoryLimitError, match="reading"):
        weights.read(path)


@pytest.mark.parametrize("name", ["w.safetensors", "w.pth"])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.5, 0.99])
def test_a_truncated_file_is_one_line(tmp_path: Path, name: str, share: float) -> None:
    path, tensors = tmp_path / name, {"w": torch.ones(50, 50)}
    if path.suffix == ".pth":
        torch.save(tensors, path)
    else:
        weights.write(path, tensors, {})
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(InputError, match=name) as caught:
        weights.read(path)
    assert "\n" not in str(caught.value)


def test_files_without_named_tensors_are_refused(tmp_path: Path) -> None:
    torch.save([torch.ones(2)], tmp_path / "list.pth")
    with pytest.raises(InputError, match="has no named tensors"):
        weights.read(tmp_path / "list.pth")
    with pytest.raises(InputError, match="does not exist"):
        weights.read(tmp_path / "none.pth")
    os.mkfifo(tmp_path / "pipe.safetensors")
    with pytest.raises(InputError, match="not a regular file"):
        weights.read(tmp_path / "pipe.safetensors")


def test_a_network_file_must_be_whole(tmp_path: Path) -> None:
    space = spaces.get("nano-autoformer")
    arch = space.weight_sharing().smallest()
    model = space.build(arch, 0)
    about = {"space": space.name, "arch": json.dumps(space.to_json(arch))}
    path, tensors = tmp_path / "net.safetensors", dict(model.named_parameters())
    weights.write(path, tensors, about)
    assert torch.equal(load_network(path).head.weight, model.head.weight)
    weights.write(path, {n: p for n, p in tensors.items() if n != "norm.bias"}, about)
    with pytest.raises(InputError, match=r"lacks norm.bias"):
        load_network(path)
    weights.write(path, tensors | {"norm.bias": torch.ones(3)}, about)
    with pytest.raises(InputError, match=r"size mismatch for norm.bias"):
        load_network(path)
    weights.write(path, tensors, {"space": "nowhere"})
    with pytest.raises(InputError, match="names no space and architecture"):
        load_network(path)
