"""A space of decoders so small that 20,000 sketches of them fit anywhere."""

from __future__ import annotations

from spaces.gpt2 import Gpt2Space

_WIDTHS, _INNER = range(8, 25, 8), range(8, 65)

SPACE = Gpt2Space(
    name="growth-gpt2",
    n_layers=(1, 2),
    d_model=_WIDTHS,
    d_inner=_INNER,
    min_ratio=1,
    n_head=(2, 4),
    d_embed=(-1,),
    div_val=(1,),
    accepted_d_model=_WIDTHS,
    accepted_d_inner=_INNER,
    vocabulary=32,
    cutoffs=(),
    context=8,
    batch_shape=(2, 8),
)
