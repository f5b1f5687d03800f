"""How much a formula may read of the networks: a level, chosen by cross-validation of the search.

    values of one seed or more, counters ->  ReliableTerms  ->  Level, simplest first
    levels, training and validation rows ->  LevelChoice: the level, its winner, what was expected

Levels, simplest first: the best counter; the best size or counter; a product of up to four of
these; a product of up to four terms that rank alike with other weights (`stable`); one of terms
whose logarithms correlate at .9 with those of other weights (`reliable`). The whole search of each
level runs again without each fold of the training and validation rows, so that its rho on the rows
left out is what to expect of it. The simplest level within one standard error of the best is taken
and fitted to all these rows; if the best is not clearly above 0, the simplest of all. Test rows
have no part in it. Shapes: T terms, A architectures, n training and validation rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import islice
from typing import Any, NamedTuple, Protocol

import numpy as np

from lpzero.arrays import BoolArray, FloatArray, IntArray
from lpzero.judgement.correlation import agreement, correlate_rows, spearman
from lpzero.judgement.ranks import rank, rank_targets
from lpzero.scores.products import Beam, Found, Searched, search_tables
from lpzero.scores.terms import TermTable
from primitives.formula import Atom, Column, Formula, Term

COUNTER, SIZE, COUNT, STABLE, RELIABLE = "counter", "size", "count", "stable", "reliable"
FOLDS = 5
TWICE_BELOW = 100  # rows: folds of few rows are drawn twice
MOST_TERMS = 4
LEAST_AGREEMENT = 0.998  # of ranks, for the level `stable`
LEAST_RELIABILITY = 0.9  # of logarithms, for the level `reliable`
FAR = 0.1  # between the rho of the fit and the one to expect
SAME = 0.995  # terms whose logarithms correlate so far are one


@dataclass(frozen=True, eq=False)
class ReliableTerms:
    """Terms, and how far their ranks and logarithms repeat with other weights (T,)."""

    table: TermTable
    agreement: FloatArray
    reliability: FloatArray
    counters: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, table: TermTable, second: FloatArray | None, rows: IntArray, counters: frozenset[str]
    ) -> ReliableTerms:
        """The terms of one seed with the values (T, R) of a second on these rows, if there are."""
        if second is None:
            ones = np.ones(len(table))
            return cls(table, ones, ones, counters)
        again, first = np.abs(second), table.values[:, rows]
        usable = _has_logs(again)
        logs = np.log(np.where(usable[:, np.newaxis], again, first))
        return cls(
            table,
            np.where(usable, agreement(first, again), 0.0),
            np.where(usable, correlate_rows(np.log(first), logs), 0.0),
            counters,
        )

    def averaged_with(self, others: Sequence[FloatArray]) -> ReliableTerms:
        """The terms with logarithms averaged over more seeds, whose values (T, A) are given.

        A term that a seed does not have keeps its values; it is not reliable.
        """
        if not others:
            return self
        logs, usable = self.table.logs, np.ones(len(self.table), dtype=np.bool_)
        for values in map(np.abs, others):
            usable &= _has_logs(values)
            logs = logs + np.log(np.where(usable[:, np.newaxis], values, self.table.values))
        means = np.where(usable[:, np.newaxis], np.exp(logs / (1 + len(others))), self.table.values)
        return ReliableTerms(
            TermTable(self.table.terms, means, self.table.positive),
            np.where(usable, self.agreement, 0.0),
            np.where(usable, self.reliability, 0.0),
            self.counters,
        )

    def level(self, name: str) -> Level:
        """The level of that name."""
        is_counter = np.array([_is_counter(term, self.counters) for term in self.table.terms])
        is_size = [isinstance(term, Term) and not term.statistics for term in self.table.terms]
        is_count = np.array(is_size) | is_counter
        kept: BoolArray = {
            COUNTER: is_counter,
            SIZE: is_count,
            COUNT: is_count,
            STABLE: is_count | (self.agreement >= LEAST_AGREEMENT),
            RELIABLE: is_count | (self.reliability >= LEAST_RELIABILITY),
        }[name]
        terms = self.table.of(kept)
        if name not in (COUNTER, SIZE):
            terms = terms.of(_unlike(terms.logs))
        return Level(name, terms, 1 if name in (COUNTER, SIZE) else MOST_TERMS, self.counters)


class AnyLevel(Protocol):
    """A set of formulas that is searched on any rows: `Level`, or a `ColumnLevel`."""

    @property
    def name(self) -> str: ...
    @property
    def n_terms(self) -> int:
        """The number of terms that it reads."""

    def best(self, targets: FloatArray, rows: IntArray, n: int) -> Sequence[Any]:
        """The n best on the rows, best first, each with the sign that suits them."""

    def scores(self, product: Any) -> FloatArray:
        """The scores (A,) of one of these."""

    def formula(self, product: Any) -> Formula: ...
    def admits(
        self, formulas: Sequence[Formula], first: FloatArray, second: FloatArray
    ) -> BoolArray:
        """Which formulas with scores (K, R) of two seeds may win beside its own."""


@dataclass(frozen=True, eq=False)
class Level:
    """Terms and the most of them that a product may have."""

    name: str
    terms: TermTable
    most: int
    counters: frozenset[str] = frozenset()

    @property
    def n_terms(self) -> int:
        """The number of terms that it reads."""
        return len(self.terms)

    @property
    def beam(self) -> Beam:
        """How its products are searched; powers of a single term rank alike."""
        return Beam(1, exponents=(Fraction(1),)) if self.most == 1 else Beam(self.most)

    def best(self, targets: FloatArray, rows: IntArray, n: int) -> list[Found]:
        """The n best products on the rows, each with the sign that suits them."""
        if not len(self.terms):
            return []
        searched = self.searched(targets, rows)
        return list(islice(search_tables([searched], beam=self.beam), n))

    def searched(self, targets: FloatArray, rows: IntArray) -> Searched:
        """Its terms on the rows, with the ranked targets."""
        return Searched(self.terms.logs[:, rows], rank_targets(targets[rows]))

    def with_values(self, values: FloatArray) -> Level:
        """The same terms with other values (T, A)."""
        terms = TermTable(self.terms.terms, values, self.terms.positive)
        return Level(self.name, terms, self.most, self.counters)

    def admits(
        self, formulas: Sequence[Formula], first: FloatArray, second: FloatArray
    ) -> BoolArray:
        """Which formulas with scores (K, R) of two seeds read no more of the networks than it."""
        if self.name in (COUNTER, SIZE, COUNT):
            return np.array([self._counts(formula) for formula in formulas], dtype=np.bool_)
        if self.name == STABLE:
            return agreement(first, second) >= LEAST_AGREEMENT
        scores = np.stack([first, second])
        with np.errstate(all="ignore"):
            logs = np.log(np.abs(scores))
        first, second = np.where(_has_one_sign(scores)[:, np.newaxis], logs, scores)
        finite = np.isfinite(first).all(axis=1) & np.isfinite(second).all(axis=1)
        repeated = np.zeros(len(formulas))
        repeated[finite] = correlate_rows(first[finite], second[finite])
        return repeated >= LEAST_RELIABILITY

    def _counts(self, formula: Formula) -> bool:
        """Whether the formula reads no more sizes and counters than the level, and no network."""
        if formula.statistics or len(formula.atoms) > self.most:
            return False
        if self.name == COUNTER and formula.terms:
            return False
        return self.counters.issuperset(formula.columns)

    def scores(self, product: Found) -> FloatArray:
        """The product's logarithm (A,) with its sign."""
        return product.sign * product.factors.logs(self.terms.logs)

    def formula(self, product: Found) -> Formula:
        return product.factors.formula(self.terms, product.sign)


LEVELS = (COUNTER, SIZE, COUNT, STABLE, RELIABLE)


def levels(terms: ReliableTerms) -> list[Level]:
    """The levels that have terms, simplest first."""
    return [level for level in map(terms.level, LEVELS) if len(level.terms)]


def mean_over_seeds(scores: FloatArray) -> FloatArray:
    """The means (K, A) of scores (seeds, K, A): of logarithms where all of a formula have one sign.

    A product's mean is thus the product of its terms' means.
    """
    with np.errstate(all="ignore"):
        of_logs = np.sign(scores[0]) * np.exp(np.log(np.abs(scores)).mean(axis=0))
    means = np.where(_has_one_sign(scores)[:, np.newaxis], of_logs, scores.mean(axis=0))
    return np.asarray(means)


def _has_logs(values: FloatArray) -> BoolArray:
    """Which rows (T,) of magnitudes (T, A) are finite and above zero."""
    return np.asarray((np.isfinite(values) & (values > 0)).all(axis=1))


def _has_one_sign(scores: FloatArray) -> BoolArray:
    """Which formulas (K,) have scores (seeds, K, A) of one sign, and no zero."""
    return np.asarray((scores > 0).all(axis=(0, 2)) | (scores < 0).all(axis=(0, 2)))


def _is_counter(term: Atom, counters: frozenset[str]) -> bool:
    return isinstance(term, Column) and term.name in counters


def _unlike(logs: FloatArray) -> BoolArray:
    """Which rows (T, A) are kept so that no two correlate at `SAME` or more; earlier ones first."""
    centred = logs - logs.mean(axis=1, keepdims=True)
    size = np.sqrt((centred * centred).sum(axis=1, keepdims=True))
    unit = centred / np.where(size > 0, size, 1.0)
    kept: BoolArray = np.ones(len(logs), dtype=np.bool_)
    alike = np.abs(unit @ unit.T) >= SAME
    for row in range(len(logs)):
        if kept[row]:
            kept[row + 1 :] &= ~alike[row, row + 1 :]
    return kept


@dataclass(frozen=True, slots=True)
class LevelLine:
    """A level's cross-validated rho with its standard error, and how it compares with the best.

    `behind` is the best level's rho less this one's, `behind_error` the standard error of that.
    """

    level: str
    n_terms: int
    rho: float
    error: float
    behind: float
    behind_error: float

    @property
    def is_like_nothing(self) -> bool:
        """Whether its rho is not clearly above 0."""
        return self.rho <= 2 * self.error

    def to_json(self) -> dict[str, Any]:
        """The fields as plain JSON values."""
        return asdict(self)


class Fold(NamedTuple):
    """Rows searched, rows left out, and the scores (A,) of a level's best on those searched."""

    searched: IntArray
    left_out: IntArray
    scores: FloatArray

    def shares(self) -> FloatArray:
        """The score of each row left out as a share of those searched."""
        ordered, own = np.sort(self.scores[self.searched]), self.scores[self.left_out]
        below, up_to = (np.searchsorted(ordered, own, side) for side in ("left", "right"))
        return np.asarray((below + up_to) / (2 * len(ordered)))


@dataclass(frozen=True, eq=False)
class LevelLines:
    """The lines of all levels, simplest first, and the name of the one taken."""

    lines: tuple[LevelLine, ...]
    chosen: str

    @property
    def line(self) -> LevelLine:
        """The line of the level taken."""
        return next(line for line in self.lines if line.level == self.chosen)

    def expectation(self, fit: float) -> dict[str, Any]:
        """The rho to expect on new rows, as JSON values, beside the winner's own on the fitted."""
        line = self.line
        return {"rho": line.rho, "error": line.error, "fit": fit, "warning": self._warning(fit)}

    def _warning(self, fit: float) -> str | None:
        line = self.line
        if line.is_like_nothing:
            return (
                f"nothing holds: the cross-validated rho {line.rho:.3f} ± {line.error:.3f} is not"
                " clearly above 0"
            )
        if fit - line.rho > max(FAR, 2 * line.error):
            return (
                f"expect far less than the fit: {line.rho:.3f} ± {line.error:.3f} on rows left out,"
                f" {fit:.3f} on train and valid"
            )
        if line.level == COUNTER and max(other.rho for other in self.lines) > line.rho:
            return "these rows are too few to tell any level from a single counter"
        return None


@dataclass(frozen=True, eq=False)
class LevelChoice(LevelLines):
    """The level taken, and its folds; the rows are folded once or twice."""

    level: AnyLevel
    folded: Sequence[Sequence[Fold]]


def choose_level(
    levels: Sequence[AnyLevel], targets: FloatArray, rows: IntArray, units: Sequence[Any], seed: int
) -> LevelChoice | None:
    """The simplest level within a standard error of the best; None if nothing differs.

    `levels` come simplest first; `rows` (n,) are those of train and valid, of which those with
    equal `units` stay in one fold.
    """
    pairs = list(row_folds(rows, units, seed))
    usable, moves, rhos = [], [], []
    for level in levels:
        folded = [_searched(level, targets, of) for of in pairs]
        if not all(folded):
            continue
        measured = [influence(pooled(folds, rows), targets[rows]) for folds in folded]
        usable.append((level, folded))
        rhos.append(float(np.mean([of.rho for of in measured])))
        moves.append(np.mean([of.moves for of in measured], axis=0))
    if not usable:
        return None
    lines, chosen = compare([(of.name, of.n_terms) for of, _ in usable], rhos, moves)
    level, folded = usable[chosen]
    return LevelChoice(tuple(lines), level.name, level, folded)


def compare(
    levels: Sequence[tuple[str, int]], rhos: Sequence[float], moves: Sequence[FloatArray]
) -> tuple[list[LevelLine], int]:
    """A line for each level, and the place of the simplest within a standard error of the best.

    `levels` are names and numbers of terms, simplest first, `moves` (n,) the influences of rows on
    each rho. If the best is not clearly above 0, the first level is taken.
    """
    best = int(np.argmax(rhos))
    lines = [
        LevelLine(
            name,
            n_terms,
            rho,
            standard_error(own),
            rhos[best] - rho,
            standard_error(moves[best] - own),
        )
        for (name, n_terms), rho, own in zip(levels, rhos, moves, strict=True)
    ]
    chosen = next(i for i, line in enumerate(lines) if line.behind <= line.behind_error)
    return lines, 0 if lines[best].is_like_nothing else chosen


def row_folds(
    rows: IntArray, units: Sequence[Any], seed: int
) -> Iterator[list[tuple[IntArray, IntArray]]]:
    """Each time the rows are folded: pairs of the rows searched and the rows left out."""
    members: dict[Any, list[int]] = {}
    for row in rows.tolist():
        members.setdefault(units[row], []).append(row)
    for repetition in range(2 if len(rows) < TWICE_BELOW else 1):
        drawn = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, repetition])))
        groups = list(members.values())
        parts: list[list[int]] = [[] for _ in range(FOLDS)]
        for place in drawn.permutation(len(groups)).tolist():
            min(parts, key=len).extend(groups[place])
        yield [
            (np.setdiff1d(rows, part), np.sort(np.array(part, dtype=np.int64)))
            for part in parts
            if part
        ]


def _searched(
    level: AnyLevel, targets: FloatArray, pairs: Sequence[tuple[IntArray, IntArray]]
) -> list[Fold]:
    """The level searched on each fold; nothing if it has no product that differs on one."""
    folds = []
    for searched, left_out in pairs:
        products = level.best(targets, searched, 1)
        if not products:
            return []
        folds.append(Fold(searched, left_out, level.scores(products[0])))
    return folds


def pooled(folds: Sequence[Fold], rows: IntArray) -> FloatArray:
    """The share (n,) of each row from the fold it was left out of."""
    shares = np.zeros(len(rows))
    for fold in folds:
        shares[np.searchsorted(rows, fold.left_out)] = fold.shares()
    return shares


class Influence(NamedTuple):
    """Rho, and how far each row (n,) moves it."""

    rho: float
    moves: FloatArray


def influence(scores: FloatArray, targets: FloatArray) -> Influence:
    """Spearman's rho of scores (n,) with targets (n,), with the influence of each row."""
    first, second = (_standardised(ranks) for ranks in (rank(scores), rank_targets(targets)))
    rho = float((first * second).mean())
    return Influence(rho, first * second - rho / 2 * (first * first + second * second))


def _standardised(values: FloatArray) -> FloatArray:
    centred = values - values.mean()
    spread = math.sqrt(float((centred * centred).mean()))
    return np.asarray(centred / spread if spread > 0 else centred)


def standard_error(moves: FloatArray) -> float:
    """The standard error of a rho, or of a difference, whose rows move it so far (n,)."""
    return float(moves.std() / math.sqrt(len(moves)))


@dataclass(frozen=True, eq=False)
class LevelFloor:
    """The search of a level with its rows and the test rows, for permuted targets."""

    level: AnyLevel
    rows: IntArray
    test: IntArray

    def __call__(self, targets: FloatArray) -> tuple[float, float]:
        """The winner's rho on the rows it was chosen on and on the test rows, for targets (A,)."""
        best = self.level.best(targets, self.rows, 1)
        if not best:
            return 0.0, 0.0
        scores = self.level.scores(best[0])
        on_rows, tested = (spearman(scores[of], targets[of]) for of in (self.rows, self.test))
        return on_rows, tested


_SIZES = (10, 20, 30, 50, 100, 200, 500, 1000)
_AS_GOOD = 0.01  # a rho that much lower on the test rows is as good


@dataclass(frozen=True, eq=False)
class LearningCurve:
    """What the rule reaches on the test rows (m,) with fewer rows to choose on.

    Called with a number of rows, in any process; `whole` is the level that all rows take.
    """

    whole: AnyLevel
    levels: Sequence[AnyLevel]
    targets: FloatArray
    rows: IntArray
    test: IntArray
    units: Sequence[Any]
    seed: int

    @property
    def sizes(self) -> list[int]:
        """The numbers of rows, the last of which is all."""
        return [*(n for n in _SIZES if n < 0.8 * len(self.rows)), len(self.rows)]

    def __call__(self, n: int) -> dict[str, Any] | None:
        """The level taken with so many rows, and its winner's rho on the test rows.

        None if nothing differs between the few rows of a fold.
        """
        level, rows = self.whole, draw_rows(self.rows, n, self.seed)
        if n < len(self.rows):
            choice = choose_level(self.levels, self.targets, rows, self.units, self.seed)
            if choice is None:
                return None
            level = choice.level
        products = level.best(self.targets, rows, 1)
        rho = spearman(level.scores(products[0])[self.test], self.targets[self.test])
        return {"n": n, "level": level.name, "rho": rho}


def draw_rows(rows: IntArray, n: int, seed: int) -> IntArray:
    """The subset of n rows for a learning curve, in their order; larger ones contain it."""
    seeds = np.random.SeedSequence([seed, len(rows)])
    drawn = np.random.Generator(np.random.Philox(seeds)).permutation(len(rows))
    return np.sort(rows[drawn[:n]])


def learning_sentence(points: Sequence[Mapping[str, Any]]) -> str:
    """Whether more trained architectures would help, from the points of a learning curve."""
    last = points[-1]
    if len(points) < 2:
        return f"{last['n']} rows are too few to draw subsets of."
    enough = next(
        point["n"]
        for place, point in enumerate(points)
        if all(abs(last["rho"] - later["rho"]) <= _AS_GOOD for later in points[place:])
    )
    if enough < last["n"]:
        return f"From {enough} rows on the test rho changes by at most {_AS_GOOD}: they are enough."
    before = points[-2]
    change = last["rho"] - before["rho"]
    if change > 0:
        return (
            f"From {before['n']} to {last['n']} rows the test rho still rises by {change:.3f}: more"
            " trained architectures would help."
        )
    return (
        f"From {before['n']} to {last['n']} rows the test rho falls by {-change:.3f}: the test rows"
        " are too few to tell whether more trained architectures would help."
    )
