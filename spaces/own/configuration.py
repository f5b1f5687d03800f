"""An architecture of a user's space, which its `build` function is given, and the choices it is of.

{"layers": [2, 4], "width": [64, 128], "per_layer": {"heads": [2, 4]}}: a list is chosen from once,
one under "per_layer" once for each layer. The number of layers is itself a choice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spaces.errors import DeclarationError, FieldError, shown

PER_LAYER = "per_layer"
DEPTHS = ("layers", "n_layers", "num_layers", "depth", "n_layer", "num_hidden_layers", "n_blocks")
MOST_VALUES = 1_000_000
_MOST_LAYERS = 10_000

Value = str | int | float | bool
Field = Value | tuple[Value, ...]  # of the architecture, or of each layer
Fields = tuple[tuple[str, Field], ...]
Values = tuple[str, tuple[Value, ...]]  # a choice's name and what it is chosen from


class _Named:
    """Fields as attributes and as a mapping; subclasses are frozen and hold them in `fields`."""

    fields: Fields

    def __getitem__(self, name: str) -> Any:
        for field, value in self.fields:
            if field == name:
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


@dataclass(frozen=True, slots=True)
class Choices:
    """What may be chosen once (`whole`) and for each layer (`layered`), by name.

    `depth` is the choice that is the number of layers; None if no choice is.
    """

    whole: tuple[Values, ...]
    layered: tuple[Values, ...] = ()
    depth: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields of a configuration, in their order."""
        return tuple(name for name, _ in (*self.whole, *self.layered))

    def cardinality(self) -> int:
        """The number of configurations."""
        per_layer = math.prod(len(values) for _, values in self.layered)
        total = math.prod(len(values) for name, values in self.whole if name != self.depth)
        return int(total * sum(per_layer**depth for depth in self._depths()))

    def read(self, given: Mapping[str, Any]) -> Configuration:
        """The configuration with these values; raise FieldError at the first that is not a choice.

        A choice with one value may be left out, and the number of layers where lists tell it.
        """
        for name in given:
            if name not in self.names:
                raise FieldError(
                    str(name), f"there is no such choice; there are {', '.join(self.names)}"
                )
        columns = {name: _list(name, given) for name, _ in self.layered}
        whole = {}
        for name, values in self.whole:
            if name in given:
                whole[name] = _chosen(name, given[name], values)
            elif name == self.depth and columns:
                whole[name] = _chosen(name, len(next(iter(columns.values()))), values)
            elif len(values) == 1:
                whole[name] = values[0]
            else:
                raise FieldError(name, "the choice is missing")
        n = self.n_layers(whole)
        fields: dict[str, Field] = {**whole}
        for name, values in self.layered:
            if len(columns[name]) != n:
                raise FieldError(name, f"{len(columns[name])} values for {n} layers")
            fields[name] = tuple(
                _chosen(f"{name}[{index}]", value, values, name)
                for index, value in enumerate(columns[name])
            )
        return self.configuration(fields)

    def configuration(self, fields: Mapping[str, Field]) -> Configuration:
        """The configuration with these fields."""
        return Configuration(tuple(fields.items()), tuple(name for name, _ in self.layered))

    def smallest(self) -> Configuration:
        """The configuration with the smallest number of every choice, or its first text."""
        whole: dict[str, Field] = {name: _smallest(values) for name, values in self.whole}
        n = self.n_layers(whole)
        return self.configuration(
            {**whole, **{name: (_smallest(values),) * n for name, values in self.layered}}
        )

    def to_json(self) -> dict[str, Any]:
        """The choices as JSON values."""
        value: dict[str, Any] = {name: list(values) for name, values in self.whole}
        if self.layered:
            value[PER_LAYER] = {name: list(values) for name, values in self.layered}
        return value

    def _depths(self) -> Iterable[int]:
        return [1] if self.depth is None else map(int, dict(self.whole)[self.depth])

    def n_layers(self, whole: Mapping[str, Any]) -> int:
        """The number of layers with these choices; 0 where nothing is chosen for each layer."""
        return int(whole[self.depth]) if self.layered and self.depth is not None else 0


def read_choices(given: Mapping[str, Any], depth: str | None = None) -> Choices:
    """The choices that a user's mapping declares; raise DeclarationError for what is none."""
    if not isinstance(given, Mapping) or not given:
        raise DeclarationError("a space needs choices: a mapping such as {'layers': [2, 4]}")
    layered = given.get(PER_LAYER, {})
    if not isinstance(layered, Mapping):
        raise DeclarationError(f"{PER_LAYER} is {shown(layered)}, expected a mapping of choices")
    whole = tuple((name, _values(name, of)) for name, of in given.items() if name != PER_LAYER)
    per_layer = tuple((name, _values(name, of)) for name, of in layered.items())
    names = [name for name, _ in (*whole, *per_layer)]
    for name in names:
        if names.count(name) > 1:
            raise DeclarationError(f"the choice {name!r} is made once and per layer; rename one")
    by_name = dict(whole)
    if depth is not None and depth not in by_name:
        raise DeclarationError(f"depth={depth!r} is none of the choices {', '.join(by_name)}")
    depth_name = depth or next((name for name in DEPTHS if name in by_name), None)
    if per_layer and depth_name is None:
        raise DeclarationError(
            f"{PER_LAYER} needs the number of layers: add a choice 'layers', or name another one"
            " with depth="
        )
    for value in by_name.get(depth_name or "", ()):
        if type(value) is not int or not 1 <= value <= _MOST_LAYERS:
            raise DeclarationError(
                f"{depth_name} is the number of layers; {shown(value)} is not one of 1 to"
                f" {_MOST_LAYERS:,}"
            )
    return Choices(whole, per_layer, depth_name)


def _values(name: Any, given: Any) -> tuple[Value, ...]:
    if not isinstance(name, str) or not name.isidentifier() or name in ("fields", "layered"):
        raise DeclarationError(f"{shown(name)} cannot name a choice; use a Python name")
    if isinstance(given, Value):
        return (given,)
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise DeclarationError(f"choice {name} is {shown(given)}, expected a list of values")
    # Numbers of NumPy become those of Python.
    values = tuple(value.item() if hasattr(value, "item") else value for value in given)
    if not 1 <= len(values) <= MOST_VALUES:
        raise DeclarationError(
            f"choice {name} has {len(values)} values, expected 1 to {MOST_VALUES:,}"
        )
    for value in values:
        is_plain = isinstance(value, Value)
        if not is_plain or (isinstance(value, float) and not math.isfinite(value)):
            raise DeclarationError(
                f"choice {name} has {shown(value)}, expected texts or finite numbers"
            )
    if len({(type(value), value) for value in values}) < len(values):
        raise DeclarationError(f"choice {name} has a value twice")
    return values


def _smallest(values: tuple[Value, ...]) -> Value:
    return min(values, key=lambda value: 0 if isinstance(value, str) else value)


def _chosen(place: str, value: Any, values: tuple[Value, ...], field: str | None = None) -> Value:
    """The choice that equals the value; 64.0, as some readers give it, is the choice 64."""
    for choice in values:
        if isinstance(value, bool) == isinstance(choice, bool) and choice == value:
            return choice
    shortened = ", ".join(map(str, values[:12])) + (", ..." if len(values) > 12 else "")
    raise FieldError(
        field or place, f"{place} = {shown(value)} is not a choice; use one of {shortened}"
    )


def _list(name: str, given: Mapping[str, Any]) -> Sequence[Any]:
    if name not in given:
        raise FieldError(name, "the choice is missing")
    value = given[name]
    if not isinstance(value, (list, tuple)):
        raise FieldError(name, f"{shown(value)}, expected a list with a value for each layer")
    return value
