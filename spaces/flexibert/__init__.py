"""The FlexiBERT family: encoders whose layers differ in how they mix tokens."""

from spaces.flexibert.space import FlexiBertArch, FlexiBertSpace, Layer

FLEXIBERT = FlexiBertSpace()
FLEXIBERT_UPSTREAM = FlexiBertSpace(name="flexibert-upstream", upstream_dims=True)
# Without the linear transforms: they have no residual around the mixing, and within a nano
# budget every architecture with one of them stays at chance on the token-level target.
NANO_FLEXIBERT = FlexiBertSpace(
    name="nano-flexibert",
    operations=("sdp", "wma", "dsc5", "dsc9"),
    hidden=(32, 64, 96),
    n_layers=(1, 2, 3, 4),
    ffn=(64, 128, 256),
    stacks=(1, 2),
    vocabulary=257,
    context=64,
    embedding=64,
    reads_text=True,
)
SPACES = (FLEXIBERT, FLEXIBERT_UPSTREAM, NANO_FLEXIBERT)

__all__ = [
    "FLEXIBERT",
    "FLEXIBERT_UPSTREAM",
    "NANO_FLEXIBERT",
    "SPACES",
    "FlexiBertArch",
    "FlexiBertSpace",
    "Layer",
]
