"""PreNAS: one pass of a supernet scores every architecture inside it (Wang et al. 2023).

Saliency.of(space)  ->  scores of any architectures  ->  select: the preferred ones of every size
"""

from lpzero.prenas.isomers import Isomers, allocate, isomers, representative
from lpzero.prenas.metrics import mean_best_rank
from lpzero.prenas.saliency import Saliency, has_supernet
from lpzero.prenas.selection import Preferred, draw, representatives, select

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
