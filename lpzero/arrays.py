"""The types of arrays, named once: everything numeric is float64, and every index is int64."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]  # row numbers and counts
KeyArray = npt.NDArray[np.int64]  # integers that order like scores
LabelArray = npt.NDArray[np.int64]  # equal labels, same group
