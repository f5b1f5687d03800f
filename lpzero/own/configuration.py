"""An architecture of a user's space: what its `build` function is given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Value = str | int | float | bool
Field = Value | tuple[Value, ...]  # of the architecture, or of each layer
Fields = tuple[tuple[str, Field], ...]


class _Named:
    """Fields as attributes and as a mapping; subclasses are frozen and hold them in `fields`."""

    fields: Fields

    def __getitem__(self, name: str) -> Any:
        for known, value in self.fields:
            if known == name:
                return value
        raise KeyError(name)

    def __getattr__(self, name: str) -> Any:
        # Without this, copying an object that has no fields yet would look for them forever.
        if name == "fields" or name.startswith("__"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            known = ", ".join(known for known, _ in self.fields)
            raise AttributeError(f"there is no choice {name!r}; there are {known}") from None

    def __iter__(self) -> Iterator[str]:
        return (name for name, _ in self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.fields)
        return f"{type(self).__name__}({inside})"


@dataclass(frozen=True, repr=False)
class Layer(_Named, Mapping[str, Any]):
    """The choices of one layer: `layer.heads` or `layer["heads"]`."""

    fields: Fields


@dataclass(frozen=True, repr=False)
class Configuration(_Named, Mapping[str, Any]):
    """The choices of an architecture: `config.width` or `config["width"]`.

    A choice that is made per layer is a tuple, first layer first. `layered` are the names of these;
    `per_layer` has the same values layer by layer.
    """

    fields: Fields
    layered: tuple[str, ...] = ()

    @property
    def per_layer(self) -> tuple[Layer, ...]:
        """The choices of each layer; empty if none is made per layer."""
        columns = [self[name] for name in self.layered]
        return tuple(
            Layer(tuple(zip(self.layered, values, strict=True)))
            for values in zip(*columns, strict=True)
        )
