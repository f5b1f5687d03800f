"""One set of weights for every architecture of a space, whatever its family.

The supernet is the largest architecture; `spaces.sharing` says what any other inherits from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import torch
from torch import Tensor, nn

from spaces.base import A, Space
from spaces.errors import SpaceError

if TYPE_CHECKING:
    from spaces.sharing import WeightSharing

T = TypeVar("T")
State = dict[str, Tensor]
_SKELETONS = 512  # models without memory that are kept for the next call


class Supernet(nn.Module, Generic[A]):
    """The space's largest model, which contains every other one."""

    def __init__(self, space: Space[A], seed: int) -> None:
        super().__init__()
        sharing = space.weight_sharing()
        if sharing is None:
            raise SpaceError(f"space {space.name} has no supernet")
        self.space = space
        self.sharing: WeightSharing[A] = sharing
        self.largest = space.build(sharing.largest(), seed)
        self.eval()
        self._skeleton = lru_cache(maxsize=_SKELETONS)(self._lay_out)

    def forward(self, inputs: Tensor, arch: A | None = None) -> Tensor:
        """The final hidden state (B, T, h) of the architecture, by default the largest.

        Gradients reach the supernet's own parameters.
        """
        hidden: Tensor = (
            self.largest(inputs) if arch is None else self.call(arch, lambda model: model(inputs))
        )
        return hidden

    def call(
        self,
        arch: A,
        function: Callable[[Any], T],
        state: State | None = None,
        is_training: bool = False,
    ) -> T:
        """What the function gives for the architecture's model with inherited weights.

        `state` replaces parameters or buffers by name, such as recomputed means of BatchNorms. If
        `is_training`, BatchNorms use the batch's own instead. The model is a temporary one;
        gradients reach the supernet's parameters.
        """
        model = self._skeleton(arch)
        inherited = self.inherited(arch) | (state or {})
        if is_training:
            inherited |= self._fresh_statistics(model)
        named = {f"model.{name}": tensor for name, tensor in inherited.items()}
        with _training_norms(model, None) if is_training else nullcontext():
            result: T = torch.func.functional_call(_Around(model), named, (function,))
        return result

    def inherited(self, arch: A) -> State:
        """The architecture's parameters and buffers by name: views of the supernet's.

        Parameters of several boxes are copies that pass gradients on.
        """
        model = self._skeleton(arch)
        whole = dict(self.largest.named_parameters()) | dict(self.largest.named_buffers())
        sources = self.sharing.source(arch)
        parts = {}
        for name, part in (*model.named_parameters(), *model.named_buffers()):
            of = whole[source_name(name, sources)]
            boxes = self.sharing.boxes(name, tuple(of.shape), tuple(part.shape))
            parts[name] = of[boxes[0]] if len(boxes) == 1 else torch.cat([of[b] for b in boxes], -1)
        return parts

    def subnet(self, arch: A, state: State | None = None) -> Any:
        """A separate model with copies of the inherited weights, in eval mode."""
        inherited = self.inherited(arch) | (state or {})
        model = self._lay_out(arch)
        model.to_empty(device=next(self.parameters()).device)
        model.load_state_dict({name: tensor.detach() for name, tensor in inherited.items()})
        return model

    def recomputed(self, arch: A, batches: Iterable[Tensor]) -> State:
        """What the architecture's own BatchNorms see on the batches; empty without BatchNorms.

        Statistics of one architecture do not fit another, so that they are never inherited
        (BigNAS, section 3.3).
        """
        model = self._skeleton(arch)
        state = self._fresh_statistics(model)
        with torch.no_grad(), _training_norms(model, None):
            for batch in batches if state else ():
                self.call(arch, partial(_run_all, batch), state)
        return state

    def _fresh_statistics(self, model: nn.Module) -> State:
        """Mean 0 and variance 1 for every BatchNorm, by name."""
        device = next(self.parameters()).device
        return {
            f"{norm}.{name}": torch.full(buffer.shape, float(name == "running_var"), device=device)
            for norm, module in model.named_modules()
            if isinstance(module, nn.BatchNorm2d)
            for name, buffer in module.named_buffers()
        }

    def _lay_out(self, arch: A) -> Any:
        self.space.validate(arch)
        dtype = next(self.parameters()).dtype
        with torch.device("meta"):
            return self.sharing.layout(arch).to(dtype).eval()


def source_name(name: str, sources: list[int]) -> str:
    """The supernet's name of an architecture's parameter."""
    head, *rest = name.split(".")
    return ".".join((head, str(sources[int(rest[0])]), *rest[1:])) if head == "blocks" else name


@contextmanager
def _training_norms(model: nn.Module, momentum: float | None) -> Iterator[None]:
    """A context in which the model's BatchNorms use, and remember, the batch's own statistics."""
    norms = [m for m in model.modules() if isinstance(m, nn.BatchNorm2d)]
    before = [m.momentum for m in norms]
    try:
        for norm in norms:
            norm.training, norm.momentum = True, momentum
        yield
    finally:
        for norm, kept in zip(norms, before, strict=True):
            norm.training, norm.momentum = False, kept


class _Around(nn.Module):
    """A model whose forward pass is a function of it: calls other methods than `forward`."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, function: Callable[[Any], T]) -> T:
        return function(self.model)


def _run_all(batch: Tensor, model: Any) -> None:
    """Run the model and its head, which may have BatchNorms too."""
    model.logits(model(batch))
