"""FlexiBERT architectures and their exact sizes; the parts they count are in `model`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from spaces.base import Sizes
from spaces.choices import Choice, ChoiceSpace, Layers

if TYPE_CHECKING:
    from spaces.flexibert.model import FlexiBert

OPERATIONS = ("sdp", "wma", "dft", "dct", "dsc5", "dsc9")
UPSTREAM_HIDDEN, UPSTREAM_FFN = 256, 1024


@dataclass(frozen=True, slots=True)
class Layer:
    """One encoder layer: how tokens mix, and its feed-forward stack."""

    operation: str
    heads: int
    ffn: int
    stacks: int


@dataclass(frozen=True, slots=True)
class FlexiBertArch:
    """A hidden width and the layers, first to last."""

    hidden: int
    layers: tuple[Layer, ...]


@dataclass(frozen=True)
class FlexiBertSpace(ChoiceSpace[FlexiBertArch]):
    """The allowed values; the defaults are the paper's space.

    `upstream_dims` builds and counts every architecture with h = 256 and f = 1024, as the
    published metric file does regardless of the architecture.
    """

    version: ClassVar[int] = 1
    kind: ClassVar[type[Any]] = FlexiBertArch
    crossed_first: ClassVar[tuple[str, ...]] = ("layers",)

    name: str = "flexibert"
    hidden: tuple[int, ...] = (128, 256)
    n_layers: tuple[int, ...] = (2, 4)
    operations: tuple[str, ...] = OPERATIONS
    heads: tuple[int, ...] = (2, 4)
    ffn: tuple[int, ...] = (512, 1024)
    stacks: tuple[int, ...] = (1, 3)
    vocabulary: int = 30522
    context: int = 512
    embedding: int = 128
    batch_shape: tuple[int, int] = (8, 64)
    upstream_dims: bool = False
    reads_text: bool = False

    @cached_property
    def fields(self) -> tuple[Choice, Layers]:
        of_layer = (
            Choice("operation", self.operations),
            Choice("heads", self.heads),
            Choice("ffn", self.ffn),
            Choice("stacks", self.stacks),
        )
        return Choice("hidden", self.hidden), Layers("layers", self.n_layers, Layer, of_layer)

    def build(self, arch: FlexiBertArch, seed: int) -> FlexiBert:
        from spaces.flexibert.model import build

        self.validate(arch)
        return build(self, self.as_built(arch), seed)

    def as_built(self, arch: FlexiBertArch) -> FlexiBertArch:
        """The architecture with the dimensions that are actually built."""
        if not self.upstream_dims:
            return arch
        layers = tuple(replace(layer, ffn=UPSTREAM_FFN) for layer in arch.layers)
        return FlexiBertArch(UPSTREAM_HIDDEN, layers)

    def block_sizes(self, arch: FlexiBertArch) -> list[Sizes]:
        built = self.as_built(arch)
        h = built.hidden
        return [
            {
                "params": block_parameters(h, layer),
                "width": h,
                "ffn": layer.ffn,
                "heads": layer.heads,
            }
            for layer in built.layers
        ]

    def end_sizes(self, arch: FlexiBertArch) -> dict[str, Sizes]:
        h, E = self.as_built(arch).hidden, self.embedding
        embeddings = (self.vocabulary + self.context + 2) * E + 2 * E
        projection = E * h + h if h != E else 0
        return {
            "embedding": {"params": embeddings + projection, "width": E},
            "head": {"params": 0, "width": h},
        }

    def decoder_parameters(self, arch: FlexiBertArch) -> int:
        return sum(sizes["params"] for sizes in self.block_sizes(arch))

    def attention_parameters(self, arch: FlexiBertArch) -> int:
        built = self.as_built(arch)
        return sum(mixing_parameters(built.hidden, layer) for layer in built.layers)

    def flops(self, arch: FlexiBertArch, tokens: int | None = None) -> int:
        T = self.batch_shape[1] if tokens is None else tokens
        built = self.as_built(arch)
        h, E = built.hidden, self.embedding
        multiply_adds = T * E * h if h != E else 0
        for layer in built.layers:
            f = layer.ffn
            multiply_adds += mixing_multiply_adds(h, layer, T)
            multiply_adds += T * (2 * h * f + (layer.stacks - 1) * f * f)
        return 2 * multiply_adds

    def width(self, arch: FlexiBertArch) -> int:
        return self.as_built(arch).hidden

    def projections(self, arch: FlexiBertArch) -> int:
        return sum(mixing_projections(layer) for layer in arch.layers)


def is_linear_transform(layer: Layer) -> bool:
    """Whether tokens mix by a fixed transform: no output dense, residual or norm around it."""
    return layer.operation in ("dft", "dct")


def kernel_size(layer: Layer) -> int:
    """The kernel of a dynamic convolution, 0 for the other operations."""
    return int(layer.operation[3:]) if layer.operation.startswith("dsc") else 0


def mixing_projections(layer: Layer) -> int:
    """Projections that feed the heads of a layer: q, k, v, and one more for wma and dsc."""
    if is_linear_transform(layer):
        return 1
    return 4 if layer.operation == "wma" or kernel_size(layer) else 3


def mixing_parameters(h: int, layer: Layer) -> int:
    """Parameters of the mixing half of a layer, without its norm."""
    if is_linear_transform(layer):
        return h * h + h
    output = h * h + h
    k = kernel_size(layer)
    if k:
        n = layer.heads // 2
        a = n * (h // layer.heads)
        return 4 * (h * a + a) + h * k + h * a + a + (a * n * k + n * k) + output
    weight = h * h if layer.operation == "wma" else 0
    return 3 * (h * h + h) + weight + output


def block_parameters(h: int, layer: Layer) -> int:
    """Parameters of a whole layer."""
    f = layer.ffn
    mixing_norm = 0 if is_linear_transform(layer) else 2 * h
    feed_forward = (h * f + f) + (layer.stacks - 1) * (f * f + f) + (f * h + h) + 2 * h
    return mixing_parameters(h, layer) + mixing_norm + feed_forward


def mixing_multiply_adds(h: int, layer: Layer, T: int) -> int:
    """Multiply-adds of the mixing half of a layer over T tokens."""
    w = h // layer.heads
    if is_linear_transform(layer):
        transform = layer.heads * (T * T * w + T * w * w)
        return T * h * h + (2 if layer.operation == "dft" else 1) * transform
    output = T * h * h
    k = kernel_size(layer)
    if k:
        n = layer.heads // 2
        a = n * w
        projections = T * (4 * h * a + h * k + h * a + a * n * k)
        return projections + 2 * T * T * a + T * a * k + output
    weight = T * h * h if layer.operation == "wma" else 0
    return 3 * T * h * h + weight + 2 * T * T * h + output
