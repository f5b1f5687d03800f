"""Student's interval, for the few seeds of an experiment."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import stats


def half_width(values: Sequence[float]) -> float:
    """The 95% half-width of the mean."""
    spread = np.std(values, ddof=1) / np.sqrt(len(values))
    return float(stats.t.ppf(0.975, len(values) - 1) * spread)


def interval(values: Sequence[float]) -> str:
    """The mean and its 95% interval."""
    mean, half = np.mean(values), half_width(values)
    return f"{mean:+.3f} ({mean - half:+.3f} to {mean + half:+.3f})"
