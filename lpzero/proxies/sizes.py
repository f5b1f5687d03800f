"""Proxies from the architecture's sizes alone: the counters, and SEPT of ETAS."""

from __future__ import annotations

import math
from typing import Any

from lpzero.judgement import counters
from lpzero.proxies.registry import SizeProxy, register
from spaces.base import Space

_PAPERS = {
    "parameters": "Abdelfattah et al. 2021",
    "decoder-parameters": "Javaheripi et al. 2022",
    "flops": "Abdelfattah et al. 2021",
}


def sept(space: Space[Any], arch: Any, tokens: int | None = None) -> float:
    """log(sum_l d) + log(sum_l (d^(T+1) - 1) / (d - 1)), equation 5 of ETAS, in log space.

    T is the length of the space's batch unless given.
    """
    T = space.batch_shape[1] if tokens is None else tokens
    depth, width = space.depth(arch), space.width(arch)
    # log((d^(T+1) - 1) / (d - 1)), without ever raising d to the power
    geometric = (T + 1) * math.log(width) + math.log1p(-(width ** -(T + 1.0))) - math.log(width - 1)
    return math.log(depth * width) + math.log(depth) + geometric


for _name in counters.names():
    _counter = counters.get(_name)
    register(SizeProxy(_name, _PAPERS.get(_name, ""), (_counter.__doc__ or "").strip(), _counter))
register(SizeProxy("sept", "ETAS", "bound of the separation rank", sept))
