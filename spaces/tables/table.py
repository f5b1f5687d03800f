"""A table: architectures of one space with their targets, larger always meaning better."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from spaces.base import Space
from spaces.errors import ArchitectureError, TableError, UnknownNameError
from spaces.tables.source import DEPTH_WIDTH

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
GROUPINGS = ("depth", "width", DEPTH_WIDTH)


@dataclass(frozen=True, eq=False)
class Table:
    """Row i is `archs[i]` with `targets[i]` (n,) and, under each name, `extra[name][i]` (n,).

    `digest` depends only on the content (architectures and targets, in order) and not on the
    space, so that the splits of a table are the same in every space it is read in. `ceiling` is
    the rank correlation of the targets with those of independent trainings, if known: no proxy
    can be expected to exceed it. `failed` counts the trainings that failed and are left out.
    """

    name: str
    space: Space[Any]
    archs: tuple[Any, ...]
    targets: FloatArray
    target: str
    licence: str
    ids: tuple[str, ...]
    digest: str
    extra: Mapping[str, FloatArray] = field(default_factory=dict)
    ceiling: float | None = None
    failed: int = 0

    def __len__(self) -> int:
        return len(self.archs)

    def __repr__(self) -> str:
        return f"Table({self.name}: {len(self)} architectures of {self.space.name}, {self.target})"

    @property
    def groupings(self) -> tuple[str, ...]:
        """What rows can be grouped by: depth, width or both, or an extra column."""
        return (*GROUPINGS, *self.extra)

    def groups(self, kind: str) -> IntArray:
        """A label from 0 for each row (n,): equal labels mean equal values of the grouping."""
        if kind not in self.groupings:
            raise UnknownNameError("grouping", kind, self.groupings)
        sizes = {"depth": self.space.depth, "width": self.space.width}
        if kind in GROUPINGS:
            keys: Any = [[sizes[part](arch) for part in kind.split("-")] for arch in self.archs]
        else:
            keys = self.extra[kind][:, np.newaxis]
        labels = np.unique(np.array(keys), axis=0, return_inverse=True)[1]
        return labels.reshape(-1).astype(np.int64)

    def twins(self) -> Sequence[Any]:
        """A key for each row; rows with equal keys are one network, perhaps under other names."""
        return [self.space.network_key(arch) for arch in self.archs]

    def strata(self) -> Sequence[str]:
        """The stratum of each row: its depth."""
        return [f"depth {self.space.depth(arch)}" for arch in self.archs]

    def in_space(self, space: Space[Any]) -> Table:
        """The same architectures and targets, built and counted by another space."""
        for row, arch in zip(self.ids, self.archs, strict=True):
            try:
                space.validate(arch)
            except (ArchitectureError, AttributeError) as error:
                is_other = isinstance(error, AttributeError)
                reason = "its fields are those of another family" if is_other else error
                raise TableError(
                    f"table {self.name} cannot be read in space {space.name}: "
                    f"row {row} does not fit ({reason}); its own space is {self.space.name}"
                ) from error
        return replace(self, space=space)

    def only(self, rows: Sequence[int]) -> Table:
        """These rows in this order as a table of their own, with a digest of their own."""
        archs, targets = tuple(self.archs[row] for row in rows), self.targets[list(rows)]
        return replace(
            self,
            archs=archs,
            ids=tuple(self.ids[row] for row in rows),
            targets=targets,
            extra={name: column[list(rows)] for name, column in self.extra.items()},
            digest=content_digest(self.space, archs, targets),
        )

    def rows_in(self, space: Space[Any]) -> list[int]:
        """The rows whose architectures belong to the space."""
        rows = []
        for row, arch in enumerate(self.archs):
            with suppress(ArchitectureError, AttributeError):
                space.validate(arch)
                rows.append(row)
        return rows

    def hide(self, rows: IntArray) -> Table:
        """The table with the targets and extra columns of these rows made NaN.

        The digest stays that of the whole table.
        """
        hidden = {name: blank(column, rows) for name, column in self.extra.items()}
        return replace(self, targets=blank(self.targets, rows), extra=hidden)


def make_table(
    name: str,
    space: Space[Any],
    rows: Sequence[tuple[str, Any, float]],
    target: str,
    licence: str,
    extra: Mapping[str, Sequence[float]] | None = None,
    ceiling: float | None = None,
    failed: int = 0,
) -> Table:
    """The table of (id, architecture, target) rows, with its digest."""
    ids = tuple(row[0] for row in rows)
    archs = tuple(row[1] for row in rows)
    targets = frozen([row[2] for row in rows])
    columns = {key: frozen(values) for key, values in (extra or {}).items()}
    digest = content_digest(space, archs, targets)
    return Table(
        name, space, archs, targets, target, licence, ids, digest, columns, ceiling, failed
    )


def noise_ceiling(targets: Iterable[Sequence[float]]) -> float | None:
    """Rho between first and second trainings of what was trained twice; None of fewer than ten.

    `targets` are those of each architecture.
    """
    from scipy.stats import spearmanr

    pairs = [of[:2] for of in targets if len(of) >= 2]
    if len(pairs) < 10:
        return None
    return float(spearmanr(*zip(*pairs, strict=True)).statistic)


def content_digest(space: Space[Any], archs: Sequence[Any], targets: FloatArray) -> str:
    """SHA-256 over the architectures as canonical JSON and the targets as little-endian floats."""
    digest = hashlib.sha256()
    for arch in archs:
        text = json.dumps(space.to_json(arch), sort_keys=True, separators=(",", ":"))
        digest.update(text.encode() + b"\n")
    digest.update(targets.astype("<f8").tobytes())
    return digest.hexdigest()


def frozen(values: Sequence[float] | FloatArray) -> FloatArray:
    """The values as an array (n,) that cannot be changed."""
    array = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array


def blank(column: FloatArray, rows: IntArray) -> FloatArray:
    """The column (n,) with NaN in these rows."""
    hidden: FloatArray = column.copy()
    hidden[rows] = np.nan
    hidden.flags.writeable = False
    return hidden
