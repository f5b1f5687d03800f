"""A function over many items, on local processes or a cluster, results as they come."""

from lpzero.parallel.backends import BACKENDS, Workers
from lpzero.parallel.progress_bar import progress
from lpzero.parallel.streams import Lost, stream

__all__ = ["BACKENDS", "Lost", "Workers", "progress", "stream"]
