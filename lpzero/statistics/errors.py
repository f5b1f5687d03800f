"""What cannot be measured; needs no torch."""

from __future__ import annotations

from lpzero.errors import LPZeroError


class StatisticsError(LPZeroError, ValueError):
    """A model, loss or device that statistics cannot be taken with."""
