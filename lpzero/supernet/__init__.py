"""PreNAS: one pass of a supernet scores every architecture inside it (Wang et al. 2023).

Saliency.of(space)  ->  scores of any architectures  ->  select: the best of every size
"""

from lpzero.supernet.isomers import Isomers, allocate, isomers, representative
from lpzero.supernet.metrics import mean_best_rank
from lpzero.supernet.saliency import Saliency, has_supernet, sharing_of
from lpzero.supernet.selection import Preferred, candidates, draw, representatives, select

__all__ = [
    "Isomers",
    "Preferred",
    "Saliency",
    "allocate",
    "candidates",
    "draw",
    "has_supernet",
    "isomers",
    "mean_best_rank",
    "representative",
    "representatives",
    "select",
    "sharing_of",
]
