"""The best of some architectures by their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lpzero.arrays import FloatArray


def best(archs: Sequence[Any], values: FloatArray, n: int) -> list[Any]:
    """The n architectures of the largest values, the earlier of equals first."""
    order = np.argsort(-values, kind="stable")[:n]
    return [archs[i] for i in order]
