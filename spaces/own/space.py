"""A search space of the user's: choices, and a function from a configuration to a torch module.

    SPACE = lpzero.space({"layers": [2, 4], "width": [64, 128]}, build=my_build)

Everything else that a space has follows: drawing and varying architectures, JSON, validation, the
number of architectures. Sizes are measured on the module, by the function `measure` that the space
is given: what reads a network's statistics is not part of this package (see `lpzero.own`).
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spaces import memory
from spaces.base import Sizes
from spaces.choices import Choice, ChoiceSpace, Choose, Columns, Drawn
from spaces.errors import ArchitectureError, BatchError, DeclarationError, MemoryLimitError, shown
from spaces.own.configuration import Choices, Configuration, Layer
from spaces.user_modules import digest_of

if TYPE_CHECKING:
    from torch import Tensor, nn

Build = Callable[[Any], Any]  # from a Configuration to a torch module
DrawBatch = Callable[[int], Any]  # from a seed to a tensor, one input per row
Count = Callable[[Any], int]  # from a Configuration to a number
Train = Callable[[Any, int], float]  # from a Configuration and a seed to a target
Holds = Callable[[Any], bool]  # whether a Configuration is one of the space's

_DRAWS = 1000  # until a space counts as one without architectures
_MOST_COUNTED = 100_000  # configurations that are counted one by one

_TOKEN_AXES, _IMAGE_AXES = 2, 4


@dataclass(frozen=True, slots=True)
class MeasuredSizes:
    """What a network states of itself, in numbers.

    blocks: params and width of each block, and its ffn and heads where taps A and S show them in
    every block. decoder: parameters of the blocks and the norms after them. attention: parameters
    of the blocks outside norms and feed-forward layers. projections: taps H. absent: the statistics
    that cannot be read at taps, nor found without them.
    """

    parameters: int
    decoder: int
    attention: int
    flops: int
    projections: int
    blocks: tuple[Sizes, ...]
    widths: tuple[int, ...]
    ends: dict[str, Sizes]
    absent: frozenset[str]


# From a function that makes the module, one input and the user's layout to its sizes.
Measure = Callable[[Callable[[], Any], Any, Any], MeasuredSizes]

# From a function that makes the module and one input to its operations, without numbers.
CountPass = Callable[[Callable[[], Any], Any], "int | None"]


class OwnChoice(Choice):
    """A choice by its name alone, which may be that of a mapping's method."""

    def get(self, arch: Mapping[str, Any]) -> Any:
        return arch[self.name]


class OwnLayers(Columns):
    """Layers whose number is a choice of its own, `counts` the function that reads it."""

    def vary(self, value: Any, drawn: Drawn, choose: Choose) -> tuple[Any, ...]:
        n_layers: Any = self.counts
        return self.vary_columns(value, n_layers(drawn), drawn, choose)


@dataclass(frozen=True)
class OwnSpace(ChoiceSpace[Configuration]):
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
    measure: Measure = field(compare=False)
    operations_of: CountPass = field(compare=False)
    draw: DrawBatch | None = field(compare=False)
    layout: Any = field(compare=False)
    count: Count | None = field(compare=False)
    operations: Count | None = field(compare=False)
    train: Train | None = field(compare=False, default=None)
    target: str = field(compare=False, default="target")
    train_source: str | None = field(compare=False, default=None)
    where: Holds | None = field(compare=False, default=None)
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
    def quick_counters(self) -> list[str]:
        """The counters for which no network is run: a layout without memory, or what is stated."""
        stated = {"depth": self.choices.depth, "flops": self.operations}
        return ["parameters", *(name for name, known in stated.items() if known is not None)]

    @property
    def batch_shape(self) -> tuple[int, int]:
        return self.inputs[0], self.inputs[1] if self._is_tokens else 1

    @property
    def _is_tokens(self) -> bool:
        return self.draw is None and len(self.inputs) == _TOKEN_AXES

    @cached_property
    def absent_statistics(self) -> frozenset[str]:  # type: ignore[override]
        return self._measured(self.sample(random.Random(0))).absent

    @cached_property
    def fields(self) -> tuple[Choice | OwnLayers, ...]:
        of, names = self.choices, tuple(name for name, _ in self.choices.layered)
        layered = tuple(OwnChoice(*values) for values in of.layered)
        return (
            *(OwnChoice(name, values, of_base=name == of.depth) for name, values in of.whole),
            OwnLayers("per_layer", of.n_layers, partial(_layer, names), layered),  # type: ignore[arg-type]
        )

    def sample(self, rng: random.Random) -> Configuration:
        draw = super().sample
        return self._allowed(lambda: draw(rng))

    def mutate(self, arch: Configuration, probability: float, rng: random.Random) -> Configuration:
        draw = super().mutate
        return self._allowed(lambda: draw(arch, probability, rng), arch)

    def crossover(
        self, first: Configuration, second: Configuration, rng: random.Random
    ) -> Configuration:
        draw = super().crossover
        return self._allowed(lambda: draw(first, second, rng), first)

    def _allowed(
        self, draw: Callable[[], Configuration], otherwise: Configuration | None = None
    ) -> Configuration:
        """The first draw that is not refused; `otherwise` if there is none in many."""
        reason: str | None = None
        for _ in range(_DRAWS):
            drawn = draw()
            reason = self.refusal(drawn)
            if reason is None:
                return drawn
        if otherwise is not None:
            return otherwise
        raise DeclarationError(
            f"space {self.name}: none of {_DRAWS:,} draws is a configuration of it: {reason}"
        )

    def refusal(self, arch: Configuration) -> str | None:
        """Why the configuration is none of the space's; None if it is one."""
        if self.where is None:
            return None
        try:
            holds = self.where(self.shown_to_where(arch))
        except DeclarationError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            raise DeclarationError(
                f"where of space {self.name} fails on {arch}: {reason}"
            ) from error
        return None if holds else f"where of space {self.name} refuses {arch}"

    def shown_to_where(self, arch: Configuration) -> Any:
        """What the constraint is given of an architecture."""
        return arch

    def of_fields(self, fields: Mapping[str, Any]) -> Configuration:
        return self.choices.configuration(fields)

    def validate(self, arch: Configuration) -> None:
        if not isinstance(arch, Configuration):
            raise ArchitectureError(f"{shown(arch)} is not an architecture of space {self.name}")
        self.choices.read(arch)
        self._check_allowed(arch)

    def _check_allowed(self, arch: Configuration) -> None:
        reason = self.refusal(arch)
        if reason is not None:
            raise ArchitectureError(reason)

    def cardinality(self) -> int:
        """The number of configurations, before the constraint if there are very many."""
        every = self.choices.cardinality()
        if self.where is None or self.choices.layered or every > _MOST_COUNTED:
            return every
        names = self.choices.names
        rows = itertools.product(*(values for _, values in self.choices.whole))
        archs = (self.of_fields(dict(zip(names, row, strict=True))) for row in rows)
        return sum(OwnSpace.refusal(self, arch) is None for arch in archs)

    def blocks(self, arch: Configuration) -> tuple[Layer, ...]:
        return arch.per_layer or (Layer(()),) * self.depth(arch)

    def with_block(self, arch: Configuration, index: int, block: Layer) -> Configuration:
        return super().with_block(arch, index, block) if self.choices.layered else arch

    def redraw_block(self, arch: Configuration, index: int, rng: random.Random) -> Configuration:
        if not self.choices.layered:
            return arch
        return self._allowed(lambda: self.draw_block(arch, index, rng), arch)

    def from_json(self, fields: Mapping[str, Any]) -> Configuration:
        if not isinstance(fields, Mapping):
            raise ArchitectureError(f"architecture: got {shown(fields)}, expected an object")
        arch = self.choices.read(fields)
        self._check_allowed(arch)
        return arch

    def to_json(self, arch: Configuration) -> dict[str, Any]:
        return {
            name: list(value) if isinstance(value, tuple) else value for name, value in arch.items()
        }

    def build(self, arch: Configuration, seed: int) -> nn.Module:
        import torch

        self.validate(arch)
        if torch.get_default_device().type != "meta":
            self.check_size(arch, self.inputs)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return self._made(arch).eval()

    def check_size(self, arch: Configuration, shape: tuple[int, ...]) -> None:
        """Raise MemoryLimitError unless the network and a pass of a batch of that shape fit."""
        _check_size(self, arch, shape)

    def _made(self, arch: Configuration) -> nn.Module:
        from torch import nn

        from spaces.outlines import counted

        with counted(f"a network of {self.name}"):
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
        if shape != self.inputs:
            self.check_size(self.choices.smallest(), shape)
        return super().draw_batch(shape, seed)

    def block_sizes(self, arch: Configuration) -> list[Sizes]:
        return [dict(sizes) for sizes in self._measured(arch).blocks]

    def end_sizes(self, arch: Configuration) -> dict[str, Sizes]:
        return {end: dict(sizes) for end, sizes in self._measured(arch).ends.items()}

    def parameters(self, arch: Configuration) -> int:
        if self.count is not None:
            return int(self.count(arch))
        laid_out = _laid_out_parameters(self, arch)
        return self._measured(arch).parameters if laid_out is None else laid_out

    def decoder_parameters(self, arch: Configuration) -> int:
        return self._measured(arch).decoder

    def attention_parameters(self, arch: Configuration) -> int:
        return self._measured(arch).attention

    def flops(self, arch: Configuration, tokens: int | None = None) -> int:
        """Operations of one forward pass of one input, as torch counts them."""
        if self.operations is not None and tokens is None:
            return int(self.operations(arch))
        laid_out = _laid_out_flops(self, arch, tokens)
        return self._measured(arch, tokens).flops if laid_out is None else laid_out

    def depth(self, arch: Configuration) -> int:
        name = self.choices.depth
        return len(self._measured(arch).blocks) if name is None else int(arch[name])

    def width(self, arch: Configuration) -> int:
        return self._measured(arch).blocks[0]["width"]

    def block_widths(self, arch: Configuration) -> tuple[int, ...]:
        return self._measured(arch).widths

    def projections(self, arch: Configuration) -> int:
        return self._measured(arch).projections

    def traits(self, arch: Configuration) -> dict[str, float]:
        """For surrogates: the share of each text among a choice's values, the mean of numbers."""
        numbers: dict[str, float] = {}
        for name, value in arch.items():
            values = value if isinstance(value, tuple) else (value,)
            if isinstance(values[0], str):
                numbers |= {f"{name} {v}": values.count(v) / len(values) for v in set(values)}
            elif isinstance(value, tuple):
                numbers[f"mean {name}"] = sum(values) / len(values)
                numbers |= {f"least {name}": float(min(values)), f"most {name}": float(max(values))}
        return numbers

    def _measured(self, arch: Configuration, tokens: int | None = None) -> MeasuredSizes:
        return _measured(self, arch, tokens)


@lru_cache(maxsize=1 << 16)
def _measured(of: OwnSpace, arch: Configuration, tokens: int | None) -> MeasuredSizes:
    """The sizes of an architecture's network, measured once in a process."""
    inputs = of.batch(0) if tokens is None else of.draw_batch((2, tokens), 0)
    sizes = of.measure(lambda: of.build(arch, 0), inputs[:1], of.layout)
    stated = of.choices.depth
    if stated is not None and len(sizes.blocks) != arch[stated]:
        raise ArchitectureError(
            f"{stated} is {arch[stated]}, but the module that build gives has"
            f" {len(sizes.blocks)} blocks: name them in its attribute `blocks`"
        )
    return sizes


@lru_cache(maxsize=1 << 16)
def _laid_out_parameters(of: OwnSpace, arch: Configuration) -> int | None:
    """The number of parameters of the network, laid out without memory; None if it cannot be."""
    from spaces.outlines import outline

    try:
        model = outline(lambda: of.make(arch), f"a network of {of.name}")
        return sum(p.numel() for p in model.parameters())
    except MemoryLimitError:
        raise
    except Exception:  # a module that needs numbers; it is measured
        return None


@lru_cache(maxsize=1 << 16)
def _laid_out_flops(of: OwnSpace, arch: Configuration, tokens: int | None) -> int | None:
    """The operations of a pass of one input of the network, laid out without memory."""
    inputs = of.batch(0) if tokens is None else of.draw_batch((2, tokens), 0)
    return of.operations_of(lambda: of.build(arch, 0), inputs[:1])


@lru_cache(maxsize=1 << 16)
def _check_size(of: OwnSpace, arch: Configuration, shape: tuple[int, ...]) -> None:
    try:
        laid_out_fits(of, arch, shape)
    except MemoryLimitError:
        raise
    except Exception:  # a module that needs numbers; it is counted while it is really built
        return


def laid_out_fits(of: OwnSpace, arch: Configuration, shape: tuple[int, ...]) -> None:
    """Raise MemoryLimitError unless the network, laid out without memory, and a pass of it fit."""
    import torch

    from spaces.outlines import check_pass, outline

    name = f"a network of {of.name}"
    kind = torch.int64 if len(shape) == _TOKEN_AXES else torch.float32
    inputs = torch.empty(shape, dtype=kind, device="meta")
    check_pass(outline(lambda: of.make(arch), name), inputs, name)


def _layer(names: tuple[str, ...], *values: Any) -> Layer:
    return Layer(tuple(zip(names, values, strict=True)))


def name_of(build: Build) -> str:
    """A name for the space from that of its function."""
    module = str(getattr(build, "__module__", "own")).rpartition(".")[2]
    function = str(getattr(build, "__name__", type(build).__name__))
    text = f"{module}-{function}".replace("_", "-")
    return "".join(c for c in text if c.isalnum() or c == "-").strip("-") or "own"


def checked_name(name: str) -> str:
    """The name; raise DeclarationError unless it can be a space's."""
    if not isinstance(name, str) or not name or not all(c.isalnum() or c in "-_." for c in name):
        raise DeclarationError(
            f"{shown(name)} cannot be a space's name; use letters, digits and hyphens"
        )
    return name


def checked_shape(shape: Any) -> tuple[int, ...]:
    """The shape of a batch; raise DeclarationError for what is none."""
    is_shape = isinstance(shape, (tuple, list)) and len(shape) in (_TOKEN_AXES, _IMAGE_AXES)
    if not is_shape or not all(type(side) is int and side >= 1 for side in shape) or shape[0] < 2:
        raise DeclarationError(
            f"batch is {shown(shape)}; expected (sequences, tokens), (images, 3, height, width), at"
            " least two of them, or a function from a seed to a tensor"
        )
    memory.check_batch(tuple(shape))
    return tuple(shape)


def drawn_shape(draw: DrawBatch) -> tuple[int, ...]:
    """The shape of the batch that the user's function draws."""
    return tuple(_drawn(draw, 0).shape)


def _drawn(draw: DrawBatch, seed: int) -> Tensor:
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        drawn = draw(seed)
    if not isinstance(drawn, torch.Tensor) or drawn.ndim < 2 or len(drawn) < 2:
        raise DeclarationError("the function given as batch gave no tensor with two inputs or more")
    return drawn


def source_digest(function: Callable[..., Any]) -> str:
    """SHA-256 of the source file that defines the function.

    Where there is no file, as in a notebook, of the function's own source, else of its byte code.
    What the file imports is not part of it.
    """
    while isinstance(function, partial):
        function = function.func
    function = inspect.unwrap(function)
    is_plain = inspect.isroutine(function) or inspect.isclass(function)
    defined: Any = function if is_plain else type(function)
    digest = digest_of(str(getattr(defined, "__module__", "")))
    if digest is not None:  # the file may have changed since it was run
        return digest
    try:
        return hashlib.sha256(Path(inspect.getfile(defined)).read_bytes()).hexdigest()
    except (OSError, TypeError):
        pass
    try:
        return hashlib.sha256(inspect.getsource(defined).encode()).hexdigest()
    except (OSError, TypeError):
        code = getattr(defined, "__code__", None)
        content = [] if code is None else [code.co_code, code.co_names, code.co_varnames]
        return hashlib.sha256(repr([defined.__qualname__, *content]).encode()).hexdigest()
