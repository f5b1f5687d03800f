"""Every proxy of the papers under one protocol, hand-made or discovered.

Importing the package registers the families that need no torch. The others are imported when a
name is looked up that is not among them, or all names are listed.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lpzero.proxies import engine as engine
from lpzero.proxies import formula as formula
from lpzero.proxies import kernels as kernels
from lpzero.proxies import plugins as plugins
from lpzero.proxies import sizes as sizes
from lpzero.proxies.base import Measure, Needs, NetworkProxy, Proxy
from lpzero.proxies.combined import Combined, rank_log, rank_mean, rank_sum
from lpzero.proxies.context import Context
from lpzero.proxies.formula import FormulaProxy
from lpzero.proxies.lookup import find
from lpzero.proxies.registry import get, names, proxy, register

if TYPE_CHECKING:
    from lpzero.proxies.measurements import Measurements, Record, evaluate
    from lpzero.proxies.network import Network
    from lpzero.statistics.trace import Layout

_ELSEWHERE = {
    "Layout": "lpzero.statistics.trace",
    "Measurements": "lpzero.proxies.measurements",
    "Network": "lpzero.proxies.network",
    "Record": "lpzero.proxies.measurements",
    "evaluate": "lpzero.proxies.measurements",
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
