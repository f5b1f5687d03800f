"""PreNAS: one pass of a supernet scores every architecture inside it (Wang et al. 2023).

Saliency.of(space)  ->  scores of any architectures  ->  select: the best of every size
"""

from lpzero.supernet.isomers import Isomers, allocate, isomers, representative
from lpzero.supernet.metrics import mean_best_rank
from lpzero.supernet.saliency import Saliency, has_supernet
from lpzero.supernet.selection import Preferred, draw, representatives, select

__all__ = [
    "Isomers",
    "Preferred",
    "Saliency",
    "allocate",
    "draw",
    "has_supernet",
    "isomers",
    "mean_best_rank",
    "representative",
    "representatives",
    "select",
]
