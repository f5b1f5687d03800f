"""The flexible GPT-2 family: decoders with a width and heads and inner widths per layer."""

from spaces.gpt2.space import Gpt2Arch, Gpt2EtasSpace, Gpt2Layer, Gpt2Space

GPT2 = Gpt2Space()
GPT2_ETAS = Gpt2EtasSpace()
# The ranges that gpt2-wt103 was drawn from, which are narrower than the paper's: a surrogate of
# that table is valid in these.
GPT2_RELEASED = Gpt2Space(
    name="gpt2-released", d_model=(64, 128, 256, 512), d_inner=range(512, 2049, 64), min_ratio=1
)
# The Pareto folders of the LTS data: one word cluster, 32 tokens, embeddings as wide as the model.
GPT2_LM1B = Gpt2Space(name="gpt2-lm1b", cutoffs=(), context=32, d_embed=(-1,), batch_shape=(2, 32))
NANO_GPT2 = Gpt2Space(
    name="nano-gpt2",
    n_layers=range(1, 7),
    d_model=range(32, 129, 16),
    d_inner=range(32, 513, 32),
    min_ratio=1,
    n_head=(2, 4),
    d_embed=(-1,),
    div_val=(1,),
    accepted_d_model=range(32, 129, 16),
    accepted_d_inner=range(32, 513, 32),
    vocabulary=256,
    cutoffs=(),
    context=64,
    batch_shape=(8, 64),
    reads_text=True,
)
SPACES = (GPT2, GPT2_ETAS, GPT2_RELEASED, GPT2_LM1B, NANO_GPT2)

__all__ = [
    "GPT2",
    "GPT2_ETAS",
    "GPT2_LM1B",
    "GPT2_RELEASED",
    "NANO_GPT2",
    "SPACES",
    "Gpt2Arch",
    "Gpt2EtasSpace",
    "Gpt2Layer",
    "Gpt2Space",
]
