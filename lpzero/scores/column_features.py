"""Features: columns under operations, and products of two of them, as formulas and as numbers.

columns, rows        ->  features_of: formulas, values (D, n) of mean 0 and variance 1
features, residuals  ->  with_pairs: also the products that explain most of what is unexplained

A column is read as it is, as its logarithm, root, inverse and square, and around centres: the
centred logarithm squared, as a magnitude, saturated (tanh) and cut off (relu). Centres and scales
are constants of the formulas, taken from the rows and rounded to three digits of the spread.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from lpzero.arrays import BoolArray, FloatArray, IntArray
from lpzero.scores.columns import RANK_OF
from lpzero.scores.values import Values
from primitives.formula import Column, Constant, Formula, add, multiply

# Kinds of features: a column on its main scale, under any operation, and products of two of these.
MAIN, SINGLE, PAIRS = ("main", "single", "pairs")
_SCREENED = 600  # pairs that are kept for each residual
_SAME = 0.9999  # features of a column that correlate so far are one
_FLAT = 1e-9  # of a feature's size: what varies less is constant
_QUANTILES = (0.5, 0.25, 0.75)
_SMALL = 0.05  # the share of magnitudes below the unit of a column that ends at zero
_LIKE_ONE = (0.3, 3.0)  # scales that are left out


@dataclass(frozen=True, eq=False)
class Features:
    """D features on the rows (n,) that they were made from.

    The first are the `single` formulas, of one column each, the others products of `pairs` (P, 2)
    of them. `values` (D, n) have mean 0 and variance 1, from `means` (D,) and `spreads` (D,).
    """

    single: tuple[Formula, ...]
    pairs: IntArray
    values: FloatArray
    means: FloatArray
    spreads: FloatArray

    def __len__(self) -> int:
        return len(self.values)

    def formula(self, feature: int) -> Formula:
        """The feature of that number."""
        if feature < len(self.single):
            return self.single[feature]
        first, second = self.pairs[feature - len(self.single)].tolist()
        return multiply([self.single[first], self.single[second]])

    def weighted(self, members: Sequence[int], weights: Sequence[float]) -> Formula:
        """The sum of features with weights, of standardised values, to three digits.

        The first weight is 1: a scale of the whole does not change its ranking.
        """
        raw = [weight / self.spreads[of] for of, weight in zip(members, weights, strict=True)]
        parts = []
        for member, weight in zip(members, raw, strict=True):
            size = float(f"{abs(weight / raw[0]):.3g}")
            part = self.formula(member)
            if size != 1:
                part = multiply([Formula.of_base(Constant(size)), part])
            parts.append(part.with_sign(part.sign * (1 if weight > 0 else -1)))
        return add(parts)


def features_of(columns: Mapping[str, FloatArray], rows: IntArray, kind: str = SINGLE) -> Features:
    """The features of one column (A,) each, made from these rows (n,)."""
    all_rows, here = Values(columns=columns), {name: of[rows] for name, of in columns.items()}
    formulas: list[Formula] = []
    numbers: list[FloatArray] = []
    for name, of in columns.items():
        column = _ColumnOnRows(name, of, here[name])
        candidates = list(islice(column.features(), 1 if kind == MAIN else None))
        scores = all_rows.scores(candidates)
        usable = np.isfinite(scores).all(axis=1)
        for at in np.flatnonzero(usable)[_distinct(scores[usable][:, rows])]:
            formulas.append(candidates[at])
            numbers.append(scores[at, rows])
    raw = np.array(numbers).reshape(len(formulas), len(rows))
    return Features(tuple(formulas), np.empty((0, 2), dtype=np.int64), *_standardised(raw))


def with_pairs(features: Features, residuals: Sequence[FloatArray]) -> Features:
    """The features and products of two of them, of two columns: those that explain a residual best.

    `residuals` (n,) are of the rows that the features were made from. How all products correlate
    with one is three products of matrices.
    """
    raw = features.values * features.spreads[:, np.newaxis] + features.means[:, np.newaxis]
    n = raw.shape[1]
    names = [of.columns[0] for of in features.single]
    owners = np.array([names.index(name) for name in names])
    chosen: BoolArray = np.zeros((len(raw), len(raw)), dtype=np.bool_)
    with np.errstate(all="ignore"):
        squares = raw * raw
        means = raw @ raw.T / n
        variances = squares @ squares.T / n - means * means
        usable = np.isfinite(variances) & (variances > _FLAT * means * means)
        usable &= owners[:, np.newaxis] < owners
        for residual in residuals:
            centred = residual - residual.mean()
            explained = ((raw * centred) @ raw.T) ** 2 / np.where(usable, variances, np.inf)
            explained = np.where(usable & np.isfinite(explained), explained, 0.0)
            best = np.argsort(-explained, axis=None, kind="stable")[:_SCREENED]
            chosen.reshape(-1)[best] = explained.reshape(-1)[best] > 0
        pairs = np.argwhere(chosen)
        products = raw[pairs[:, 0]] * raw[pairs[:, 1]]
    values, means, spreads = _standardised(products)
    return Features(
        features.single,
        pairs,
        np.concatenate([features.values, values]),
        np.concatenate([features.means, means]),
        np.concatenate([features.spreads, spreads]),
    )


def _standardised(raw: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Values (D, n) with mean 0 and variance 1, means (D,) and spreads (D,)."""
    with np.errstate(all="ignore"):
        means = raw.mean(axis=1)
        values = raw - means[:, np.newaxis]
        spreads = np.sqrt(np.einsum("dn,dn->d", values, values) / max(1, raw.shape[1]))
        varies: BoolArray = np.isfinite(spreads) & (spreads > _FLAT * np.abs(means))
        values /= np.where(varies, spreads, np.inf)[:, np.newaxis]
    values[~varies] = 0.0  # never chosen: they explain nothing
    return values, means, spreads


@dataclass(frozen=True, eq=False)
class _ColumnOnRows:
    """A column: its values on all rows (A,), which say where it is defined, and on some (n,)."""

    name: str
    everywhere: FloatArray
    values: FloatArray

    def features(self) -> Iterator[Formula]:
        """The column under operations, those first that products are made of."""
        plain = Formula.of_base(Column(self.name))
        if self.name.startswith(RANK_OF):
            yield from (plain, plain.apply("sqrt"), plain.apply("square"), *self._centred(plain))
            return
        size = plain if (self.everywhere > 0).all() else plain.apply("abs")
        has_logarithm = bool((self.everywhere != 0).all()) and self._has_one_sign
        main = size.apply("log") if has_logarithm else self._scaled(plain).apply("signed_log")
        centred = list(self._centred(main))
        yield from (main, plain, *centred[:2])
        if has_logarithm:
            yield plain.apply("inverse")
        if self._has_one_sign:
            yield size.apply("sqrt")
        yield from centred[2:]
        yield plain.apply("square")

    def _scaled(self, plain: Formula) -> Formula:
        """The column in units in which its signed logarithm tells its numbers apart.

        The unit is a small magnitude if zero is its end, and a usual one if its sign changes.
        """
        sizes = np.abs(self.values[self.values != 0])
        unit = np.quantile(sizes, _SMALL if self._has_one_sign else 0.5) if len(sizes) else 1.0
        scale = float(f"{1 / unit:.1g}")
        if not 0 < scale < np.inf or _LIKE_ONE[0] <= scale <= _LIKE_ONE[1]:
            return plain
        return multiply([Formula.of_base(Constant(scale)), plain])

    @property
    def _has_one_sign(self) -> bool:
        return bool((self.everywhere >= 0).all() or (self.everywhere <= 0).all())

    def _centred(self, main: Formula) -> Iterator[Formula]:
        """What is around centres: z, tanh z, relus at quartiles, |z|, z squared."""
        [values] = Values(columns={self.name: self.values}).scores([main])
        spread = float(values.std())
        if not spread > _FLAT * float(np.abs(values).max()):
            return
        centred = _minus(main, float(values.mean()), spread)
        yield centred
        scale = Formula.of_base(Constant(float(f"{1 / spread:.3g}")))
        yield multiply([scale, centred]).apply("tanh")
        for share in _QUANTILES:
            yield _minus(main, float(np.quantile(values, share)), spread).apply("relu")
        yield centred.apply("abs")
        yield centred.apply("square")


def _minus(formula: Formula, centre: float, spread: float) -> Formula:
    """The formula less a centre, which is rounded to three digits of the spread."""
    places = 2 - int(np.floor(np.log10(spread)))
    rounded = round(centre, places)
    if not rounded:
        return formula
    constant = Formula.of_base(Constant(abs(rounded)))
    return add([formula, constant if rounded < 0 else -constant])


def _distinct(values: FloatArray) -> IntArray:
    """The rows of values (K, n) that vary, without those that say what an earlier one says."""
    centred = values - values.mean(axis=1, keepdims=True)
    size = np.sqrt((centred * centred).sum(axis=1))
    varies = size > _FLAT * np.sqrt((values * values).sum(axis=1))
    unit = centred / np.where(varies, size, 1.0)[:, np.newaxis]
    alike = np.abs(unit @ unit.T) >= _SAME
    kept: list[int] = []
    for place in np.flatnonzero(varies).tolist():
        if not alike[place, kept].any():
            kept.append(place)
    return np.array(kept, dtype=np.int64)
