"""The error of this package; needs no torch."""

from __future__ import annotations

from lpzero.errors import LPZeroError


class StatisticsError(LPZeroError, ValueError):
    """A model, loss or device with which statistics cannot be computed."""
