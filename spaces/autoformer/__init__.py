"""The AutoFormer family: vision transformers whose layers differ in heads and MLP ratio."""

from spaces.autoformer.space import AutoFormerArch, AutoFormerLayer, AutoFormerSpace

AUTOFORMER_TINY = AutoFormerSpace()
AUTOFORMER_SMALL = AutoFormerSpace(
    name="autoformer-small", hidden=(320, 384, 448), heads=(5, 6, 7), ratios=(3.0, 3.5, 4.0)
)
# Heads as in the released space; Table 1 of PreNAS starts at 8.
AUTOFORMER_BASE = AutoFormerSpace(
    name="autoformer-base",
    hidden=(528, 576, 624),
    n_layers=(14, 15, 16),
    heads=(9, 10),
    ratios=(3.0, 3.5, 4.0),
)
# Small enough to train a supernet on a processor, on the rendered characters of
# `spaces.training.characters`: 22,113 architectures, which can all be looked at.
NANO_AUTOFORMER = AutoFormerSpace(
    name="nano-autoformer",
    hidden=(32, 48, 64),
    n_layers=(2, 3, 4),
    heads=(1, 2, 4),
    ratios=(0.5, 1.0, 2.0),
    image=16,
    patch=4,
    classes=36,
    head_width=16,
    clip=3,
    n_images=8,
)
SPACES = (AUTOFORMER_TINY, AUTOFORMER_SMALL, AUTOFORMER_BASE, NANO_AUTOFORMER)

__all__ = [
    "AUTOFORMER_BASE",
    "AUTOFORMER_SMALL",
    "AUTOFORMER_TINY",
    "NANO_AUTOFORMER",
    "SPACES",
    "AutoFormerArch",
    "AutoFormerLayer",
    "AutoFormerSpace",
]
