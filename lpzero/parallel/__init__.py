"""Applies a function to many items in local processes or on a cluster, yielding each result."""

from lpzero.parallel.streams import Bar, Lost, is_watched, progress, stream, whole_bar
from lpzero.parallel.workers import BACKENDS, ClusterLostError, Workers

__all__ = [
    "BACKENDS",
    "Bar",
    "ClusterLostError",
    "Lost",
    "Workers",
    "is_watched",
    "progress",
    "stream",
    "whole_bar",
]
