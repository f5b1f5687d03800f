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
SPACES = (AUTOFORMER_TINY, AUTOFORMER_SMALL, AUTOFORMER_BASE)

__all__ = [
    "AUTOFORMER_BASE",
    "AUTOFORMER_SMALL",
    "AUTOFORMER_TINY",
    "SPACES",
    "AutoFormerArch",
    "AutoFormerLayer",
    "AutoFormerSpace",
]
