"""Names for the array types: numbers are float64, indices are int64."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
IntArray = npt.NDArray[np.int64]  # row numbers and counts
KeyArray = npt.NDArray[np.int64]  # integers that sort in the same order as the scores
LabelArray = npt.NDArray[np.int64]  # rows with equal labels form a group
