"""Where the statistics of a model's blocks are read: by taps, or by the names of sub-modules.

Models of our spaces have taps (see `spaces.taps`). For any other model a `Layout` names the modules
instead; `lpzero.statistics.layout_finder` finds one by running the model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from difflib import get_close_matches
from typing import Any, Literal

import torch
from torch import Tensor, nn

from lpzero.errors import InputError
from lpzero.statistics import StatisticsError
from spaces.errors import shown
from spaces.taps import EMBEDDING, HEAD, EndWeight

Part = Literal["attention", "feed-forward", "pooling"]
TAPPED = ("A", "H", "S")
_LOOK_ALIKE = 6  # how many names a message lists


@dataclass(frozen=True, slots=True)
class Reading:
    """What is read of a module of a block when it runs.

    element: which of several outputs. is_input: what enters the module instead. widths: the
    features consist of pieces of these widths, each a tensor of its own, as in a projection of
    queries, keys and values at once; groups: how often the pieces repeat, as for each head.
    """

    module: str
    element: int = 0
    is_input: bool = False
    widths: tuple[int, ...] = ()
    groups: int = 1

    def tensors(self, entered: Tensor | None, output: Any) -> list[Tensor]:
        """The tensors (..., features), from what entered the module and what it returned."""
        found = entered if self.is_input else _element(output, self.element)
        if not isinstance(found, Tensor):
            gives = f"gives {type(found).__name__} in place {self.element}"
            raise StatisticsError(f"module {self.module} {gives}, expected a tensor")
        if not self.widths:
            return [found]
        if found.shape[-1] != self.groups * sum(self.widths):
            expected = f"{self.groups} times {self.widths}"
            raise InputError(
                f"module {self.module} gives {found.shape[-1]} features, the layout has {expected}"
            )
        grouped = found.unflatten(-1, (self.groups, sum(self.widths)))
        return [piece.flatten(-2) for piece in grouped.split(list(self.widths), dim=-1)]


Named = str | Reading


@dataclass(frozen=True, slots=True)
class Layout:
    """The parts of a model and of its blocks, by dotted names.

    Inside a block: feed_forward, pooling: the beginnings of the names of the MLP's parameters, and
    of those between stages; every other matrix belongs to the attention. heads: modules whose input
    is the concatenated outputs of all heads. mixing: modules whose output is that, used if none of
    `heads` exists. Of these, names that do not exist are ignored. A, H, S: modules, in addition to
    the taps, whose output is FFN activations (B, T, f), what feeds the heads (B, T, f), attention
    probabilities (B, heads, T, T); a `Reading` says more than a name.
    Inside the model: blocks (found if not given); embedding, head: modules or parameters before the
    first block, and after the last.
    """

    feed_forward: tuple[str, ...] = (
        "feed_forward",
        "mlp",
        "ffn",
        "linear1",
        "linear2",
        "intermediate",
        "output",
        "cell",
        "convolution",
    )
    pooling: tuple[str, ...] = ("pool",)
    heads: tuple[str, ...] = ("attention.c_proj", "attention.output", "mixing.output")
    mixing: tuple[str, ...] = ("mixing",)
    A: tuple[Named, ...] = ()
    S: tuple[Named, ...] = ()
    H: tuple[Named, ...] = ()
    blocks: tuple[str, ...] = ()
    embedding: tuple[str, ...] = ()
    head: tuple[str, ...] = ()

    def part(self, name: str) -> Part:
        """Which part of a block the parameter of that name inside it belongs to."""
        if _begins(name, self.feed_forward):
            return "feed-forward"
        return "pooling" if _begins(name, self.pooling) else "attention"

    def readings(self, statistic: str) -> list[Reading]:
        """Where the statistic is read, in addition to the taps."""
        named: tuple[Named, ...] = {"A": self.A, "S": self.S, "H": self.H}.get(statistic, ())
        return [Reading(one) if isinstance(one, str) else one for one in named]

    def ends(self, model: nn.Module) -> dict[str, list[EndWeight]]:
        """The weights of the embedding and of the head; nothing if neither is named.

        Their features are the last axis of an `nn.Embedding`, of a plain parameter and of weights
        at the head, else the first.
        """
        if not self.embedding and not self.head:
            return {}
        return {
            EMBEDDING: [w for name in self.embedding for w in _weights(model, name, False)],
            HEAD: [w for name in self.head for w in _weights(model, name, True)],
        }

    def head_module(self, model: nn.Module) -> nn.Module | None:
        """The module whose input is the final hidden state, if the layout names one."""
        modules = dict(model.named_modules())
        return next((modules[name] for name in self.head if name in modules), None)

    def check(self, model: nn.Module, blocks: Sequence[nn.Module]) -> None:
        """Raise InputError unless every name for A, H, S and the ends is in the model."""
        inside = [dict(block.named_modules()) for block in blocks]
        known = {name for block in inside for name in block if name}
        for statistic in TAPPED:
            for reading in self.readings(statistic):
                if reading.module not in known:
                    raise InputError(
                        f"the layout reads {statistic} at {reading.module!r}, which no block of"
                        f" {type(model).__name__} has; {near(reading.module, known)}"
                    )
        whole = _everything(model)
        for end, names in ((EMBEDDING, self.embedding), (HEAD, self.head)):
            for name in names:
                if name not in whole:
                    raise InputError(
                        f"the layout names {name!r} at the {end}, which"
                        f" {type(model).__name__} does not have; {near(name, whole)}"
                    )

    def find_blocks(self, model: nn.Module) -> list[nn.Module]:
        """The named blocks, else `model.blocks` or the largest ModuleList's members."""
        if not self.blocks:
            return find_blocks(model)
        modules = dict(model.named_modules())
        for name in self.blocks:
            if name not in modules:
                raise InputError(
                    f"the layout has a block {name!r}, which {type(model).__name__} does not have;"
                    f" {near(name, modules)}"
                )
        return [modules[name] for name in self.blocks]

    def to_json(self) -> dict[str, Any]:
        """The fields that are not the default ones, as plain JSON values."""
        usual = Layout()
        return {
            field.name: [_to_json(one) for one in getattr(self, field.name)]
            for field in fields(self)
            if getattr(self, field.name) != getattr(usual, field.name)
        }


def layout_from_json(given: Any) -> Layout:
    """The layout whose `to_json` gives these fields; raises InputError for anything else."""
    known = {field.name for field in fields(Layout)}
    if not isinstance(given, Mapping) or not set(given) <= known:
        unknown = sorted(set(map(str, given)) - known) if isinstance(given, Mapping) else given
        raise InputError(
            f"a layout has the fields {', '.join(sorted(known))}; got {shown(unknown)}"
        )
    for name, entries in given.items():
        if not isinstance(entries, list):
            raise InputError(f"layout, {name}: got {shown(entries)}, expected a list of names")
    return Layout(
        **{name: tuple(_from_json(name, one) for one in of) for name, of in given.items()}
    )


def find_blocks(model: nn.Module) -> list[nn.Module]:
    """`model.blocks`, else the members of the ModuleList with the most parameters."""
    own = getattr(model, "blocks", ())
    if isinstance(own, Iterable) and (blocks := list(own)):  # one module may be called so, too
        return blocks
    lists: list[nn.Module] = [m for m in model.modules() if isinstance(m, nn.ModuleList)]
    if not lists:
        raise StatisticsError(
            f"{type(model).__name__} has no `blocks` and no nn.ModuleList; name its blocks in"
            " Layout.blocks"
        )
    largest = max(lists, key=lambda found: sum(p.numel() for p in found.parameters()))
    blocks = list(largest.children())
    if not blocks:
        raise StatisticsError(f"{type(model).__name__} has no blocks: its list of layers is empty")
    return blocks


def near(name: str, known: Iterable[str]) -> str:
    """The names that look alike, for a message: by spelling, or else by their last part."""
    names = sorted(filter(None, known))
    found = get_close_matches(name, names, _LOOK_ALIKE, 0.5)
    last = name.rpartition(".")[2].lower()
    found += [one for one in names if last and last in one.lower() and one not in found]
    listed = found or names
    return f"look at {', '.join(listed[:_LOOK_ALIKE])}" if listed else "it has no modules"


_HINTS = {
    "A": ("act", "gelu", "relu", "silu"),
    "H": ("query", "key", "value", "qkv", "q_proj", "k_proj", "v_proj", "c_attn"),
    "S": ("softmax", "prob", "attn_drop", "attn", "attention"),
    "heads": ("out_proj", "o_proj", "c_proj", "out", "output", "dense", "proj"),
}


def look_alikes(blocks: Sequence[nn.Module], tap: str) -> str:
    """Modules of the blocks whose names suggest the tap, for a message."""
    names = list(dict.fromkeys(n for block in blocks for n, _ in block.named_modules() if n))
    last = {name: name.rpartition(".")[2].lower() for name in names}
    found = [name for hint in _HINTS[tap] for name in names if hint in last[name]]
    listed = list(dict.fromkeys(found))[:_LOOK_ALIKE]
    return f"; modules that look alike: {', '.join(listed)}" if listed else ""


def _element(output: Any, element: int) -> Any:
    if isinstance(output, (tuple, list)):
        return output[element] if element < len(output) else None
    if isinstance(output, Mapping):
        return next(iter(output.values()), None)
    return output if element == 0 else None


def _begins(name: str, beginnings: Iterable[str]) -> bool:
    return any(name == one or name.startswith(f"{one}.") for one in beginnings)


def _everything(model: nn.Module) -> set[str]:
    parameters = (name for name, _ in model.named_parameters(remove_duplicate=False))
    return {name for name, _ in model.named_modules(remove_duplicate=False)} | set(parameters)


def _weights(model: nn.Module, name: str, at_head: bool) -> Iterator[EndWeight]:
    modules = dict(model.named_modules(remove_duplicate=False))
    if name not in modules:
        parameter = model.get_parameter(name)
        yield EndWeight(parameter, parameter.ndim - 1)
        return
    for module in modules[name].modules():
        for parameter in module.parameters(recurse=False):
            if parameter.ndim >= 2:
                is_last = at_head or isinstance(module, nn.Embedding)
                yield EndWeight(parameter, parameter.ndim - 1 if is_last else 0)


def is_norm(module: nn.Module) -> bool:
    """Whether the module is a norm: a LayerNorm, or a leaf whose weight has one axis.

    That leaf is called a norm, as every published root-mean-square norm is. A BatchNorm is none
    here: it does not depend on its input alone.
    """
    if isinstance(module, (nn.LayerNorm, nn.modules.batchnorm._BatchNorm)):
        return isinstance(module, nn.LayerNorm)
    own = dict(module.named_parameters(recurse=False))
    is_leaf = next(module.children(), None) is None
    is_vector = "weight" in own and all(one.ndim == 1 for one in own.values())
    return is_leaf and is_vector and "norm" in type(module).__name__.lower()


def _to_json(one: Named) -> Any:
    if isinstance(one, str):
        return one
    usual = asdict(Reading(one.module))
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(one).items()
        if name == "module" or value != usual[name]
    }


def _from_json(field: str, given: Any) -> Any:
    if isinstance(given, str):
        return given
    known = {one.name for one in fields(Reading)}
    if field not in TAPPED or not isinstance(given, Mapping) or not set(given) <= known:
        raise InputError(f"layout, {field}: got {shown(given)}, expected a name")
    try:
        made = dict(given)
        return Reading(
            str(made.pop("module")),
            widths=tuple(int(width) for width in made.pop("widths", ())),
            element=int(made.pop("element", 0)),
            is_input=bool(made.pop("is_input", False)),
            groups=int(made.pop("groups", 1)),
        )
    except (KeyError, OverflowError, TypeError, ValueError) as error:
        raise InputError(f"layout, {field}: {shown(given)} is not a reading: {error}") from None


def first_tensor(output: Any) -> Tensor:
    """The output of a module if it is a tensor, else the first tensor with several axes in it."""
    if isinstance(output, Mapping):
        found = next((one for one in output.values() if _has_axes(one)), None)
    else:
        found = output[0] if isinstance(output, (tuple, list)) else output
    if not isinstance(found, torch.Tensor):
        kind = type(output if found is None else found).__name__
        raise StatisticsError(f"a block gives {kind}, expected a tensor")
    return found


def _has_axes(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.ndim >= 2
