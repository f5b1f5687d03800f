"""Transformer-XL architectures (Dai et al., 2019; Javaheripi et al., 2022) and their exact sizes.

They are chosen as GPT-2's are and have the same adaptive embedding and softmax, of four clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from spaces.base import Sizes
from spaces.gpt2.space import Gpt2Arch, Gpt2Space, feed_forward_parameters

if TYPE_CHECKING:
    from spaces.gpt2.model import AdaptiveDecoder


@dataclass(frozen=True)
class TransformerXlSpace(Gpt2Space):
    """The allowed values; the defaults are those of the released table.

    Text is read in segments; a token sees the tokens before it in its segment, and a memory of
    so many before the segment. `context` is what the last token of a segment sees.
    """

    version: ClassVar[int] = 1

    name: str = "transformer-xl"
    n_layers: Sequence[int] = range(5, 9)
    d_model: Sequence[int] = (64, 128, 256, 512)
    d_inner: Sequence[int] = range(512, 2049, 64)
    accepted_d_model: Sequence[int] = (64, 128, 256, 512)
    accepted_d_inner: Sequence[int] = range(512, 2049)
    vocabulary: int = 267736
    cutoffs: tuple[int, ...] = (19997, 39997, 199997)
    context: int = 384
    memory: int = 192

    @property
    def segment(self) -> int:
        """How many tokens are read at a time."""
        return self.context - self.memory

    def released_settings(self) -> dict[str, Any]:
        lengths = {"tgt_len": self.segment, "mem_len": self.memory}
        return {"n_token": self.vocabulary, **lengths, "attn_type": 0, "pre_lnorm": False}

    def build(self, arch: Gpt2Arch, seed: int) -> AdaptiveDecoder:
        from spaces.transformer_xl.model import build

        self.validate(arch)
        return build(self, arch, seed)

    def block_sizes(self, arch: Gpt2Arch) -> list[Sizes]:
        d = arch.d_model
        others = attention_parameters(d) + 4 * d  # two norms
        return [
            {
                "params": others + feed_forward_parameters(d, inner),
                "width": d,
                "ffn": inner,
                "heads": heads,
            }
            for heads, inner in zip(arch.n_head, arch.d_inner, strict=True)
        ]

    def _embedding_parameters(self, arch: Gpt2Arch) -> int:
        return self._word_parameters(arch)  # positions are sines

    def decoder_parameters(self, arch: Gpt2Arch) -> int:
        return sum(sizes["params"] for sizes in self.block_sizes(arch))

    def attention_parameters(self, arch: Gpt2Arch) -> int:
        return len(arch.d_inner) * attention_parameters(arch.d_model)

    def flops(self, arch: Gpt2Arch, tokens: int | None = None) -> int:
        T = self.batch_shape[1] if tokens is None else tokens
        d = arch.d_model
        multiply_adds = T * d * sum(self.embedding_widths(arch)) if self.is_projected(arch) else 0
        multiply_adds += 2 * T * d * sum(arch.d_inner)
        of_block = (4 * T + min(T, self.context)) * d * d
        for start in range(0, T, self.segment):
            queries, memory = min(self.segment, T - start), min(self.memory, start)
            of_block += 3 * memory * d * d + 3 * queries * (queries + memory) * d
        multiply_adds += len(arch.d_inner) * of_block
        return 2 * multiply_adds


def attention_parameters(d: int) -> int:
    """Parameters of a block's attention, its norm left out; two vectors are its relative biases."""
    return 5 * d * d + 2 * d
