"""The choices of a user's space: drawing, varying and counting them, and checking values.

{"layers": [2, 4], "width": [64, 128], "per_layer": {"heads": [2, 4]}}: a list is chosen from once,
one under "per_layer" once for each layer. The number of layers is itself a choice.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lpzero.errors import InputError
from lpzero.own.configuration import Configuration, Field, Layer, Value
from spaces.base import flip, flip_layers, redraw
from spaces.errors import FieldError, shown

PER_LAYER = "per_layer"
DEPTHS = ("layers", "n_layers", "num_layers", "depth", "n_layer", "num_hidden_layers", "n_blocks")
_MOST_VALUES = 1_000_000

Choice = tuple[str, tuple[Value, ...]]


@dataclass(frozen=True, slots=True)
class Choices:
    """What may be chosen once (`whole`) and for each layer (`layered`), by name.

    `depth` is the choice that is the number of layers; None if no choice is.
    """

    whole: tuple[Choice, ...]
    layered: tuple[Choice, ...] = ()
    depth: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the fields of a configuration, in their order."""
        return tuple(name for name, _ in (*self.whole, *self.layered))

    @property
    def layered_names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.layered)

    def cardinality(self) -> int:
        """The number of configurations."""
        per_layer = math.prod(len(values) for _, values in self.layered)
        total = math.prod(len(values) for name, values in self.whole if name != self.depth)
        return int(total * sum(per_layer**depth for depth in self._depths()))

    def sample(self, rng: random.Random) -> Configuration:
        """A configuration, every choice drawn uniformly."""
        whole = {name: rng.choice(values) for name, values in self.whole}
        n = self._n_layers(whole)
        return self.made(whole, [self._draw_layer(rng) for _ in range(n)])

    def mutate(
        self, config: Configuration, probability: float, rng: random.Random
    ) -> Configuration:
        """The configuration with each choice redrawn with that probability."""
        whole = {
            name: redraw(config[name], values, probability, rng) for name, values in self.whole
        }
        n = self._n_layers(whole)
        layers = [
            Layer(
                tuple(
                    (name, redraw(layer[name], values, probability, rng))
                    for name, values in self.layered
                )
            )
            for layer in config.per_layer[:n]
        ]
        layers += [self._draw_layer(rng) for _ in range(n - len(layers))]
        return self.made(whole, layers)

    def crossover(
        self, first: Configuration, second: Configuration, rng: random.Random
    ) -> Configuration:
        """A child with as many layers as one parent, every other choice from either."""
        base = flip(first, second, rng)
        other = second if base is first else first
        whole = {
            name: base[name] if name == self.depth else flip(first[name], second[name], rng)
            for name, _ in self.whole
        }
        return self.made(whole, flip_layers(base.per_layer, other.per_layer, rng))

    def with_layer(self, config: Configuration, index: int, layer: Layer) -> Configuration:
        """The configuration with one layer exchanged."""
        layers = list(config.per_layer)
        layers[index] = layer
        return self.made({name: config[name] for name, _ in self.whole}, layers)

    def redraw_layer(self, config: Configuration, index: int, rng: random.Random) -> Configuration:
        """The configuration with the choices of one layer drawn anew."""
        return self.with_layer(config, index, self._draw_layer(rng)) if self.layered else config

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
        n = self._n_layers(whole)
        for name, column in columns.items():
            if len(column) != n:
                raise FieldError(name, f"{len(column)} values for {n} layers")
        layers = [
            Layer(
                tuple(
                    (name, _chosen(f"{name}[{index}]", columns[name][index], values, name))
                    for name, values in self.layered
                )
            )
            for index in range(n)
        ]
        return self.made(whole, layers)

    def made(self, whole: Mapping[str, Value], layers: Sequence[Layer]) -> Configuration:
        """The configuration of these values."""
        fields: list[tuple[str, Field]] = [(name, whole[name]) for name, _ in self.whole]
        names = self.layered_names
        fields += [(name, tuple(layer[name] for layer in layers)) for name in names]
        return Configuration(tuple(fields), names)

    def to_json(self) -> dict[str, Any]:
        """The choices as JSON values."""
        found: dict[str, Any] = {name: list(values) for name, values in self.whole}
        if self.layered:
            found[PER_LAYER] = {name: list(values) for name, values in self.layered}
        return found

    def _depths(self) -> Iterable[int]:
        return [1] if self.depth is None else map(int, dict(self.whole)[self.depth])

    def _n_layers(self, whole: Mapping[str, Value]) -> int:
        return int(whole[self.depth]) if self.layered and self.depth is not None else 0

    def _draw_layer(self, rng: random.Random) -> Layer:
        return Layer(tuple((name, rng.choice(values)) for name, values in self.layered))


def read_choices(given: Mapping[str, Any], depth: str | None = None) -> Choices:
    """The choices that a user's mapping declares; raise InputError for what is none."""
    if not isinstance(given, Mapping) or not given:
        raise InputError("a space needs choices: a mapping such as {'layers': [2, 4]}")
    layered = given.get(PER_LAYER, {})
    if not isinstance(layered, Mapping):
        raise InputError(f"{PER_LAYER} is {shown(layered)}, expected a mapping of choices")
    whole = tuple((name, _values(name, of)) for name, of in given.items() if name != PER_LAYER)
    per_layer = tuple((name, _values(name, of)) for name, of in layered.items())
    names = [name for name, _ in (*whole, *per_layer)]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"the choice {name!r} is made once and per layer; rename one")
    known = dict(whole)
    if depth is not None and depth not in known:
        raise InputError(f"depth={depth!r} is none of the choices {', '.join(known)}")
    found = depth or next((name for name in DEPTHS if name in known), None)
    if per_layer and found is None:
        raise InputError(
            f"{PER_LAYER} needs the number of layers: add a choice 'layers', or name another one"
            " with depth="
        )
    for value in known.get(found or "", ()):
        if type(value) is not int or value < 1:
            raise InputError(f"{found} is the number of layers; {shown(value)} is not one")
    return Choices(whole, per_layer, found)


def _values(name: Any, given: Any) -> tuple[Value, ...]:
    if not isinstance(name, str) or not name.isidentifier() or name in ("fields", "layered"):
        raise InputError(f"{shown(name)} cannot name a choice; use a Python name")
    if isinstance(given, Value):
        return (given,)
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise InputError(f"choice {name} is {shown(given)}, expected a list of values")
    # Numbers of NumPy become those of Python.
    values = tuple(value.item() if hasattr(value, "item") else value for value in given)
    if not 1 <= len(values) <= _MOST_VALUES:
        raise InputError(f"choice {name} has {len(values)} values, expected 1 to {_MOST_VALUES:,}")
    for value in values:
        is_plain = isinstance(value, Value)
        if not is_plain or (isinstance(value, float) and not math.isfinite(value)):
            raise InputError(f"choice {name} has {shown(value)}, expected texts or finite numbers")
    if len({(type(value), value) for value in values}) < len(values):
        raise InputError(f"choice {name} has a value twice")
    return values


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
