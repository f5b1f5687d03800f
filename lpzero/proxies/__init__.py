"""Every proxy of the papers under one protocol, hand-made or discovered.

Importing the package imports the families that need no torch; the registry imports the others.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lpzero.proxies.base import Measure, Needs, NetworkProxy, Proxy
from lpzero.proxies.combined import Combined, rank_log, rank_mean, rank_sum
from lpzero.proxies.families import counters as counters
from lpzero.proxies.families import formulas as formulas
from lpzero.proxies.families import kernels as kernels
from lpzero.proxies.formula import FormulaProxy
from lpzero.proxies.lookup import find
from lpzero.proxies.measurements import Context, Measurements, Record, evaluate
from lpzero.proxies.registry import get, names, proxy, register

if TYPE_CHECKING:
    from lpzero.proxies.network import Network
    from lpzero.statistics.trace import Layout

_ELSEWHERE = {
    "Layout": "lpzero.statistics.trace",
    "Network": "lpzero.proxies.network",
}


def __getattr__(name: str) -> Any:
    """What is imported when it is asked for, because torch is imported with it."""
    if name not in _ELSEWHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_ELSEWHERE[name]), name)


__all__ = [
    "Combined",
    "Context",
    "FormulaProxy",
    "Layout",
    "Measure",
    "Measurements",
    "Needs",
    "Network",
    "NetworkProxy",
    "Proxy",
    "Record",
    "evaluate",
    "find",
    "get",
    "names",
    "proxy",
    "rank_log",
    "rank_mean",
    "rank_sum",
    "register",
]
