"""Attention whose probabilities can be read, in models that would hide them in a fused kernel.

Two kinds are known without importing their libraries: models of Hugging Face's transformers, whose
configuration names the implementation of attention, and `nn.MultiheadAttention`, which returns
probabilities if it is asked to.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from torch import nn

_EAGER = "eager"


@contextmanager
def open_attention(model: nn.Module) -> Iterator[None]:
    """A context in which the model's attention modules return their probabilities.

    Nothing is cached between calls either, so that a block can be run twice.
    """
    with ExitStack() as undo:
        for config in _configurations(model):
            for field, value in (("_attn_implementation", _EAGER), ("use_cache", False)):
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
    found = (getattr(module, "config", None) for module in model.modules())
    return list({id(c): c for c in found if hasattr(c, "_attn_implementation")}.values())


def _ask(
    _: nn.Module, args: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return args, {**named, "need_weights": True, "average_attn_weights": False}
