"""A function over many items, on local processes or a cluster, results as they come."""

from lpzero.parallel.bars import progress
from lpzero.parallel.clusters import BACKENDS, Workers
from lpzero.parallel.streaming import Lost, stream

__all__ = ["BACKENDS", "Lost", "Workers", "progress", "stream"]
