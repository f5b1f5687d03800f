"""The best of some architectures by their values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lpzero.arrays import FloatArray


def best(archs: Sequence[Any], values: FloatArray, n: int) -> list[Any]:
    """The n architectures with the largest values, largest first; ties keep their order."""
    order = np.argsort(-values, kind="stable")[:n]
    return [archs[i] for i in order]
