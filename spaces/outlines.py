"""Networks laid out without memory, on torch's device "meta": what they would take.

There tensors have shapes and no numbers, so that a network of any width costs nothing; one of any
depth would still never end, therefore its parts are counted while they are made.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as registry
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from spaces import memory
from spaces.errors import MemoryLimitError

# Bytes of all operations for each number of the input and each parameter or pair of tokens: well
# above what any of the families takes.
_MOST_PER_NUMBER = 64
MOST_PARTS = 8_000  # modules, parameters and buffers; a language model of 405B has 3,000


def outline(make: Callable[[], nn.Module], what: str, *, is_built: bool = True) -> nn.Module:
    """The module that `make` gives, without numbers.

    Raise MemoryLimitError if it has too many parts, or is too large for the memory where it is to
    be built afterwards.
    """
    with torch.device("meta"), _Unfilled(), counted(what, memory.limit() if is_built else math.inf):
        return make()


@contextmanager
def counted(what: str, most: float | None = None) -> Iterator[None]:
    """A context in which modules are made; raise MemoryLimitError at the part that is too much.

    `most` bytes are allowed, by default those of the limit.

    Parts count as they are registered, which is before a parameter is filled with numbers.
    """
    thread = threading.get_ident()
    most = memory.limit() if most is None else most
    n_bytes = n_parts = 0

    def count(_: nn.Module, __: str, part: Any) -> None:
        nonlocal n_bytes, n_parts
        if threading.get_ident() != thread or part is None:
            return
        n_parts += 1
        if n_parts > MOST_PARTS:
            raise MemoryLimitError(
                f"{what} has more than {MOST_PARTS:,} modules and parameters: make it smaller"
            )
        n_bytes += part.nbytes if isinstance(part, Tensor) else 0
        if n_bytes > most:
            memory.check(n_bytes, f"the beginning of {what}")

    hooks = [
        registry.register_module_module_registration_hook(count),
        registry.register_module_parameter_registration_hook(count),
        registry.register_module_buffer_registration_hook(count),
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def check_pass(model: nn.Module, inputs: Tensor, what: str) -> None:
    """Raise MemoryLimitError unless a pass of the inputs fits, forward and backward.

    Model and inputs are on the device meta. Every tensor that an operation makes counts, as if the
    backward pass needed it, and every parameter twice, for its gradient. A model that needs numbers
    to run is only counted as far as it ran; one that is small enough for any pass is not run.
    """
    memory.check_batch(tuple(inputs.shape))
    most, n_parameters = memory.limit(), sum(p.numel() for p in model.parameters())
    n_modules = sum(1 for _ in model.modules())
    per_number = n_parameters + inputs[0].numel() * n_modules
    if _MOST_PER_NUMBER * inputs.numel() * per_number < most:
        return
    counter = _Made(2 * sum(p.nbytes for p in model.parameters()) + inputs.nbytes, most, what)
    try:
        with torch.device("meta"), torch.no_grad(), counter:
            model(inputs)
    except MemoryLimitError:
        raise
    except Exception:  # of an operation that meta tensors cannot do; it is really run later
        return


class _Made(TorchDispatchMode):
    """Adds up the bytes of the tensors that operations make; views of their inputs are none."""

    def __init__(self, n_bytes: int, most: int, what: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.n_bytes, self.most, self.what = n_bytes, most, what

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        given = {_storage(leaf) for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)}
        for leaf in tree_leaves(result):
            if isinstance(leaf, Tensor) and _storage(leaf) not in given:
                self.n_bytes += leaf.nbytes
        if self.n_bytes > self.most:
            memory.check(self.n_bytes, self.what)
        return result


def _storage(tensor: Tensor) -> int:
    return int(tensor.untyped_storage()._cdata)


_FILLS = (
    "normal_",
    "kaiming_uniform_",
    "xavier_uniform_",
    "constant_",
    "ones_",
    "zeros_",
    "uniform_",
    "trunc_normal_",
    "zero_",
    "fill_",
    "random_",
    "bernoulli_",
)


class _Unfilled(TorchFunctionMode):
    """Leaves out what fills tensors with numbers, which takes most of the time of a layout."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        filled: Any = args[0] if args else (kwargs or {}).get("tensor")  # as torch.nn.init calls
        if getattr(func, "__name__", None) in _FILLS and filled.device.type == "meta":
            return filled
        return func(*args, **(kwargs or {}))
