"""Every proxy of the papers under one protocol, hand-made or discovered.

Importing the package registers the families, in this order.
"""

from lpzero.proxies import activations as activations
from lpzero.proxies import attention as attention
from lpzero.proxies import auto_prox as auto_prox
from lpzero.proxies import az_nas as az_nas
from lpzero.proxies import components as components
from lpzero.proxies import engine as engine
from lpzero.proxies import formula as formula
from lpzero.proxies import hidden as hidden
from lpzero.proxies import jacobian as jacobian
from lpzero.proxies import kernels as kernels
from lpzero.proxies import patterns as patterns
from lpzero.proxies import plugins as plugins
from lpzero.proxies import released as released
from lpzero.proxies import saliency as saliency
from lpzero.proxies import sizes as sizes
from lpzero.proxies import supernet as supernet
from lpzero.proxies import trazor as trazor
from lpzero.proxies.combined import Combined, rank_log, rank_mean, rank_sum
from lpzero.proxies.context import Context
from lpzero.proxies.formula import FormulaProxy
from lpzero.proxies.lookup import find
from lpzero.proxies.measurements import Measurements, Record, evaluate
from lpzero.proxies.network import Network
from lpzero.proxies.registry import (
    Measure,
    Needs,
    NetworkProxy,
    Proxy,
    applies,
    get,
    names,
    proxy,
    register,
)
from lpzero.statistics.trace import Layout

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
    "applies",
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
