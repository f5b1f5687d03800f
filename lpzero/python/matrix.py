"""Rows of columns as scikit-learn gives them: X (n, p), an array or a DataFrame, and y (n,)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from lpzero.arrays import FloatArray
from lpzero.errors import InputError
from lpzero.python.inputs import NAME
from spaces.tables.column_table import ColumnTable, make_column_table
from spaces.tables.row_files import is_frame, rows_of_frame
from spaces.tables.splits import MIN_ROWS


def read_matrix(X: Any) -> tuple[list[str] | None, FloatArray]:
    """The headings, None if it has none, and the numbers (n, p), all of them finite."""
    if is_frame(X):
        rows = rows_of_frame(X, "X")
        columns = [rows.numbers(heading) for heading in rows.headings]
        named = all(isinstance(name, str) for name in getattr(X, "columns", rows.headings))
        numbers = np.array(columns, dtype=np.float64).T
        return rows.headings if named else None, _finite(numbers, rows.headings)
    if hasattr(X, "toarray"):
        raise InputError("X is a sparse matrix, which is not supported: give X.toarray()")
    values = np.asarray(X)
    if np.iscomplexobj(values):
        raise InputError("Complex data not supported: X has complex numbers")
    if values.ndim != 2:
        raise InputError(
            f"X has {values.ndim} dimensions, expected rows and columns. Reshape your data: one"
            " column is X.reshape(-1, 1), one row X.reshape(1, -1)"
        )
    if values.shape[1] == 0:
        raise InputError(
            f"0 feature(s) (shape={values.shape}) while a minimum of 1 is required: X is empty"
        )
    try:
        numbers = values.astype(np.float64)
    except ValueError as error:
        raise InputError(f"X does not hold numbers alone: {error}") from None
    return None, _finite(numbers, default_names(values.shape[1]))


def _finite(values: FloatArray, headings: Sequence[str]) -> FloatArray:
    """The values; raise InputError, with the first column, if some are missing or not finite."""
    missing = (~np.isfinite(values)).sum(axis=0)
    for heading, n in zip(headings, missing, strict=True):
        if n:
            raise InputError(
                f"X contains NaN or inf in {n:,} rows of column {heading}: fill or drop them, or"
                " give Discovery(frame, target=...), which leaves out the fewest rows and columns"
            )
    return values


def read_targets(y: Any) -> FloatArray:
    """The targets (n,) as numbers."""
    values = np.asarray(y)
    if np.iscomplexobj(values):
        raise InputError("Complex data not supported: y has complex numbers")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise InputError(f"y has shape {values.shape}, expected a number for each row of X")
    try:
        numbers = values.astype(np.float64)
    except ValueError as error:
        raise InputError(f"y does not hold numbers alone: {error}") from None
    if not np.isfinite(numbers).all():
        raise InputError("y contains NaN or inf")
    return numbers


def table_of_matrix(X: Any, y: Any, smaller_is_better: bool = False) -> tuple[ColumnTable, bool]:
    """The table of columns, and whether X names them; they are x0, x1, ... if it does not."""
    headings, values = read_matrix(X)
    targets = read_targets(y)
    if len(values) != len(targets):
        raise InputError(f"X has {len(values)} rows and y {len(targets)}: inconsistent lengths")
    if len(values) < MIN_ROWS:
        raise InputError(f"n_samples = {len(values)}: at least {MIN_ROWS} rows are needed")
    named = headings or default_names(values.shape[1])
    name = str(getattr(y, "name", None) or "target")
    table = make_column_table(
        NAME,
        [str(row) for row in range(len(values))],
        (-targets if smaller_is_better else targets).tolist(),
        {heading: values[:, place].tolist() for place, heading in enumerate(named)},
        f"minus {name}" if smaller_is_better else name,
    )
    return table, headings is not None


def default_names(n_columns: int) -> list[str]:
    """The names of columns that have none."""
    return [f"x{place}" for place in range(n_columns)]


def matching_columns(
    X: Any, fitted: Sequence[str], is_named: bool, owner: str
) -> dict[str, FloatArray]:
    """The columns of new rows by the headings that the formula was fitted on."""
    headings, values = read_matrix(X)
    if headings is not None and not is_named:
        warnings.warn(
            f"X has feature names, but {owner} was fitted without feature names", stacklevel=3
        )
    elif headings is None and is_named:
        warnings.warn(
            f"X does not have valid feature names, but {owner} was fitted with feature names",
            stacklevel=3,
        )
    elif headings is not None and headings != list(fitted):
        raise InputError(_mismatch(headings, fitted))
    if values.shape[1] != len(fitted):
        raise InputError(
            f"X has {values.shape[1]} features, but {owner} is expecting {len(fitted)} features as"
            " input"
        )
    return {heading: values[:, place] for place, heading in enumerate(fitted)}


def _mismatch(given: Sequence[str], fitted: Sequence[str]) -> str:
    lines = ["The feature names should match those that were passed during fit."]
    for words, names in (
        ("Feature names unseen at fit time:", sorted(set(given) - set(fitted))),
        ("Feature names seen at fit time, yet now missing:", sorted(set(fitted) - set(given))),
    ):
        if names:
            lines += [words, *(f"- {name}" for name in names[:5]), *(["- ..."] * (len(names) > 5))]
    if len(lines) == 1:
        lines.append("Feature names must be in the same order as they were in fit.")
    return "\n".join(lines) + "\n"
