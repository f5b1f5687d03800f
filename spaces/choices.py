"""Architectures as choices: drawing, mutating, crossing, counting, checking and reading them.

A family declares the fields of its architectures in the order in which they are drawn:

    Choice("hidden", (128, 256))                           a value
    PerStage("depths", ((1, 2), (2, 3)))                   a value for every stage
    Layers("layers", (2, 4), Layer, (Choice(...), ...))    layers; how many is drawn first
    Columns(...)                                           layers, kept as one tuple for each choice
    Stages("stages", ((1, 2), (2, 3)), Block, (...))       layers of every stage

Everything that varies an architecture follows. The order of random draws is part of what a seed
means; tests/spaces/test_draws.py records it.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import random
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, TypeVar

from spaces.base import A, Space
from spaces.errors import ArchitectureError, shown

T = TypeVar("T")
Drawn = Mapping[str, Any]  # the values of the fields before this one, by name
# From the current value, None if there is none, and the values of a choice to one of them.
Choose = Callable[[Any, Sequence[Any]], Any]


class Field:
    """A field of an architecture, or several (`Columns`): see `Choice` for what each one does."""

    name: str

    def get(self, arch: Any) -> Any:
        """The field's value in an architecture or in a layer."""
        return getattr(arch, self.name)

    def put(self, value: Any, fields: dict[str, Any]) -> None:
        """Set the value in the fields of an architecture."""
        fields[self.name] = value

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The same from JSON values."""
        return {self.name: given[self.name]}


@dataclass(frozen=True, slots=True)
class Choice(Field):
    """One of the values, which may depend on the fields drawn before.

    `accepted` are the values that may be given, where those are more. A value that is
    `of_base` comes with the layers of a parent.
    """

    name: str
    values: Sequence[Any] | Callable[[Drawn], Sequence[Any]]
    accepted: Sequence[Any] | None = None
    of_base: bool = False

    def allowed(self, drawn: Drawn) -> Sequence[Any]:
        """The values to choose from."""
        return self.values(drawn) if callable(self.values) else self.values

    def vary(self, value: Any, drawn: Drawn, choose: Choose) -> Any:
        """What is chosen instead of the value; anew where that is None."""
        values = self.values
        return choose(value, values(drawn) if callable(values) else values)

    def cross(self, pair: tuple[Any, Any], base: int, rng: random.Random) -> Any:
        """A value from either parent; `base` is the parent whose number of layers a child has."""
        return pair[base] if self.of_base else flip(*pair, rng)

    def count(self) -> int:
        """The number of values."""
        return len(self.allowed({}))

    def check(self, arch: Any, space: str) -> None:
        """Raise ArchitectureError unless the architecture's value may be given."""
        self.require(self.get(arch), self.name, space)

    def require(self, value: Any, place: str, space: str) -> None:
        """Raise ArchitectureError unless the value may be given."""
        require(self.allowed({}) if self.accepted is None else self.accepted, value, place, space)


@dataclass(frozen=True, slots=True)
class PerStage(Field):
    """A value for every stage.

    If `is_together`, a child has the values of one parent. If `is_multiple`, every value must be a
    multiple of the one before.
    """

    name: str
    values: tuple[Sequence[int], ...]
    is_together: bool = False
    is_multiple: bool = False

    def combinations(self) -> list[tuple[int, ...]]:
        """Every allowed value of the whole field."""
        return [every for every in itertools.product(*self.values) if self._fits(every)]

    def _fits(self, values: Sequence[int]) -> bool:
        return not self.is_multiple or all(b % a == 0 for a, b in itertools.pairwise(values))

    def vary(self, value: tuple[int, ...] | None, drawn: Drawn, choose: Choose) -> tuple[int, ...]:
        """Each stage chosen in turn, among the values that fit its neighbours."""
        if value is None and self.is_multiple:
            every: tuple[int, ...] = choose(None, self.combinations())
            return every
        varied: tuple[Any, ...] = value or (None,) * len(self.values)
        for stage, values in enumerate(self.values):
            before, after = varied[:stage], varied[stage + 1 :]
            if self.is_multiple:
                values = [v for v in values if self._fits((*before, v, *after))]
            varied = (*before, choose(varied[stage], values), *after)
        return varied

    def cross(
        self, pair: tuple[tuple[int, ...], tuple[int, ...]], base: int, rng: random.Random
    ) -> tuple[int, ...]:
        """Each stage from either parent; where only one parent's value fits, from that one."""
        if self.is_together:
            return flip(*pair, rng)
        if not self.is_multiple:
            return tuple([flip(*values, rng) for values in zip(*pair, strict=True)])
        child: tuple[int, ...] = ()
        for values in zip(*pair, strict=True):
            fitting = [value for value in values if self._fits((*child, value))]
            child = (*child, flip(fitting[0], fitting[-1], rng))
        return child

    def count(self) -> int:
        return len(self.combinations()) if self.is_multiple else math.prod(map(len, self.values))

    def check(self, arch: Any, space: str) -> None:
        given = self.get(arch)
        require((len(self.values),), len(given), f"number of {self.name}", space)
        for stage, (value, values) in enumerate(zip(given, self.values, strict=True)):
            require(values, value, f"{self.name}[{stage}]", space)
            if stage and not self._fits(given[stage - 1 : stage + 1]):
                raise ArchitectureError(
                    f"{self.name}[{stage}] = {value} is outside space {space}: "
                    f"use a multiple of the {given[stage - 1]} of the stage before"
                )

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {self.name: _read_list(given, self.name, "integers")}


@dataclass(frozen=True, slots=True)
class Layers(Field):
    """Layers of one kind; how many is chosen too. `kind` makes a layer from its choices' values."""

    name: str
    counts: Sequence[Any]
    kind: Callable[..., Any]
    choices: tuple[Choice, ...]

    def vary(self, value: Any, drawn: Drawn, choose: Choose) -> tuple[Any, ...]:
        n = choose(None if value is None else len(value), self.counts)
        return self.vary_layers(value or (), n, drawn, choose)

    def vary_layers(
        self, layers: Sequence[Any], n: int, drawn: Drawn, choose: Choose
    ) -> tuple[Any, ...]:
        """So many layers: the first of the given ones varied, missing ones chosen anew."""
        choices = [(choice.get, choice.allowed(drawn)) for choice in self.choices]
        kind = self.kind
        return (
            *[kind(*[choose(get(layer), of) for get, of in choices]) for layer in layers[:n]],
            *[kind(*[choose(None, of) for _, of in choices]) for _ in range(n - len(layers))],
        )

    def draw_layer(self, choose: Choose) -> Any:
        """A layer whose choices do not depend on other fields."""
        return self.kind(*[choose(None, choice.allowed({})) for choice in self.choices])

    def cross(
        self, pair: tuple[tuple[Any, ...], tuple[Any, ...]], base: int, rng: random.Random
    ) -> tuple[Any, ...]:
        """As many layers as the base has, each from either parent where both have one."""
        return flip_layers(pair[base], pair[1 - base], rng)

    def count(self) -> int:
        return self.count_stage(self.counts)

    def count_stage(self, counts: Sequence[int]) -> int:
        """The number of different sequences of so many layers."""
        per_layer = math.prod(choice.count() for choice in self.choices)
        return sum(per_layer**n for n in counts)

    def check(self, arch: Any, space: str) -> None:
        layers = self.get(arch)
        require(self.counts, len(layers), "number of layers", space)
        self.check_layers(layers, self.name, space)

    def check_layers(self, layers: Sequence[Any], place: str, space: str) -> None:
        """Raise ArchitectureError at the first layer that has a value outside its choice."""
        for index, layer in enumerate(layers):
            for choice in self.choices:
                choice.require(choice.get(layer), f"{place}[{index}].{choice.name}", space)

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {self.name: read_layers(given[self.name], self.kind)}

    def blocks(self, value: tuple[Any, ...]) -> tuple[Any, ...]:
        """The layers, first to last."""
        return value

    def with_block(self, value: tuple[Any, ...], index: int, block: Any) -> tuple[Any, ...]:
        """The layers with one exchanged."""
        return (*value[:index], block, *value[index + 1 :])


@dataclass(frozen=True, slots=True)
class Columns(Layers):
    """Layers that an architecture keeps as one tuple for each of their choices: a column.

    If `by_column`, the first choice is made for all layers before the second.
    """

    by_column: bool = False

    def get(self, arch: Any) -> tuple[tuple[Any, ...], ...]:
        return tuple([choice.get(arch) for choice in self.choices])

    def put(self, value: tuple[tuple[Any, ...], ...], fields: dict[str, Any]) -> None:
        for choice, column in zip(self.choices, value, strict=True):
            fields[choice.name] = column

    def vary(self, value: Any, drawn: Drawn, choose: Choose) -> tuple[tuple[Any, ...], ...]:
        n = choose(None if value is None else len(value[0]), self.counts)
        return self.vary_columns(value, n, drawn, choose)

    def vary_columns(
        self, columns: Any, n: int, drawn: Drawn, choose: Choose
    ) -> tuple[tuple[Any, ...], ...]:
        """The columns of so many layers: values varied, missing ones chosen anew."""
        allowed = [choice.allowed(drawn) for choice in self.choices]
        before = [column[:n] for column in columns or ((),) * len(allowed)]
        if self.by_column:
            both = zip(before, allowed, strict=True)
            kept = [[choose(value, values) for value in column] for column, values in both]
            missing = range(n - len(kept[0]))
            added = [[choose(None, values) for _ in missing] for values in allowed]
            return tuple([(*old, *new) for old, new in zip(kept, added, strict=True)])
        rows = [tuple(map(choose, row, allowed)) for row in zip(*before, strict=True)]
        rows += [tuple([choose(None, of) for of in allowed]) for _ in range(n - len(rows))]
        return tuple(zip(*rows, strict=True))

    def cross(
        self, pair: tuple[tuple[Any, ...], tuple[Any, ...]], base: int, rng: random.Random
    ) -> tuple[Any, ...]:
        first, second = pair[base], pair[1 - base]
        shared = min(len(first[0]), len(second[0])) if first else 0
        takes_first = [rng.random() < 0.5 for _ in range(shared)]
        return tuple(
            [
                (*[a if is_a else b for a, b, is_a in zip(*of, takes_first)], *of[0][shared:])  # noqa: B905 (the shorter ends)
                for of in zip(first, second, strict=True)
            ]
        )

    def blocks(self, value: tuple[tuple[Any, ...], ...]) -> tuple[Any, ...]:
        return tuple([self.kind(*row) for row in zip(*value, strict=True)])

    def with_block(
        self, value: tuple[tuple[Any, ...], ...], index: int, block: Any
    ) -> tuple[tuple[Any, ...], ...]:
        return tuple(
            [
                (*column[:index], choice.get(block), *column[index + 1 :])
                for choice, column in zip(self.choices, value, strict=True)
            ]
        )

    def check(self, arch: Any, space: str) -> None:
        columns = [(choice, choice.get(arch)) for choice in self.choices]
        n = len(columns[0][1])
        require(self.counts, n, "number of layers", space)
        for choice, column in columns:
            require((n,), len(column), f"length of {choice.name}", space)
            for index, value in enumerate(column):
                choice.require(value, f"{choice.name}[{index}]", space)

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        return {of.name: _read_list(given, of.name, "integers") for of in self.choices}


class Stages(Layers):
    """Layers of every stage: a tuple of tuples; `counts` are those of each stage."""

    def vary(self, value: Any, drawn: Drawn, choose: Choose) -> tuple[Any, ...]:
        if value is None:
            depths = [choose(None, counts) for counts in self.counts]
            return tuple(self.vary_layers((), n, drawn, choose) for n in depths)
        stages = zip(value, self.counts, strict=True)
        return tuple(
            self.vary_layers(layers, choose(len(layers), counts), drawn, choose)
            for layers, counts in stages
        )

    def cross(
        self, pair: tuple[tuple[Any, ...], tuple[Any, ...]], base: int, rng: random.Random
    ) -> tuple[Any, ...]:
        stages = zip(pair[base], pair[1 - base], strict=True)
        return tuple(flip_layers(*layers, rng) for layers in stages)

    def count(self) -> int:
        return math.prod(map(self.count_stage, self.counts))

    def check(self, arch: Any, space: str) -> None:
        stages = self.get(arch)
        require((len(self.counts),), len(stages), f"number of {self.name}", space)
        for stage, (layers, counts) in enumerate(zip(stages, self.counts, strict=True)):
            require(counts, len(layers), f"depth of {self.name}[{stage}]", space)
            self.check_layers(layers, f"{self.name}[{stage}]", space)

    def read(self, given: Mapping[str, Any]) -> dict[str, Any]:
        stages = _read_list(given, self.name, "stages")
        return {self.name: tuple(read_layers(layers, self.kind) for layers in stages)}

    def blocks(self, value: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(layer for layers in value for layer in layers)

    def with_block(self, value: tuple[Any, ...], index: int, block: Any) -> tuple[Any, ...]:
        blocks = iter(super().with_block(self.blocks(value), index, block))
        return tuple(tuple(next(blocks) for _ in layers) for layers in value)


class ChoiceSpace(Space[A]):
    """A space whose architectures follow from the fields that it declares."""

    kind: ClassVar[type[Any]]  # of its architectures
    # Fields that a crossover takes first, because seeds have always done so.
    crossed_first: ClassVar[tuple[str, ...]] = ()

    @property
    @abstractmethod
    def fields(self) -> tuple[Choice | PerStage | Layers, ...]:
        """The fields of an architecture, in the order in which they are drawn."""

    @cached_property
    def layers(self) -> Layers | None:
        """The field that has the blocks; None where a space keeps them otherwise."""
        return next((field for field in self.fields if isinstance(field, Layers)), None)

    def validate(self, arch: A) -> None:
        for field in self.fields:
            field.check(arch, self.name)

    def cardinality(self) -> int:
        return math.prod(field.count() for field in self.fields)

    def sample(self, rng: random.Random) -> A:
        draw = rng.choice
        return self.chosen(lambda _, values: draw(values))

    def mutate(self, arch: A, probability: float, rng: random.Random) -> A:
        return self.chosen(redrawing(probability, rng), arch)

    def chosen(self, choose: Choose, arch: A | None = None) -> A:
        """The architecture with every value chosen, instead of those of the given one."""
        drawn: dict[str, Any] = {}
        fields: dict[str, Any] = {}
        for field in self.fields:
            value = field.vary(None if arch is None else field.get(arch), drawn, choose)
            drawn[field.name] = value
            field.put(value, fields)
        return self.of_fields(fields)

    def crossover(self, first: A, second: A, rng: random.Random) -> A:
        base = 0 if self.layers is None else flip(0, 1, rng)
        taken = {
            field.name: field.cross((field.get(first), field.get(second)), base, rng)
            for field in self._crossed
        }
        return self.of_values(taken)

    @cached_property
    def _crossed(self) -> list[Choice | PerStage | Layers]:
        return sorted(self.fields, key=lambda field: field.name not in self.crossed_first)

    def of_values(self, values: Mapping[str, Any]) -> A:
        """The architecture with these values of the fields."""
        fields: dict[str, Any] = {}
        for field in self.fields:
            field.put(values[field.name], fields)
        return self.of_fields(fields)

    def of_fields(self, fields: Mapping[str, Any]) -> A:
        """The architecture with these fields."""
        arch: A = self.kind(**fields)
        return arch

    def blocks(self, arch: A) -> tuple[Any, ...]:
        assert self.layers is not None, "a space without layers says what its blocks are"
        return self.layers.blocks(self.layers.get(arch))

    def with_block(self, arch: A, index: int, block: Any) -> A:
        assert self.layers is not None, "a space without layers exchanges blocks itself"
        values = {field.name: field.get(arch) for field in self.fields}
        name = self.layers.name
        return self.of_values(values | {name: self.layers.with_block(values[name], index, block)})

    def draw_block(self, arch: A, index: int, rng: random.Random) -> A:
        """The architecture with the choices of one layer drawn anew."""
        assert self.layers is not None, "a space without layers draws blocks itself"
        block = self.layers.draw_layer(lambda _, values: rng.choice(values))
        return self.with_block(arch, index, block)

    def depth(self, arch: A) -> int:
        return len(self.blocks(arch))

    def from_json(self, fields: Mapping[str, Any]) -> A:
        given = read_fields(fields, self.kind, "architecture")
        read = (field.read(given).items() for field in self.fields)
        arch = self.of_fields(dict(itertools.chain(*read)))
        self.validate(arch)
        return arch


def flip(first: T, second: T, rng: random.Random) -> T:
    """One of the two at random, with equal probability."""
    return first if rng.random() < 0.5 else second


def flip_layers(first: Sequence[T], second: Sequence[T], rng: random.Random) -> tuple[T, ...]:
    """As many layers as the first has, each from either parent at random where both have one."""
    shared = [flip(*pair, rng) for pair in zip(first, second, strict=False)]
    return (*shared, *first[len(shared) :])


def redrawing(probability: float, rng: random.Random) -> Choose:
    """A fresh draw with the given probability, or where there is no value; else the current one."""
    draw, share = rng.choice, rng.random

    def redraw(value: Any, values: Sequence[Any]) -> Any:
        return draw(values) if value is None or share() < probability else value

    return redraw


def require(allowed: Sequence[T] | range, value: T, place: str, space: str) -> None:
    """Raise ArchitectureError unless `value` is one of the allowed ones."""
    # 2.0 equals 2, but a model cannot have 2.0 heads.
    is_float = isinstance(value, float) and not any(isinstance(v, float) for v in allowed)
    if isinstance(value, bool) or is_float or value not in allowed:
        raise ArchitectureError(
            f"{place} = {shown(value)} is outside space {space}: use {_summary(allowed)}"
        )


def read_fields(fields: Any, kind: type[Any], where: str) -> dict[str, Any]:
    """The mapping; raises ArchitectureError unless it has exactly the dataclass's fields."""
    expected = [field.name for field in dataclasses.fields(kind)]
    if not isinstance(fields, Mapping) or set(fields) != set(expected):
        given = sorted(map(str, fields)) if isinstance(fields, Mapping) else fields
        raise ArchitectureError(
            f"{where}: got {shown(given)}, expected an object with the fields {', '.join(expected)}"
        )
    return dict(fields)


def read_layers(given: Any, kind: Any) -> tuple[Any, ...]:
    """The layers of an architecture from a list of objects with the dataclass's fields."""
    if not isinstance(given, (list, tuple)):
        raise ArchitectureError(f"layers: got {shown(given)}, expected a list of objects")
    return tuple(
        kind(**read_fields(layer, kind, f"layers[{index}]")) for index, layer in enumerate(given)
    )


def _read_list(given: Mapping[str, Any], name: str, of: str) -> tuple[Any, ...]:
    if not isinstance(given[name], (list, tuple)):
        raise ArchitectureError(f"{name}: got {shown(given[name])}, expected a list of {of}")
    return tuple(given[name])


def _summary(allowed: Sequence[Any] | range) -> str:
    if isinstance(allowed, range):
        step = f" step {allowed.step}" if allowed.step != 1 else ""
        return f"{allowed[0]} to {allowed[-1]}{step}"
    return "one of " + ", ".join(str(value) for value in allowed)
