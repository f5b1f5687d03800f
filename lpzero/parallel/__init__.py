"""Applies a function to many items in local processes or on a cluster, yielding each result."""

from lpzero.parallel.pools import ClusterLostError
from lpzero.parallel.progress_bar import Bar, progress, whole_bar
from lpzero.parallel.streams import Lost, stream
from lpzero.parallel.workers import BACKENDS, Workers

__all__ = [
    "BACKENDS",
    "Bar",
    "ClusterLostError",
    "Lost",
    "Workers",
    "progress",
    "stream",
    "whole_bar",
]
