"""PreNAS: one pass of a supernet scores every architecture inside it (Wang et al. 2023).

Saliency.of(space)  ->  scores of any architectures  ->  select: the best of every size
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from lpzero.supernet.isomers import Isomers, allocate, isomers, mean_best_rank, representative
from lpzero.supernet.saliency import Saliency, has_supernet, sharing_of
from lpzero.supernet.selection import Preferred, candidates, draw, representatives, select

if TYPE_CHECKING:
    from lpzero.supernet.trained import load_network, open_supernet


def __getattr__(name: str) -> Any:
    if name not in ("load_network", "open_supernet"):  # they need everything that runs have
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module("lpzero.supernet.trained"), name)


__all__ = [
    "Isomers",
    "Preferred",
    "Saliency",
    "allocate",
    "candidates",
    "draw",
    "has_supernet",
    "isomers",
    "load_network",
    "mean_best_rank",
    "open_supernet",
    "representative",
    "representatives",
    "select",
    "sharing_of",
]
