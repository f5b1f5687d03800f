"""Weights as files: safetensors of our own, and checkpoints that others trained.

A safetensors file is a header and numbers; a checkpoint of torch is read with `weights_only`, which
refuses everything but tensors in plain containers. So nothing in a file is executed. What a file
has is matched with a model by name and shape, and what does not match is listed.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor, nn

from lpzero import files
from lpzero.errors import InputError
from spaces import memory
from spaces.untrusted import UntrustedError, check_tensors, open_regular, parse_json

LARGEST = 8 << 30  # bytes
_LENGTH, _LARGEST_HEADER = 8, 16 << 20  # bytes of the length of a header, and of a header
ABOUT = "lpzero"  # the entry of the header that says what the weights are
_SAFETENSORS = ".safetensors"
_CONTAINERS = ("model", "state_dict", "model_ema")  # where public checkpoints keep their weights


@dataclass(frozen=True, slots=True)
class Fit:
    """How a file's tensors match a model: names of the model, and of the file for `unused`."""

    loaded: tuple[str, ...]
    cut: tuple[str, ...]  # larger in the file: the leading slice was taken
    wrong_shape: tuple[str, ...]  # with both shapes
    missing: tuple[str, ...]
    unused: tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        """Whether every parameter of the model came from the file."""
        return not (self.wrong_shape or self.missing)

    def lines(self) -> list[str]:
        """What did not match, one line for each kind."""
        kinds = {
            "cut to the leading slice": self.cut,
            "of another shape": self.wrong_shape,
            "missing in the file": self.missing,
            "in the file and not used": self.unused,
        }
        return [f"{len(names)} {kind}: {_some(names)}" for kind, names in kinds.items() if names]


def to_bytes(tensors: Mapping[str, Tensor], about: Mapping[str, str] | None = None) -> bytes:
    """The tensors as a safetensors file; the same bytes for the same tensors."""
    from safetensors.torch import save

    plain = {name: tensor.detach().contiguous().clone() for name, tensor in tensors.items()}
    # One entry: the library writes several in an order that changes from call to call.
    told = {ABOUT: json.dumps(dict(about), sort_keys=True)} if about else None
    data: bytes = save(plain, told)
    return data


def write(path: Path, tensors: Mapping[str, Tensor], about: Mapping[str, str]) -> None:
    """Write the tensors as a safetensors file, atomically."""
    files.write_bytes(path, to_bytes(tensors, about))


def read(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file or of a torch checkpoint, by name."""
    try:
        with open_regular(path, LARGEST) as file:
            n_bytes = os.fstat(file.fileno()).st_size
            if path.suffix == _SAFETENSORS:
                _check_header(path, file, n_bytes)
            else:
                check_tensors(file, path)
            memory.check(2 * n_bytes, f"reading {path}")  # the file, and the tensors in it
            data = file.read(n_bytes)
    except FileNotFoundError:
        raise InputError(f"{path} does not exist: name a file of weights") from None
    except UntrustedError as error:
        raise InputError(str(error)) from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}") from None
    return _read_safetensors(path, data) if path.suffix == _SAFETENSORS else _read_torch(path, data)


def _check_header(path: Path, file: BinaryIO, n_bytes: int) -> None:
    """Raise an error unless the file begins with a header of a size that weights have."""
    length = int.from_bytes(file.read(_LENGTH), "little")
    if not 0 < length <= min(_LARGEST_HEADER, n_bytes - _LENGTH):
        raise InputError(f"{path} is not a whole safetensors file: a header of {length:,} bytes")
    parse_json(file.read(length), path)
    file.seek(0)


def _read_safetensors(path: Path, data: bytes) -> dict[str, Tensor]:
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        tensors: dict[str, Tensor] = load(data)
    except (SafetensorError, ValueError, KeyError, OverflowError) as error:
        short = str(error).splitlines()[0][:200]
        raise InputError(f"{path} is not a whole safetensors file: {short}") from None
    return tensors


def _read_torch(path: Path, data: bytes) -> dict[str, Tensor]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of unusual pickles, which one line answers
            content: Any = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise InputError(
            f"{path} has more than tensors in plain containers, or is broken: it was not loaded and"
            " nothing in it was executed"
        ) from None
    except Exception:  # torch's reader raises whatever a foreign file makes of its opcodes
        raise InputError(f"{path} is not a whole torch checkpoint") from None
    for name in _CONTAINERS:
        if isinstance(content, Mapping) and isinstance(content.get(name), Mapping):
            content = content[name]
            break
    if not isinstance(content, Mapping):
        raise InputError(f"{path} has no named tensors")
    tensors = {str(name): tensor for name, tensor in content.items() if isinstance(tensor, Tensor)}
    if not tensors:
        raise InputError(f"{path} has no named tensors")
    return tensors


def load_into(model: nn.Module, tensors: Mapping[str, Tensor]) -> Fit:
    """Copy what fits into the model; names of AutoFormer's public code are translated."""
    given = dict(tensors)
    if any(name.startswith("patch_embed_super") for name in given):
        given = from_autoformer(given)
    loaded, cut, wrong, missing = [], [], [], []
    for name, parameter in model.named_parameters():
        tensor = given.pop(name, None)
        if tensor is None:
            missing.append(name)
        elif tensor.shape == parameter.shape:
            _copy(parameter, tensor)
            loaded.append(name)
        elif tensor.ndim == parameter.ndim and all(
            a >= b for a, b in zip(tensor.shape, parameter.shape, strict=True)
        ):
            _copy(parameter, tensor[tuple(slice(size) for size in parameter.shape)])
            cut.append(name)
        else:
            wrong.append(f"{name} ({_shape(tensor)} in the file, {_shape(parameter)} here)")
    return Fit(*map(tuple, (loaded, cut, wrong, missing, sorted(given))))


def _copy(parameter: Tensor, tensor: Tensor) -> None:
    with torch.no_grad():
        parameter.copy_(tensor)


_RENAMED = (
    (r"^patch_embed_super\.proj\.", "embedding.projection."),
    (r"^cls_token$", "embedding.class_token"),
    (r"^pos_embed$", "embedding.position"),
    (r"\.attn\.proj\.", ".attention.output."),
    (r"\.attn\.rel_pos_embed_k\.embeddings_table_v$", ".attention.key_positions.vertical"),
    (r"\.attn\.rel_pos_embed_k\.embeddings_table_h$", ".attention.key_positions.horizontal"),
    (r"\.attn\.rel_pos_embed_v\.embeddings_table_v$", ".attention.value_positions.vertical"),
    (r"\.attn\.rel_pos_embed_v\.embeddings_table_h$", ".attention.value_positions.horizontal"),
    (r"\.attn_layer_norm\.", ".attention_norm."),
    (r"\.ffn_layer_norm\.", ".feed_forward_norm."),
    (r"\.fc1\.", ".feed_forward.input."),
    (r"\.fc2\.", ".feed_forward.output."),
)


def from_autoformer(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Tensors of AutoFormer's public code (and PreNAS's, which has its names) under our names.

    It keeps queries, keys and values in one matrix whose rows take turns, and their biases one
    after another.
    """
    translated: dict[str, Tensor] = {}
    for name, tensor in tensors.items():
        fused = re.match(r"^(blocks\.\d+)\.attn\.qkv\.(weight|bias)$", name)
        if fused:
            block, kind = fused.groups()
            thirds = (
                [tensor[start::3] for start in range(3)]
                if kind == "weight"
                else list(tensor.chunk(3))
            )
            for part, third in zip(("query", "key", "value"), thirds, strict=True):
                translated[f"{block}.attention.{part}.{kind}"] = third
            continue
        for pattern, ours in _RENAMED:
            name = re.sub(pattern, ours, name)
        translated[name] = tensor
    return translated


def _shape(tensor: Tensor) -> str:
    return "x".join(map(str, tensor.shape)) or "a number"


def _some(names: tuple[str, ...], n: int = 6) -> str:
    more = f" and {len(names) - n} more" if len(names) > n else ""
    return ", ".join(names[:n]) + more
