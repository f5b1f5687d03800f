"""Isolation of an extraction: its device, a single thread, and a model that is left unchanged.

Attention shows its probabilities, in models that would hide them in a fused kernel. Two kinds are
known without importing their libraries: models of Hugging Face's transformers, whose configuration
names the implementation of attention, and `nn.MultiheadAttention`, which returns probabilities if
it is asked to.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from multiprocessing import current_process
from typing import Any

import torch
from torch import Tensor, nn

from lpzero.statistics import StatisticsError

_INSIDE: list[int] = []
_INSIDE_LOCK = threading.Lock()


def resolve_device(name: str) -> torch.device:
    """The torch device; "auto" is the accelerator if there is one, else cpu.

    Apple's, mps, is taken only by name: it has no float64, in which many proxies add up. Of several
    devices the worker processes of a run each take one in turn.
    """
    if name == "cpu":
        return torch.device(name)
    found = torch.accelerator.current_accelerator(check_available=True)
    if name == "auto":
        if found is None or found.type == "mps":
            return torch.device("cpu")
        name = found.type
    device, n_devices = torch.device(name), torch.accelerator.device_count()
    if found is None or device.type != found.type or (device.index or 0) >= n_devices:
        present = f"{n_devices} of type {found.type}" if found is not None else "no GPU"
        raise StatisticsError(
            f"device {name} is not available: torch finds {present}; use cpu or auto"
        )
    worker = re.search(r"\d+$", current_process().name)
    if ":" in name or worker is None:
        return device
    return torch.device(device.type, int(worker[0]) % n_devices)


def synchronise(device: torch.device) -> None:
    """Wait until the device has done what it was given."""
    if device.type != "cpu":
        torch.accelerator.synchronize(device)


def capability(device: str = "cpu") -> str:
    """The vector instructions that torch uses on this processor, such as AVX2; else CUDA etc."""
    kind = resolve_device(device).type
    return torch.backends.cpu.get_cpu_capability() if kind == "cpu" else kind.upper()


@contextmanager
def single_thread() -> Iterator[None]:
    """A context with a single torch thread, because sums over several threads round differently.

    The setting is global: if several Python threads use it, the last one to leave restores it.
    """
    with _INSIDE_LOCK:
        _INSIDE.append(1 if _INSIDE else torch.get_num_threads())
    torch.set_num_threads(1)
    try:
        yield
    finally:
        with _INSIDE_LOCK:
            if len(_INSIDE) == 1:
                torch.set_num_threads(_INSIDE[0])
                _INSIDE.clear()
            else:
                _INSIDE.pop()


@contextmanager
def untouched(model: nn.Module, weights: Sequence[Tensor], device: torch.device) -> Iterator[None]:
    """Eval mode and gradients for `weights` inside; every flag and random state as before after.

    Attention that a fused kernel would hide is computed step by step inside (`open_attention`).
    """
    training = [(module, module.training) for module in model.modules()]
    frozen = [weight for weight in weights if not weight.requires_grad]
    others = [] if device.type in ("cpu", "meta") else [device]
    try:
        model.eval()
        for weight in frozen:
            weight.requires_grad_(True)
        with (
            open_attention(model),
            torch.random.fork_rng(others, device_type=device.type if others else "cuda"),
            torch.inference_mode(False),
            torch.enable_grad(),
            _without_autocast(device),
        ):
            yield
    finally:
        for weight in frozen:
            weight.requires_grad_(False)
        for module, flag in training:
            module.training = flag


def _without_autocast(device: torch.device) -> AbstractContextManager[Any]:
    if not torch.amp.is_autocast_available(device.type):  # as on meta
        return nullcontext()
    return torch.autocast(device.type, enabled=False)


_EAGER = "eager"


@contextmanager
def open_attention(model: nn.Module) -> Iterator[None]:
    """A context in which the model's attention modules return their probabilities.

    Nothing is cached between calls either, so that a block can be run twice; but on the device
    meta, where transformers would read the places of the tokens to see if it is packed.
    """
    is_meta = any(parameter.is_meta for parameter in model.parameters())
    with ExitStack() as undo:
        for config in _configurations(model):
            asked = {"_attn_implementation": _EAGER} | ({} if is_meta else {"use_cache": False})
            for field, value in asked.items():
                before = getattr(config, field, None)
                if before is not None and before != value:
                    undo.callback(setattr, config, field, before)
                    setattr(config, field, value)
        for module in model.modules():
            if isinstance(module, nn.MultiheadAttention):
                handle = module.register_forward_pre_hook(_ask, with_kwargs=True)
                undo.callback(handle.remove)
        yield


def _configurations(model: nn.Module) -> list[Any]:
    """The configurations of the model's modules that name an implementation of attention."""
    configs = (getattr(module, "config", None) for module in model.modules())
    return list({id(c): c for c in configs if hasattr(c, "_attn_implementation")}.values())


def _ask(
    _: nn.Module, args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return args, {**named, "need_weights": True, "average_attn_weights": False}
