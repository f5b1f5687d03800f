"""Proxies from the architecture's sizes alone: every counter."""

from __future__ import annotations

from lpzero.judgement import counters
from lpzero.proxies.base import SizeProxy
from lpzero.proxies.registry import register

_PAPERS = {
    "parameters": "Abdelfattah et al. 2021",
    "decoder-parameters": "Javaheripi et al. 2022",
    "flops": "Abdelfattah et al. 2021",
    "sept": "ETAS",
}


for _name in counters.names():
    _counter = counters.get(_name)
    _definition = (_counter.__doc__ or "").strip().splitlines()[0]
    _proxy = SizeProxy(_name, _counter, _PAPERS.get(_name, ""), _definition, counters.reads(_name))
    register(_proxy, __name__)
