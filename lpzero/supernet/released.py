"""PreNAS's selector as its public code has it: one pass of the largest choice, greedy placement.

The network of the largest choice runs in train mode with drop-path on 64 images of ImageNet's mean
and deviation; R is the sum of the logits. A head's gain is that of its rows of the query, key and
value matrices, an MLP step's that of rows of the first and columns of the second matrix, each as
sum |p g| over sum |p| times sum |g| of the whole matrix. Heads and ratios are placed from the
largest choice down. The score is the plain sum |p g| of the sliced parameters, without the class
token and positions.

The random numbers are not those of the public code, so single architectures may differ from the
published lists; candidates and rules are the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from spaces.autoformer import AutoFormerArch, AutoFormerLayer, AutoFormerSpace

if TYPE_CHECKING:
    from torch import Tensor, nn

    from spaces.base import Space

Products = Mapping[str, FloatArray]  # |p g| of each parameter, by name
Sizes = Mapping[str, tuple[float, float]]  # sum |p| and sum |g| of each parameter
N_IMAGES = 64
DROP_PATH = 0.1
_CHUNK = 8  # images per pass
_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # of ImageNet's channels
# The public code leaves depth 12 out of the small space.
_DEPTHS = {"autoformer-small": (13, 14)}
_MILLION = 1_000_000
_BINS = {
    "autoformer-tiny": range(5, 13, 1),
    "autoformer-small": range(13, 34, 5),
    "autoformer-base": range(30, 71, 12),
}


@dataclass(frozen=True, eq=False)
class ReleasedSelector:
    """|p g| of every parameter of the largest choice, by name, and the gains of its layers."""

    space: AutoFormerSpace
    products: Products
    head_gains: FloatArray  # (L, choices of heads): of the heads that a choice adds
    ratio_gains: FloatArray  # (L, choices of ratios)

    @classmethod
    def of(cls, space: Space[Any], seed: int = 0, n_images: int = N_IMAGES) -> ReleasedSelector:
        """One pass of the largest choice with weights of the seed."""
        if not isinstance(space, AutoFormerSpace):
            raise InputError(f"space {space.name} has no supernet; use an AutoFormer space")
        weights, gradients = _pass(space, seed, n_images)
        products = {name: np.abs(p * gradients[name]) for name, p in weights.items()}
        sizes = {
            name: (float(np.abs(p).sum()), float(np.abs(gradients[name]).sum()))
            for name, p in weights.items()
        }
        L = max(space.n_layers)
        heads = np.array([[0.0, *_head_steps(space, products, sizes, i)] for i in range(L)])
        ratios = np.array([[0.0, *_ratio_steps(space, products, sizes, i)] for i in range(L)])
        return cls(space, products, heads, ratios)

    def candidates(self) -> list[AutoFormerArch]:
        """One architecture for each width, depth and pair of cuts of heads and of ratios."""
        space = self.space
        archs = []
        for hidden, depth in itertools.product(space.hidden, self.depths):
            by_heads = [_placed(self.head_gains[:depth], c) for c in _counts(space.heads, depth)]
            by_ratio = [_placed(self.ratio_gains[:depth], c) for c in _counts(space.ratios, depth)]
            for heads, ratios in itertools.product(by_heads, by_ratio):
                layers = zip(heads, ratios, strict=True)
                archs.append(
                    AutoFormerArch(
                        hidden,
                        tuple(AutoFormerLayer(space.heads[h], space.ratios[r]) for h, r in layers),
                    )
                )
        return archs

    @property
    def depths(self) -> tuple[int, ...]:
        return _DEPTHS.get(self.space.name, tuple(self.space.n_layers))

    @property
    def bins(self) -> list[tuple[int, int]]:
        """The bins [low, high) of parameters."""
        edges = _BINS.get(self.space.name)
        if edges is None:
            raise InputError(f"the public code has no bins for space {self.space.name}")
        return [(low * _MILLION, high * _MILLION) for low, high in itertools.pairwise(edges)]

    def scores(self, archs: Sequence[AutoFormerArch]) -> FloatArray:
        """The plain sum |p g| of each architecture (N,)."""
        by_layer: dict[tuple[int, int, AutoFormerLayer], float] = {}
        ends = {hidden: self._ends(hidden) for hidden in self.space.hidden}
        totals = []
        for arch in archs:
            total = ends[arch.hidden]
            for index, layer in enumerate(arch.layers):
                key = (index, arch.hidden, layer)
                if key not in by_layer:
                    by_layer[key] = self._block(*key)
                total += by_layer[key]
            totals.append(total)
        return np.array(totals)

    def _block(self, index: int, hidden: int, layer: AutoFormerLayer) -> float:
        q, f = self.space.head_width * layer.heads, int(hidden * layer.ratio)
        attention = [(f"attention.{name}", q, hidden) for name in ("query", "key", "value")]
        mlp = [("feed_forward.input", f, hidden), ("feed_forward.output", hidden, f)]
        total = 0.0
        for name, rows, columns in [*attention, ("attention.output", hidden, q), *mlp]:
            total += float(self.products[f"blocks.{index}.{name}.weight"][:rows, :columns].sum())
            total += float(self.products[f"blocks.{index}.{name}.bias"][:rows].sum())
        for norm in ("attention_norm", "feed_forward_norm"):
            total += self._norm(f"blocks.{index}.{norm}", hidden)
        return total

    def _ends(self, hidden: int) -> float:
        patches = self.products["embedding.projection.weight"][:hidden].sum()
        patches += self.products["embedding.projection.bias"][:hidden].sum()
        # The public code cuts the head's bias, one number per class, to the width.
        head = self.products["head.weight"][:, :hidden].sum()
        head += self.products["head.bias"][:hidden].sum()
        return float(patches + head) + self._norm("norm", hidden)

    def _norm(self, name: str, hidden: int) -> float:
        return float(sum(self.products[f"{name}.{p}"][:hidden].sum() for p in ("weight", "bias")))


def _counts(choices: Sequence[Any], depth: int) -> Iterator[list[int]]:
    """How many layers get each choice, smallest first: the cuts are distinct members of 0..depth"""
    for cuts in itertools.combinations(range(depth + 1), len(choices) - 1):
        edges = (0, *cuts, depth)
        yield [high - low for low, high in itertools.pairwise(edges)]


def _placed(gains: FloatArray, counts: Sequence[int]) -> list[int]:
    """The choice of each layer: the largest goes to the layers that gain most by it, and so on."""
    chosen = [0] * len(gains)
    free = list(range(len(gains)))
    for choice in range(len(counts) - 1, 0, -1):
        free.sort(key=lambda layer: (-gains[layer, choice], layer))
        for layer in free[: counts[choice]]:
            chosen[layer] = choice
        free = free[counts[choice] :]
    return chosen


def _head_steps(
    space: AutoFormerSpace, products: Products, sizes: Sizes, layer: int
) -> list[float]:
    """The gain of the heads between neighbouring choices."""
    names = [f"blocks.{layer}.attention.{name}.weight" for name in ("query", "key", "value")]
    # The public code has one matrix for the three.
    scale = sum(sizes[name][0] for name in names) * sum(sizes[name][1] for name in names)
    edges = [space.head_width * heads for heads in space.heads]
    return [
        float(sum(products[name][low:high].sum() for name in names)) / scale
        for low, high in itertools.pairwise(edges)
    ]


def _ratio_steps(
    space: AutoFormerSpace, products: Products, sizes: Sizes, layer: int
) -> list[float]:
    """The gain of the units between neighbouring ratios at the largest width."""
    first, second = (f"blocks.{layer}.feed_forward.{n}.weight" for n in ("input", "output"))
    edges = [int(max(space.hidden) * ratio) for ratio in space.ratios]
    return [
        float(products[first][low:high].sum()) / prod(sizes[first])
        + float(products[second][:, low:high].sum()) / prod(sizes[second])
        for low, high in itertools.pairwise(edges)
    ]


def _pass(
    space: AutoFormerSpace, seed: int, n_images: int
) -> tuple[dict[str, FloatArray], dict[str, FloatArray]]:
    """The parameters of the largest choice and the gradients of R there, by name."""
    import torch  # loaded only where a network runs

    from lpzero.statistics.isolation import single_thread

    model: Any = space.build(space.weight_sharing().largest(), seed)
    generator = torch.Generator().manual_seed(seed)
    shape = (n_images, 3, space.image, space.image)
    images = torch.randn(shape, generator=generator)
    images = images * torch.tensor(_STD).view(3, 1, 1) + torch.tensor(_MEAN).view(3, 1, 1)
    parameters = dict(model.named_parameters())
    rates = np.linspace(0, DROP_PATH, len(model.blocks))
    for block, rate in zip(model.blocks, rates, strict=True):
        for branch in (block.attention, block.feed_forward):
            branch.register_forward_hook(_drop(float(rate), generator))
    with single_thread():
        for start in range(0, n_images, _CHUNK):
            model.logits(model(images[start : start + _CHUNK])).sum().backward()
    weights = {n: p.detach().double().flatten(1).numpy() if p.ndim > 1 else p.detach().numpy()
               for n, p in parameters.items()}  # fmt: skip
    gradients = {n: _gradient(p) for n, p in parameters.items()}
    return weights, gradients


def _gradient(parameter: nn.Parameter) -> FloatArray:
    gradient = parameter.grad
    assert gradient is not None
    gradient = gradient.double()
    flat: FloatArray = (gradient.flatten(1) if gradient.ndim > 1 else gradient).numpy()
    return flat


def _drop(rate: float, generator: Any) -> Callable[[nn.Module, Any, Tensor], Tensor]:
    """A hook that drops the branch for a share of the images, and enlarges it for the others."""
    import torch

    def hook(_: nn.Module, __: Any, output: Tensor) -> Tensor:
        keep = torch.rand(len(output), 1, 1, generator=generator) >= rate
        return output * keep / (1 - rate)

    return hook
