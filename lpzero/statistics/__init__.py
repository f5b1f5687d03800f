"""The six statistics of an untrained network: A J G H W S, block by block."""

from lpzero.statistics.extraction import BlockStatistics, Piece, extract, of, weight_matrices
from lpzero.statistics.losses import objective
from lpzero.statistics.surroundings import StatisticsError, resolve_device, single_thread

__all__ = [
    "BlockStatistics",
    "Piece",
    "StatisticsError",
    "extract",
    "objective",
    "of",
    "resolve_device",
    "single_thread",
    "weight_matrices",
]
