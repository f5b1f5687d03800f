"""The six statistics of an untrained network: A J G H W S, block by block."""

from lpzero.statistics.extraction import BlockStatistics, CutTensor, extract, of, weight_matrices
from lpzero.statistics.isolation import StatisticsError, resolve_device, single_thread
from lpzero.statistics.losses import objective

__all__ = [
    "BlockStatistics",
    "CutTensor",
    "StatisticsError",
    "extract",
    "objective",
    "of",
    "resolve_device",
    "single_thread",
    "weight_matrices",
]
