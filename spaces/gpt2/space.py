"""Flexible GPT-2 architectures and their exact sizes."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from spaces.base import Sizes
from spaces.choices import Choice, ChoiceSpace, Columns, Layers

if TYPE_CHECKING:
    from spaces.gpt2.model import AdaptiveDecoder
    from spaces.gpt2.sharing import Gpt2Sharing

EMBED_LIKE_MODEL = -1


@dataclass(frozen=True, slots=True)
class Gpt2Layer:
    """One decoder layer."""

    n_head: int
    d_inner: int


@dataclass(frozen=True, slots=True)
class Gpt2Arch:
    """A decoder; d_embed = -1 means as wide as the model, div_val is the paper's factor k."""

    d_model: int
    n_head: tuple[int, ...]
    d_inner: tuple[int, ...]
    d_embed: int
    div_val: int


@dataclass(frozen=True)
class Gpt2Space(ChoiceSpace[Gpt2Arch]):
    """The allowed values; the defaults are the paper's space.

    `sample` stays in the paper's ranges and makes every layer at least `min_ratio` times the
    model width; `validate` accepts the wider ranges of the released tables.
    """

    version: ClassVar[int] = 1
    kind: ClassVar[type[Any]] = Gpt2Arch
    crossed_first: ClassVar[tuple[str, ...]] = ("layers",)

    name: str = "gpt2"
    n_layers: Sequence[int] = range(2, 17)
    d_model: Sequence[int] = range(128, 1025, 64)
    d_inner: Sequence[int] = range(256, 4097, 64)
    min_ratio: int = 2
    n_head: tuple[int, ...] = (2, 4, 8)
    d_embed: tuple[int, ...] = (128, 256, 512)
    div_val: tuple[int, ...] = (1, 2, 4)
    accepted_d_model: Sequence[int] = range(64, 1025, 64)
    accepted_d_inner: Sequence[int] = range(256, 4097)
    vocabulary: int = 50264
    cutoffs: tuple[int, ...] = (19997, 39997)
    context: int = 192
    batch_shape: tuple[int, int] = (2, 64)
    reads_text: bool = False

    @cached_property
    def fields(self) -> tuple[Choice | Layers, ...]:
        of_layer = (
            Choice("n_head", self.n_head),
            Choice("d_inner", self._inner_values, self.accepted_d_inner),
        )
        return (
            Choice("d_model", self.d_model, self.accepted_d_model),
            Columns("layers", self.n_layers, Gpt2Layer, of_layer, by_column=True),
            Choice("d_embed", self.d_embed, self._accepted_embeddings),
            Choice("div_val", self.div_val),
        )

    @property
    def _accepted_embeddings(self) -> Sequence[int]:
        """Those of `sample`, those of the released tables, and as wide as the model."""
        return tuple(dict.fromkeys((EMBED_LIKE_MODEL, *self.d_embed, *Gpt2Space.d_embed)))

    def _inner_values(self, drawn: Mapping[str, Any]) -> Sequence[int]:
        return self.inner_choices(drawn["d_model"])

    def cardinality(self) -> int:
        total = 0
        for d in self.d_model:
            per_layer = len(self.n_head) * len(self.inner_choices(d))
            total += sum(per_layer**n for n in self.n_layers)
        return total * len(self.d_embed) * len(self.div_val)

    def inner_choices(self, d_model: int) -> Sequence[int]:
        """The inner widths that `sample` may return for this model width."""
        return [inner for inner in self.d_inner if inner >= self.min_ratio * d_model]

    def mutate(self, arch: Gpt2Arch, probability: float, rng: random.Random) -> Gpt2Arch:
        return self._widened(super().mutate(arch, probability, rng), arch)

    def crossover(self, first: Gpt2Arch, second: Gpt2Arch, rng: random.Random) -> Gpt2Arch:
        return self._widened(super().crossover(first, second, rng), first, second)

    def _widened(self, child: Gpt2Arch, *parents: Gpt2Arch) -> Gpt2Arch:
        """The child with inner widths raised to the least allowed one where the model became wider.

        A width that a parent had with this model width is kept, because released tables contain
        narrower layers than `sample` returns.
        """
        least = self.inner_choices(child.d_model)[0]
        if min(child.d_inner) >= least:
            return child
        kept = {x for parent in parents if parent.d_model == child.d_model for x in parent.d_inner}
        return replace(
            child, d_inner=tuple(x if x in kept else max(x, least) for x in child.d_inner)
        )

    def takes_block(self, arch: Gpt2Arch, block: Gpt2Layer) -> bool:
        return block.d_inner in self.inner_choices(arch.d_model)

    def build(self, arch: Gpt2Arch, seed: int) -> AdaptiveDecoder:
        from spaces.gpt2.model import build

        self.validate(arch)
        return build(self, arch, seed)

    def weight_sharing(self) -> Gpt2Sharing | None:
        """Spaces with one embedding table, as wide as the model, share weights."""
        from spaces.gpt2.sharing import Gpt2Sharing

        is_plain = tuple(self.d_embed) == (EMBED_LIKE_MODEL,) and tuple(self.div_val) == (1,)
        return Gpt2Sharing(self) if is_plain and not self.cutoffs else None

    def released_settings(self) -> dict[str, Any]:
        """What every released configuration of the space's networks must say."""
        return {"n_token": self.vocabulary, "tgt_len": self.context}

    def cluster_sizes(self) -> tuple[int, ...]:
        """The number of words in each cluster of the adaptive embedding, frequent ones first."""
        ends = (*self.cutoffs, self.vocabulary)
        return tuple(end - start for start, end in zip((0, *ends), ends, strict=False))

    def embedding_widths(self, arch: Gpt2Arch) -> tuple[int, ...]:
        """The width of each word table; one for all words when div_val is 1."""
        e = arch.d_model if arch.d_embed == EMBED_LIKE_MODEL else arch.d_embed
        n_tables = len(self.cluster_sizes()) if arch.div_val > 1 else 1
        return tuple(e // arch.div_val**i for i in range(n_tables))

    def is_projected(self, arch: Gpt2Arch) -> bool:
        """Whether embeddings are projected to the model width."""
        return arch.div_val > 1 or self.embedding_widths(arch)[0] != arch.d_model

    def parameter_fields(self, arch: Gpt2Arch) -> dict[str, int]:
        """The counts under the names of the released `params_summary.yaml`."""
        d = arch.d_model
        return {
            "AdaEmb": self._embedding_parameters(arch),
            "Attn": self.attention_parameters(arch),
            "FFN": sum(feed_forward_parameters(d, inner) for inner in arch.d_inner),
            "nonembedding": self.decoder_parameters(arch),
            "total": self.parameters(arch),
        }

    def block_sizes(self, arch: Gpt2Arch) -> list[Sizes]:
        d = arch.d_model
        norms = 4 * d
        return [
            {
                "params": attention_parameters(d) + feed_forward_parameters(d, inner) + norms,
                "width": d,
                "ffn": inner,
                "heads": heads,
            }
            for heads, inner in zip(arch.n_head, arch.d_inner, strict=True)
        ]

    def end_sizes(self, arch: Gpt2Arch) -> dict[str, Sizes]:
        e = self.embedding_widths(arch)[0]
        return {
            "embedding": {"params": self._embedding_parameters(arch), "width": e},
            "head": {"params": self._softmax_parameters(arch), "width": arch.d_model},
        }

    def _embedding_parameters(self, arch: Gpt2Arch) -> int:
        return self._word_parameters(arch) + self.context * arch.d_model

    def _word_parameters(self, arch: Gpt2Arch) -> int:
        widths = self.embedding_widths(arch)
        sizes = self.cluster_sizes() if arch.div_val > 1 else (self.vocabulary,)
        tables = sum(size * width for size, width in zip(sizes, widths, strict=True))
        projections = arch.d_model * sum(widths) if self.is_projected(arch) else 0
        return tables + projections

    def _softmax_parameters(self, arch: Gpt2Arch) -> int:
        e = self.embedding_widths(arch)[0]
        n_tails = len(self.cutoffs)
        projection = arch.d_model * e if self.is_projected(arch) else 0
        return self.vocabulary + n_tails * (e + 1) + projection

    def decoder_parameters(self, arch: Gpt2Arch) -> int:
        return sum(sizes["params"] for sizes in self.block_sizes(arch)) + 2 * arch.d_model

    def attention_parameters(self, arch: Gpt2Arch) -> int:
        return len(arch.d_inner) * attention_parameters(arch.d_model)

    def flops(self, arch: Gpt2Arch, tokens: int | None = None) -> int:
        T = self.batch_shape[1] if tokens is None else tokens
        d = arch.d_model
        multiply_adds = T * d * sum(self.embedding_widths(arch)) if self.is_projected(arch) else 0
        for inner in arch.d_inner:
            multiply_adds += 4 * T * d * d + 2 * T * T * d + 2 * T * d * inner
        return 2 * multiply_adds

    def width(self, arch: Gpt2Arch) -> int:
        return arch.d_model


def attention_parameters(d: int) -> int:
    """Parameters of a block's attention, its norm left out."""
    return 4 * d * d + 4 * d


def feed_forward_parameters(d: int, inner: int) -> int:
    """Parameters of a block's feed-forward layer, its norm left out."""
    return 2 * d * inner + inner + d


@dataclass(frozen=True)
class Gpt2EtasSpace(Gpt2Space):
    """The ranges of ETAS, section 4.2: k is 4 and inner widths exceed twice the model width.

    A class of its own, because a field would change what the sketches of `gpt2` are addressed by.
    """

    name: str = "gpt2-etas"
    div_val: tuple[int, ...] = (4,)

    def inner_choices(self, d_model: int) -> Sequence[int]:
        return [inner for inner in self.d_inner if inner > self.min_ratio * d_model]
