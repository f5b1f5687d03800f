"""The layout of any torch transformer, found by running it once and looking at what happens.

No list of class names: a block's matrices are put in the order in which they run. Those that share
the first input feed the heads (H), the next one reads the heads' outputs, the rest is the MLP. A
module whose output has rows of probabilities, queries x keys, gives S; one without parameters that
changes what a matrix of the MLP put out gives A. Where one matrix makes queries, keys and values at
once, the gradient of the probabilities tells which of its outputs are which. What runs before the
first block is the embedding; what runs after the last and has matrices is the head.

On the device meta, where tensors have no numbers, probabilities are what a softmax made, and a
matrix that makes queries, keys and values at once has them in this order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn

from lpzero.errors import InputError
from lpzero.statistics import StatisticsError
from lpzero.statistics.inputs import Inputs, call, read_inputs
from lpzero.statistics.isolation import untouched
from lpzero.statistics.layout import Layout, Named, Reading, first_tensor, is_norm
from spaces.base import Space
from spaces.taps import Tap

_QUERY, _KEY, _VALUE = "qkv"


def find_layout(model: nn.Module, batch: Any, given: Layout | None = None) -> Layout:
    """The layout of the model, as one input of the batch shows it.

    Names that `given` has are kept. A model with taps keeps them: only its blocks are found.
    """
    given = given or Layout()
    blocks = given.find_blocks(model)
    names = _names(model, blocks)
    if any(isinstance(module, Tap) for block in blocks for module in block.modules()):
        return given
    inputs = read_inputs(batch, model)
    run = _run(model, blocks, inputs[slice(0, 1)])
    layout = _of_blocks([_BlockRun(run, block) for block in blocks])
    embedding, head = _ends(model, blocks, run)
    usual = Layout()
    return Layout(
        feed_forward=_chosen(given.feed_forward, usual.feed_forward, layout.feed_forward),
        pooling=given.pooling,
        heads=_chosen(given.heads, usual.heads, layout.heads),
        mixing=_chosen(given.mixing, usual.mixing, ()),
        A=given.A or layout.A,
        S=given.S or layout.S,
        H=given.H or layout.H,
        blocks=tuple(names),
        embedding=given.embedding or embedding,
        head=given.head or head,
    )


def layout_for(space: Space[Any], model: nn.Module, batch: Any) -> Layout | None:
    """The layout of a space's model that has no taps; None for a model that has them."""
    stated = getattr(space, "layout", None)
    given = stated if isinstance(stated, Layout) else Layout()
    blocks = given.find_blocks(model)
    if any(isinstance(module, Tap) for block in blocks for module in block.modules()):
        return None
    return find_layout(model, batch, given)


def _chosen(
    given: tuple[str, ...], usual: tuple[str, ...], of_run: tuple[str, ...]
) -> tuple[str, ...]:
    return given if given != usual else of_run


def _names(model: nn.Module, blocks: Sequence[nn.Module]) -> list[str]:
    names = {id(module): name for name, module in model.named_modules()}
    return [names[id(block)] for block in blocks]


@dataclass(frozen=True, slots=True, eq=False)
class _Call:
    """One run of a module: when it began and ended, what entered it, and what it returned."""

    module: nn.Module
    began: int
    ended: int
    entered: Tensor | None
    output: Any

    @property
    def is_matrix(self) -> bool:
        """Whether it multiplies by a matrix of its own."""
        if isinstance(self.module, nn.Embedding):
            return False
        return any(weight.ndim >= 2 for weight in self.module.parameters(recurse=False))


@dataclass(slots=True)
class _Run:
    """Every call of a pass, in the order in which they ended, and what the model returned."""

    calls: list[_Call] = field(default_factory=list)
    began: dict[int, list[int]] = field(default_factory=dict)
    clock: int = 0
    output: Any = None

    def tick(self) -> int:
        self.clock += 1
        return self.clock

    def of(self, module: nn.Module) -> list[_Call]:
        return [call for call in self.calls if call.module is module]


def _run(model: nn.Module, blocks: Sequence[nn.Module], inputs: Inputs) -> _Run:
    run = _Run()

    def enter(module: nn.Module, _: Any, __: Any) -> None:
        run.began.setdefault(id(module), []).append(run.tick())

    def leave(module: nn.Module, args: Any, named: dict[str, Any], output: Any) -> None:
        tensors = [x for x in (*args, *named.values()) if isinstance(x, Tensor)]
        began = run.began[id(module)].pop()
        run.calls.append(_Call(module, began, run.tick(), next(iter(tensors), None), output))

    weights = list(model.parameters())
    with untouched(model, weights, next(model.parameters()).device), ExitStack() as undo:
        for module in model.modules():
            before = module.register_forward_pre_hook(enter, with_kwargs=True)
            undo.callback(before.remove)
            undo.callback(module.register_forward_hook(leave, with_kwargs=True).remove)
        try:
            run.output = call(model, inputs)
        except (StatisticsError, InputError):
            raise
        except Exception as error:  # whatever the model does with such a batch
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
            raise InputError(f"{type(model).__name__} cannot run on the batch: {reason}") from error
    for index, block in enumerate(blocks):
        if len(run.of(block)) != 1:
            raise StatisticsError(
                f"block {index} of {type(model).__name__} runs {len(run.of(block))} times in a"
                " pass, expected once; name the blocks in Layout.blocks"
            )
    return run


class _BlockRun:
    """What ran inside one block, with the names in the block."""

    def __init__(self, run: _Run, block: nn.Module) -> None:
        (whole,) = run.of(block)
        self.names = {id(module): str(name) for name, module in block.named_modules() if name}
        self.calls = [
            call
            for call in run.calls
            if id(call.module) in self.names and whole.began < call.began < whole.ended
        ]
        self.n_tokens = first_tensor(whole.output).shape[1]

    def name(self, call: _Call) -> str:
        return self.names[id(call.module)]

    def probabilities(self) -> tuple[Reading, Tensor] | None:
        """Where S is read, and S itself: the first output whose rows are probabilities."""
        for ran in self.calls:
            outputs = ran.output if isinstance(ran.output, (tuple, list)) else [ran.output]
            for element, tensor in enumerate(outputs):
                if _is_probabilities(tensor, self.n_tokens):
                    return Reading(self.name(ran), element), tensor
        return None

    def matrices(self) -> list[_Call]:
        """The calls of modules with a matrix, by when they began."""
        return sorted((call for call in self.calls if call.is_matrix), key=lambda call: call.began)


@dataclass(frozen=True, slots=True)
class _BlockLayout:
    feed_forward: tuple[str, ...]
    heads: tuple[str, ...]
    A: tuple[Named, ...]
    S: tuple[Named, ...]
    H: tuple[Named, ...]


def _of_blocks(blocks: Sequence[_BlockRun]) -> _BlockLayout:
    """The layout that the blocks have in common: each name that one of them has."""
    layouts = [_of_block(block) for block in blocks]

    def every(kind: str) -> tuple[Any, ...]:
        return tuple(dict.fromkeys(name for layout in layouts for name in getattr(layout, kind)))

    return _BlockLayout(*(every(kind) for kind in ("feed_forward", "heads", "A", "S", "H")))


def _of_block(block: _BlockRun) -> _BlockLayout:
    probabilities = block.probabilities()
    matrices = block.matrices()
    feeding, rest = _feeding(matrices, probabilities is not None)
    heads = rest[:1] if feeding and not _is_whole(feeding) else []
    feed_forward = rest[len(heads) :]
    before = [*feeding, *heads] if feeding else []
    H: list[Named] = []
    for matrix in feeding if heads else []:
        whole = len(feeding) > 2
        H.append(
            block.name(matrix)
            if whole
            else _pieces(block.name(matrix), matrix, probabilities, heads[0])
        )
    return _BlockLayout(
        _beginnings(
            [block.name(call) for call in feed_forward], [block.name(call) for call in before]
        ),
        tuple(block.name(call) for call in heads),
        tuple(_activations(block, feed_forward)),
        () if probabilities is None else (probabilities[0],),
        tuple(H),
    )


def _feeding(matrices: Sequence[_Call], has_probabilities: bool) -> tuple[list[_Call], list[_Call]]:
    """The first matrices with the same input, which feed the heads, and those that follow.

    Without probabilities in sight they do so if there are three of them, or one makes three times
    what the next one reads.
    """
    if not matrices:
        return [], []
    _, run = next(groupby(matrices, key=lambda call: _place(call.entered)))
    first = list(run)
    rest = list(matrices[len(first) :])
    if has_probabilities or len(first) == 3 or _is_whole(first):
        return first, rest
    makes_three = (
        len(first) == 1 and bool(rest) and _width(first[0].output) == 3 * _width(rest[0].entered)
    )
    return (first, rest) if makes_three else ([], list(matrices))


def _is_whole(feeding: Sequence[_Call]) -> bool:
    """Whether one module is the whole attention, so that its inside cannot be seen."""
    return isinstance(feeding[0].module, nn.MultiheadAttention)


def _width(value: Any) -> int:
    return value.shape[-1] if isinstance(value, Tensor) else 0


def _place(tensor: Tensor | None) -> int:
    """Where the tensor's numbers are: equal for two views of one tensor."""
    if tensor is None:
        return 0
    return tensor.untyped_storage()._cdata if tensor.is_meta else tensor.data_ptr()


def _is_probabilities(value: Any, n_tokens: int) -> bool:
    """Whether the rows (..., T, T) are probabilities."""
    if not isinstance(value, Tensor) or not value.is_floating_point() or value.ndim < 3:
        return False
    if value.shape[-2:] != (n_tokens, n_tokens):
        return False
    if value.is_meta:
        return value.grad_fn is not None and "Softmax" in value.grad_fn.name()
    rows = value.detach().double()
    return bool((rows >= 0).all()) and bool(((rows.sum(-1) - 1).abs() < 1e-3).all())


def _pieces(
    name: str, call: _Call, probabilities: tuple[Reading, Tensor] | None, heads: _Call
) -> Named:
    """How the output of one matrix is divided into queries, keys and values."""
    made, width = first_tensor(call.output), _width(heads.entered)
    if probabilities is None:
        return Reading(name, widths=(width, width, width))
    if made.is_meta:
        rest = made.shape[-1] - width  # keys and values, unless there are queries alone
        return Reading(name, widths=(width, rest // 2, rest // 2)) if rest > 0 else name
    roles = _roles(made, probabilities[1])
    runs = [(role, len(list(of))) for role, of in groupby(roles)]
    kinds = len(set(roles))
    first = runs[:kinds]
    if kinds == 1 or len(runs) % kinds or first * (len(runs) // kinds) != runs:
        return name
    return Reading(name, widths=tuple(n for _, n in first), groups=len(runs) // kinds)


def _roles(made: Tensor, probabilities: Tensor) -> str:
    """For each feature of (1, T, f) whether it is of a query, a key or a value.

    The last row of the probabilities depends on the last query and on the keys of all tokens.
    """
    last = probabilities[..., -1, :]
    drawn = torch.randn(last.shape, generator=torch.Generator().manual_seed(0)).to(last)
    with torch.enable_grad():
        slopes: Sequence[Tensor | None] = torch.autograd.grad(
            (last * drawn).sum(), made, retain_graph=True, allow_unused=True
        )
    slope = slopes[0]
    if slope is None:
        return _VALUE * made.shape[-1]
    at = slope.reshape(-1, made.shape[-1]) != 0  # (T, f)
    is_key, is_used = at[:-1].any(0).tolist(), at.any(0).tolist()
    return "".join(
        _KEY if key else _QUERY if used else _VALUE
        for key, used in zip(is_key, is_used, strict=True)
    )


def _activations(block: _BlockRun, feed_forward: Sequence[_Call]) -> Iterator[Named]:
    """The MLP's activation functions; where they are no modules, what its last matrix reads."""
    made = {_place(first_tensor(call.output)) for call in feed_forward}
    names = [
        block.name(call)
        for call in block.calls
        if next(call.module.parameters(), None) is None
        and isinstance(call.output, Tensor)
        and call.entered is not None
        and _place(call.entered) in made
        and not is_norm(call.module)
        and not _is_same(call.output, call.entered)
    ]
    if names:
        yield from names
    elif len(feed_forward) > 1:
        yield Reading(block.name(feed_forward[-1]), is_input=True)


def _is_same(first: Tensor, second: Tensor) -> bool:
    if first.is_meta:
        return _place(first) == _place(second)
    return first.shape == second.shape and torch.equal(first, second)


def _beginnings(names: Sequence[str], others: Sequence[str]) -> tuple[str, ...]:
    """The shortest beginnings of these names that no other name shares."""
    short: list[str] = []
    for name in names:
        words = name.split(".")
        for n in range(1, len(words) + 1):
            beginning = ".".join(words[:n])
            if not any(other == beginning or other.startswith(f"{beginning}.") for other in others):
                short.append(beginning)
                break
    return tuple(dict.fromkeys(short))


def _ends(
    model: nn.Module, blocks: Sequence[nn.Module], run: _Run
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of what has matrices before the first block, and after the last.

    A parameter on which the first tensor that the model returns does not depend is left out.
    """
    first = min(run.of(block)[0].began for block in blocks)
    last = max(run.of(block)[0].ended for block in blocks)
    inside = {id(parameter) for block in blocks for parameter in block.parameters()}
    used = _used(model, run)
    embedding: list[tuple[int, str]] = []
    head: list[tuple[int, str]] = []
    for name, module in model.named_modules(remove_duplicate=False):
        calls = run.of(module)
        own = [
            (key, parameter)
            for key, parameter in module.named_parameters(recurse=False)
            if parameter.ndim >= 2 and id(parameter) not in inside and id(parameter) in used
        ]
        if not calls or not own:
            continue
        end, began = (embedding if calls[0].began < first else head), calls[0].began
        if end is head and began < last:
            continue
        is_leaf = next(module.children(), None) is None
        is_plain = isinstance(module, nn.Embedding) or calls[0].is_matrix
        if is_leaf and is_plain and name:
            end.append((began, name))
        else:
            end += [(began, f"{name}.{key}" if name else key) for key, _ in own]
    return tuple(n for _, n in sorted(embedding)), tuple(n for _, n in sorted(head))


def _used(model: nn.Module, run: _Run) -> set[int]:
    """The ids of the parameters in the graph of the first tensor that the model returns."""
    output = first_tensor(run.output)
    if not output.requires_grad:
        return {id(parameter) for parameter in model.parameters() if parameter.requires_grad}
    todo: list[Any] = [output.grad_fn]
    seen = set(todo)
    for node in todo:  # grows by the nodes before each
        new = {before for before, _ in node.next_functions if before is not None} - seen
        seen |= new
        todo += new
    return {id(node.variable) for node in todo if hasattr(node, "variable")}
