"""A search space of the user's: choices, and a function from a configuration to a torch module.

    SPACE = lpzero.space({"layers": [2, 4], "width": [64, 128]}, build=my_build)

Everything else that a space has follows: drawing and varying architectures, JSON, validation, the
number of architectures; sizes are measured on the module (`lpzero.own.measurement`).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

from lpzero.errors import InputError
from lpzero.own.choices import Choices, read_choices
from lpzero.own.configuration import Configuration, Layer
from lpzero.own.sources import source_digest
from primitives.statistics import STATISTICS, StatisticSource
from spaces.base import Sizes, Space
from spaces.errors import ArchitectureError, BatchError, shown

if TYPE_CHECKING:
    from torch import Tensor, nn

    from lpzero.own.measurement import Measured

Build = Callable[[Any], Any]  # from a Configuration to a torch module
DrawBatch = Callable[[int], Any]  # from a seed to a tensor, one input per row
Count = Callable[[Any], int]  # from a Configuration to a number
Train = Callable[[Any, int], float]  # from a Configuration and a seed to a target

_TOKENS = (4, 32)
_IMAGE_AXES = 4


def space(
    choices: Mapping[str, Any],
    build: Build,
    *,
    name: str | None = None,
    depth: str | None = None,
    batch: Sequence[int] | DrawBatch = _TOKENS,
    vocabulary: int = 256,
    layout: Any = None,
    parameters: Count | None = None,
    flops: Count | None = None,
    train: Train | None = None,
    target: str = "target",
    version: int = 1,
) -> OwnSpace:
    """The space of these choices, whose networks `build` makes from a configuration.

    choices: a list of values for each name; under "per_layer" those that every layer has. depth:
    the choice that is the number of layers, "layers" unless named. batch: (sequences, tokens) of
    ids below `vocabulary`, (images, 3, height, width), or a function from a seed to a tensor.
    layout: where statistics are read in modules that have no taps. parameters, flops: functions of
    a configuration, for where they are not to be measured. train: from a configuration and a seed
    to the trained quality, larger is better, for `lpzero train`; target: what that is called.
    version: raise it when code that `build` imports changes what it builds; its own file is
    watched.
    """
    if not callable(build):
        raise InputError(f"build is {shown(build)}, expected a function of a configuration")
    if train is not None and not callable(train):
        raise InputError(
            f"train is {shown(train)}, expected a function of an architecture and seed"
        )
    draw = batch if callable(batch) else None
    digests = tuple(
        source_digest(function)
        for function in (build, draw, parameters, flops)
        if function is not None
    )
    return OwnSpace(
        name=_name(build) if name is None else _checked(name),
        choices=read_choices(choices, depth),
        source=digests,
        inputs=_drawn_shape(draw) if draw is not None else _checked_shape(batch),
        vocabulary=vocabulary,
        version=version,
        make=build,
        draw=draw,
        layout=layout,
        count=parameters,
        operations=flops,
        train=train,
        target=target,
        train_source=None if train is None else source_digest(train),
    )


@dataclass(frozen=True)
class OwnSpace(Space[Configuration]):
    """A user's space; `source` are digests of the files that its functions are defined in.

    `inputs` is the shape of the default batch.
    """

    name: str
    choices: Choices
    source: tuple[str, ...]
    inputs: tuple[int, ...]
    vocabulary: int
    version: int  # type: ignore[misc]
    make: Build = field(compare=False)
    draw: DrawBatch | None = field(compare=False)
    layout: Any = field(compare=False)
    count: Count | None = field(compare=False)
    operations: Count | None = field(compare=False)
    train: Train | None = field(compare=False, default=None)
    target: str = field(compare=False, default="target")
    train_source: str | None = field(compare=False, default=None)
    reads_text: bool = False

    def identity(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "choices": self.choices.to_json(),
            "source": list(self.source),
            "inputs": list(self.inputs),
            "vocabulary": self.vocabulary,
            "layout": None if self.layout is None else repr(self.layout),
        }

    @property
    def batch_shape(self) -> tuple[int, int]:
        return self.inputs[0], self.inputs[1] if self._is_tokens else 1

    @property
    def _is_tokens(self) -> bool:
        return self.draw is None and len(self.inputs) == len(_TOKENS)

    @cached_property
    def absent_statistics(self) -> frozenset[str]:  # type: ignore[override]
        tapped = {n for n, one in STATISTICS.items() if one.source is StatisticSource.TAP}
        example = self.sample(random.Random(0))
        marked = self._measured(example).taps
        return frozenset(tapped - (marked or self._found(example)))

    def _found(self, arch: Configuration) -> set[str]:
        """The statistics that can be read in a module without taps."""
        from lpzero.statistics.layout_finder import layout_for

        found = layout_for(self, self.build(arch, 0), self.batch(0))
        return set() if found is None else {name for name in "AHS" if found.readings(name)}

    def validate(self, arch: Configuration) -> None:
        if not isinstance(arch, Configuration):
            raise ArchitectureError(f"{shown(arch)} is not an architecture of space {self.name}")
        self.choices.read(arch)

    def cardinality(self) -> int:
        return self.choices.cardinality()

    def sample(self, rng: random.Random) -> Configuration:
        return self.choices.sample(rng)

    def mutate(self, arch: Configuration, probability: float, rng: random.Random) -> Configuration:
        return self.choices.mutate(arch, probability, rng)

    def crossover(
        self, first: Configuration, second: Configuration, rng: random.Random
    ) -> Configuration:
        return self.choices.crossover(first, second, rng)

    def blocks(self, arch: Configuration) -> tuple[Layer, ...]:
        return arch.per_layer or (Layer(()),) * self.depth(arch)

    def with_block(self, arch: Configuration, index: int, block: Layer) -> Configuration:
        return self.choices.with_layer(arch, index, block) if self.choices.layered else arch

    def redraw_block(self, arch: Configuration, index: int, rng: random.Random) -> Configuration:
        return self.choices.redraw_layer(arch, index, rng)

    def from_json(self, fields: Mapping[str, Any]) -> Configuration:
        if not isinstance(fields, Mapping):
            raise ArchitectureError(f"architecture: got {shown(fields)}, expected an object")
        return self.choices.read(fields)

    def to_json(self, arch: Configuration) -> dict[str, Any]:
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in arch.items()
        }

    def build(self, arch: Configuration, seed: int) -> nn.Module:
        import torch

        self.validate(arch)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self._made(arch).eval()

    def _made(self, arch: Configuration) -> nn.Module:
        from torch import nn

        model = self.make(arch)
        if not isinstance(model, nn.Module):
            raise ArchitectureError(
                f"build of space {self.name} gave {type(model).__name__}, expected a torch module"
            )
        return model

    def batch(self, seed: int = 0) -> Tensor:
        from spaces.images import noise_images

        if self.draw is not None:
            return _drawn(self.draw, seed)
        if self._is_tokens:
            return self.draw_batch(self.batch_shape, seed)
        n, channels, height, width = self.inputs
        return noise_images((n, channels, height, width), seed)

    def draw_batch(self, shape: tuple[int, int], seed: int) -> Tensor:
        if not self._is_tokens:
            raise BatchError(f"space {self.name} has a batch of its own, which cannot be changed")
        return super().draw_batch(shape, seed)

    def block_sizes(self, arch: Configuration) -> list[Sizes]:
        return [dict(sizes) for sizes in self._measured(arch).blocks]

    def end_sizes(self, arch: Configuration) -> dict[str, Sizes]:
        return {end: dict(sizes) for end, sizes in self._measured(arch).ends.items()}

    def parameters(self, arch: Configuration) -> int:
        return self._measured(arch).parameters if self.count is None else int(self.count(arch))

    def decoder_parameters(self, arch: Configuration) -> int:
        return self._measured(arch).decoder

    def attention_parameters(self, arch: Configuration) -> int:
        return self._measured(arch).attention

    def flops(self, arch: Configuration, tokens: int | None = None) -> int:
        """Operations of one forward pass of one input, as torch counts them."""
        if self.operations is not None and tokens is None:
            return int(self.operations(arch))
        return self._measured(arch, tokens).flops

    def depth(self, arch: Configuration) -> int:
        known = self.choices.depth
        return len(self._measured(arch).blocks) if known is None else int(arch[known])

    def width(self, arch: Configuration) -> int:
        return self._measured(arch).blocks[0]["width"]

    def block_widths(self, arch: Configuration) -> tuple[int, ...]:
        return self._measured(arch).widths

    def projections(self, arch: Configuration) -> int:
        return self._measured(arch).projections

    def traits(self, arch: Configuration) -> dict[str, float]:
        """For surrogates: the share of each text among a choice's values, the mean of numbers."""
        found: dict[str, float] = {}
        for name, value in arch.items():
            values = value if isinstance(value, tuple) else (value,)
            if isinstance(values[0], str):
                found |= {f"{name} {v}": values.count(v) / len(values) for v in set(values)}
            elif isinstance(value, tuple):
                found[f"mean {name}"] = sum(values) / len(values)
                found |= {f"least {name}": float(min(values)), f"most {name}": float(max(values))}
        return found

    def _measured(self, arch: Configuration, tokens: int | None = None) -> Measured:
        return _measured(self, arch, tokens)


@lru_cache(maxsize=1 << 16)
def _measured(of: OwnSpace, arch: Configuration, tokens: int | None) -> Measured:
    """The sizes of an architecture's network, measured once in a process."""
    from lpzero.own.measurement import measure

    inputs = of.batch(0) if tokens is None else of.draw_batch((2, tokens), 0)
    found = measure(lambda: of.build(arch, 0), inputs[:1], of.layout)
    stated = of.choices.depth
    if stated is not None and len(found.blocks) != arch[stated]:
        raise ArchitectureError(
            f"{stated} is {arch[stated]}, but the module that build gives has"
            f" {len(found.blocks)} blocks: name them in its attribute `blocks`"
        )
    return found


def _name(build: Build) -> str:
    module = str(getattr(build, "__module__", "own")).rpartition(".")[2]
    function = str(getattr(build, "__name__", type(build).__name__))
    text = f"{module}-{function}".replace("_", "-")
    return "".join(c for c in text if c.isalnum() or c == "-").strip("-") or "own"


def _checked(name: str) -> str:
    if not isinstance(name, str) or not name or not all(c.isalnum() or c in "-_." for c in name):
        raise InputError(f"{shown(name)} cannot be a space's name; use letters, digits and hyphens")
    return name


def _checked_shape(shape: Any) -> tuple[int, ...]:
    is_shape = isinstance(shape, (tuple, list)) and len(shape) in (len(_TOKENS), _IMAGE_AXES)
    if not is_shape or not all(type(side) is int and side >= 1 for side in shape) or shape[0] < 2:
        raise InputError(
            f"batch is {shown(shape)}; expected (sequences, tokens), (images, 3, height, width), at"
            " least two of them, or a function from a seed to a tensor"
        )
    return tuple(shape)


def _drawn_shape(draw: DrawBatch) -> tuple[int, ...]:
    return tuple(_drawn(draw, 0).shape)


def _drawn(draw: DrawBatch, seed: int) -> Tensor:
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        found = draw(seed)
    if not isinstance(found, torch.Tensor) or found.ndim < 2 or len(found) < 2:
        raise InputError("the function given as batch gave no tensor with two inputs or more")
    return found
