"""The batch that a model reads: one tensor, or several by the names of the model's arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from lpzero.errors import InputError


@dataclass(frozen=True, slots=True, eq=False)
class NamedInputs:
    """Tensors by the names of the model's arguments; the first axis of each is the samples."""

    tensors: dict[str, Tensor]

    def __len__(self) -> int:
        return len(self.main)

    def __getitem__(self, part: slice) -> NamedInputs:
        return NamedInputs({name: tensor[part] for name, tensor in self.tensors.items()})

    @property
    def main(self) -> Tensor:
        """Token ids (B, T) or images: the first of the tensors."""
        return next(iter(self.tensors.values()))


Inputs = Tensor | NamedInputs


def read_inputs(batch: Any, model: nn.Module) -> Inputs:
    """The batch on the model's device, numbers that are not whole in its precision."""
    parameter = next(model.parameters(), None)
    if parameter is None:
        raise InputError(f"{type(model).__name__} has no parameters")
    if isinstance(batch, NamedInputs):
        batch = batch.tensors
    if isinstance(batch, Tensor):
        if batch.ndim < 2 or not len(batch):
            raise InputError(
                f"the batch has the shape {tuple(batch.shape)}; expected token ids (B, T) or"
                " images (B, channels, H, W)"
            )
        return _moved(batch, parameter)
    if not isinstance(batch, Mapping) or not batch:
        raise InputError(
            f"the batch is {type(batch).__name__}; expected a tensor, or tensors by the names of"
            " the model's arguments"
        )
    tensors = {str(name): _checked(str(name), value) for name, value in batch.items()}
    order = sorted(tensors, key=lambda name: name not in ("input_ids", "pixel_values"))
    lengths = {name: len(tensors[name]) for name in order}
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {n}" for name, n in lengths.items())
        raise InputError(f"the tensors of the batch have different numbers of samples: {listed}")
    return NamedInputs({name: _moved(tensors[name], parameter) for name in order})


def call(model: nn.Module, inputs: Inputs) -> Any:
    """What the model returns for the batch."""
    return model(**inputs.tensors) if isinstance(inputs, NamedInputs) else model(inputs)


def given(inputs: Inputs) -> Tensor | dict[str, Tensor]:
    """The batch as a loss gets it: a tensor, or tensors by name."""
    return inputs.tensors if isinstance(inputs, NamedInputs) else inputs


def main_tensor(inputs: Inputs) -> Tensor:
    """Token ids (B, T) or images (B, channels, H, W)."""
    return inputs.main if isinstance(inputs, NamedInputs) else inputs


def split(inputs: Inputs, size: int) -> Iterator[Inputs]:
    """Parts of at most that many samples."""
    for start in range(0, len(inputs), size):
        yield inputs[start : start + size]


def _checked(name: str, value: Any) -> Tensor:
    if not isinstance(value, Tensor) or value.ndim < 1:
        raise InputError(f"the batch's {name} is {type(value).__name__}, expected a tensor")
    return value


def _moved(tensor: Tensor, parameter: Tensor) -> Tensor:
    if tensor.is_floating_point():
        return tensor.to(parameter)
    return tensor.to(parameter.device)
