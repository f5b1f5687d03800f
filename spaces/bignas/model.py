"""The convolutional network of BigNAS in plain torch, read top to bottom.

Yu et al. 2020 (BigNAS), Table 2 of PreNAS: a stem, seven stages of inverted bottlenecks with
squeeze-and-excitation, a class head. Shapes: B images, g pixels along a side, T = g g, c channels.
Between blocks an image is (B, T, c) as in the other families; inside it is (B, c, g, g). Blocks
have a tap (see `spaces.taps`) for the statistic A; there are no heads, so H and S are absent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor, nn
from torch.nn import functional

from spaces.images import as_grid, as_tokens
from spaces.initialisation import allocate, fan_out_std
from spaces.taps import EMBEDDING, HEAD, EndWeight, Tap, table

if TYPE_CHECKING:
    from spaces.bignas.space import BigNasArch, BigNasSpace

BATCH_NORM_EPS = 1e-3
LINEAR_STD = 0.01


class BigNas(nn.Module):
    """Images (B, 3, H, W), resized to the network's own size, to the last stage's (B, T, c)."""

    def __init__(self, space: BigNasSpace, arch: BigNasArch) -> None:
        super().__init__()
        self.resolution = arch.resolution
        self.embedding = Stem(arch.stem)
        self.blocks = nn.ModuleList(
            Block(p.inputs, p.outputs, p.expansion, p.kernel, p.stride) for p in space.plans(arch)
        )
        self.head = ClassHead(arch.channels[-1], arch.last, space.classes)

    def forward(self, images: Tensor) -> Tensor:
        if images.shape[-1] != self.resolution:
            size = (self.resolution, self.resolution)
            images = functional.interpolate(images, size, mode="bilinear", align_corners=False)
        x = self.embedding(images)
        for block in self.blocks:
            x = block(x)
        hidden: Tensor = x
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        """(B, T, c) to (B, classes)."""
        scores: Tensor = self.head(hidden)
        return scores

    def ends(self) -> dict[str, list[EndWeight]]:
        """The stem's convolution; the head's last convolution and its classes."""
        return {
            EMBEDDING: [EndWeight(self.embedding.projection.weight)],
            HEAD: [EndWeight(self.head.convolution.weight), table(self.head.classes.weight)],
        }


class Stem(nn.Module):
    """Half of the image's side: (B, 3, H, W) to (B, T, c)."""

    def __init__(self, c: int) -> None:
        super().__init__()
        self.projection = nn.Conv2d(3, c, 3, stride=2, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(c, eps=BATCH_NORM_EPS)

    def forward(self, images: Tensor) -> Tensor:
        return as_tokens(functional.silu(self.norm(self.projection(images))))


class Block(nn.Module):
    """An inverted bottleneck, added to its input where both have one shape."""

    def __init__(self, inputs: int, outputs: int, expansion: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.is_residual = stride == 1 and inputs == outputs
        self.convolution = Bottleneck(inputs, outputs, inputs * expansion, kernel, stride)

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = self.convolution(x)
        return x + y if self.is_residual else y


class Bottleneck(nn.Module):
    """Widen, convolve each channel, weigh the channels, narrow: (B, T, c) to (B, T', c')."""

    def __init__(self, inputs: int, outputs: int, inner: int, kernel: int, stride: int) -> None:
        super().__init__()
        self.expand: nn.Module = nn.Identity()
        if inner != inputs:
            self.expand = nn.Sequential(
                nn.Conv2d(inputs, inner, 1, bias=False), _norm(inner), nn.SiLU()
            )
        padding = kernel // 2
        self.depthwise = nn.Conv2d(
            inner, inner, kernel, stride=stride, padding=padding, groups=inner, bias=False
        )
        self.depthwise_norm = _norm(inner)
        self.excitation = SqueezeExcitation(inner, max(1, inputs // 4))
        self.project = nn.Conv2d(inner, outputs, 1, bias=False)
        self.project_norm = _norm(outputs)
        self.tap_a = Tap("A")

    def forward(self, x: Tensor) -> Tensor:
        inner = self.depthwise_norm(self.depthwise(self.expand(as_grid(x))))
        inner = as_grid(self.tap_a(as_tokens(functional.silu(inner))))
        return as_tokens(self.project_norm(self.project(self.excitation(inner))))


class SqueezeExcitation(nn.Module):
    """Every channel times a number between 0 and 1 that all channels' means decide."""

    def __init__(self, c: int, squeezed: int) -> None:
        super().__init__()
        self.reduce = nn.Conv2d(c, squeezed, 1)
        self.widen = nn.Conv2d(squeezed, c, 1)

    def forward(self, x: Tensor) -> Tensor:
        means = x.mean((2, 3), keepdim=True)
        weights: Tensor = self.widen(functional.silu(self.reduce(means))).sigmoid()
        return x * weights


class ClassHead(nn.Module):
    """A convolution of single pixels, the mean over pixels, a Linear: (B, T, c) to (B, classes)."""

    def __init__(self, c: int, last: int, classes: int) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(c, last, 1, bias=False)
        self.norm = _norm(last)
        self.classes = nn.Linear(last, classes)

    def forward(self, hidden: Tensor) -> Tensor:
        x = functional.silu(self.norm(self.convolution(as_grid(hidden))))
        scores: Tensor = self.classes(x.mean((2, 3)))
        return scores


def _norm(c: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(c, eps=BATCH_NORM_EPS)


def build(space: BigNasSpace, arch: BigNasArch, seed: int) -> BigNas:
    """The untrained network: convolutions N(0, 2 / fan out), classes N(0, 0.01), biases 0."""

    def std(name: str, weight: Tensor) -> float:
        is_depthwise = name.endswith(".depthwise.weight")
        return fan_out_std(weight, is_depthwise) if weight.ndim == 4 else LINEAR_STD

    return allocate(lambda: BigNas(space, arch), seed, std)
