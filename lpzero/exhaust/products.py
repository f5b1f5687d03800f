"""Every product of two terms on one table: measured in shards on the training rows.

Shards stream: of each only the best by every measure stay, so that millions of products need the
memory of one shard. Shards are the same for any number of workers and any memory. Products of
chains of one are all ranked exactly. Those of chains of two, a hundred times as many, are all
screened by the closed form of `lpzero.scores.products`, and the best of each shard ranked exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lpzero.arrays import FloatArray, IntArray
from lpzero.errors import EnvelopeError, InputError
from lpzero.exhaust.results import Entry, Query
from lpzero.exhaust.shards import ShardFiles
from lpzero.files import read_sealed, write_sealed
from lpzero.judgement.measures import MEASURES, RHO, Measures, RankMeasures
from lpzero.runs.layout import SHARDS, place
from lpzero.scores.products import PAIR_EXPONENTS, Factors, PairScreen, is_new_pair, largest
from lpzero.scores.terms import TermTable
from primitives.parser import parse

PER_SHARD = 1 << 15
SCREENED_PER_SHARD = 1 << 20
RANKED = 2000  # products of a screened shard that are ranked exactly
KEPT = 500  # products of a shard, by each measure
_SCORED = 1 << 17  # scores (products times rows) at a time: a megabyte, which stays in the caches
_COPIES = 6  # arrays of a shard in a worker at the same time
_TERMS = "terms.json"


@dataclass(frozen=True, slots=True)
class PairShard:
    """Products of the terms from start to stop with every other one to one exponent."""

    exponent: int
    start: int
    stop: int

    def n_products(self, n_terms: int) -> int:
        """How many products of so many terms it has."""
        n_firsts, n_seconds = self.stop - self.start, n_terms - 1
        if abs(PAIR_EXPONENTS[self.exponent]) == 1:  # each unordered pair once
            return n_firsts * (2 * n_seconds - self.start - self.stop + 1) // 2
        return n_firsts * n_seconds


def cut(n_terms: int, is_screened: bool = False) -> list[PairShard]:
    """The shards of all products of two of so many terms."""
    step = max(1, (SCREENED_PER_SHARD if is_screened else PER_SHARD) // max(1, n_terms))
    return [
        PairShard(exponent, start, min(start + step, n_terms))
        for exponent in range(len(PAIR_EXPONENTS))
        for start in range(0, n_terms, step)
    ]


@dataclass(frozen=True, eq=False)
class PairTask:
    """Runs in a worker: measures a shard from the terms' logarithms (T, n) and writes it.

    `screen`, if given, selects the products that are ranked exactly, by the ranked target (n,).
    """

    logs: FloatArray
    measures: RankMeasures
    files: ShardFiles
    target_ranks: FloatArray
    screen: PairScreen | None = None

    def __call__(self, task: tuple[int, PairShard]) -> None:
        number, shard = task
        first, second, values, counts = self.measure(shard)
        arrays = {"first": first, "second": second, "values": values, "counts": np.array(counts)}
        self.files.write(number, arrays)

    def measure(
        self, shard: PairShard
    ) -> tuple[IntArray, IntArray, FloatArray, tuple[int, int, int, int]]:
        """The best: both terms (K,) and measures (3, K); counts as in `PairResults.counts`."""
        exponent = PAIR_EXPONENTS[shard.exponent]
        first, second, n_products = self._pairs(shard, exponent)
        values, n_constant, n_bad = np.empty((len(MEASURES), len(first))), 0, 0
        step = max(1, _SCORED // self.logs.shape[1])
        for start in range(0, len(first), step):
            part = slice(start, start + step)
            scores = self.logs[first[part]]
            scores += float(exponent) * self.logs[second[part]]
            measured = self.measures.measure(scores)
            is_bad = measured.constant | measured.non_finite
            values[:, part] = np.where(is_bad, np.nan, measured.values)
            n_constant += int(measured.constant.sum())
            n_bad += int(measured.non_finite.sum())
        kept = best_of(values)
        counts = n_products, n_constant, n_bad, len(first)
        return first[kept], second[kept], values[:, kept], counts

    def _pairs(self, shard: PairShard, exponent: Fraction) -> tuple[IntArray, IntArray, int]:
        """Both terms (P,) of the products to rank exactly, and how many products there are."""
        first, second = np.meshgrid(
            np.arange(shard.start, shard.stop), np.arange(len(self.logs)), indexing="ij"
        )
        there = is_new_pair(first, second, exponent)
        if self.screen is None:
            return first[there], second[there], int(there.sum())
        with_target = self.screen.with_target(self.target_ranks)
        screened = self.screen.correlations(with_target, shard.start, shard.stop, exponent)
        places = np.sort(largest(screened.reshape(-1), RANKED))
        places = places[there.reshape(-1)[places]]
        return first.reshape(-1)[places], second.reshape(-1)[places], int(there.sum())


def needed_bytes(n_terms: int, n_archs: int, jobs: int, is_screened: bool) -> int:
    """The memory that measuring takes in all processes together, about."""
    n_products = SCREENED_PER_SHARD if is_screened else PER_SHARD
    per_shard = (n_products + max(_SCORED, n_archs)) * 8
    shared = n_terms * (n_archs + (n_terms if is_screened else 0)) * 8
    return 2 * shared + jobs * _COPIES * per_shard


def best_of(values: FloatArray) -> IntArray:
    """The products (K,) with the largest absolute value of any measure (3, F), in their order."""
    kept: set[int] = set()
    for row in np.abs(np.nan_to_num(values, nan=-1.0)):
        n = min(KEPT, len(row))
        if n:
            kept.update(np.argpartition(-row, n - 1)[:n].tolist())
    return np.array(sorted(kept), dtype=np.int64)


class PairResults:
    """The best products of every shard of a run."""

    def __init__(self, files: ShardFiles, terms: TermTable, is_screened: bool = False) -> None:
        self.files, self.terms, self.is_screened = files, terms, is_screened
        self.shards = cut(len(terms), is_screened)

    def write_terms(self) -> None:
        """Write the terms, so that the run can be read without its sketches."""
        terms = {"terms": [str(term) for term in self.terms.terms]}
        write_sealed(*_terms_file(self.files), terms)

    def missing(self) -> list[tuple[int, PairShard]]:
        """The shards whose files are missing or broken."""
        return [(i, s) for i, s in enumerate(self.shards) if self._read(i) is None]

    @property
    def counts(self) -> tuple[int, int, int]:
        """Products evaluated; of those ranked exactly, how many are constant and not finite."""
        evaluated, constant, non_finite, _ = self._counts
        return evaluated, constant, non_finite

    @property
    def ranked(self) -> int:
        """Products ranked exactly: all, unless they were screened."""
        return self._counts[3]

    @cached_property
    def _counts(self) -> list[int]:
        per_shard = [self._whole(number)["counts"] for number in range(len(self.shards))]
        return [int(n) for n in np.sum(per_shard, axis=0)]

    def best(self, query: Query) -> list[Entry]:
        """The products with the largest absolute measure that the query asks for."""
        asked = Query(by=query.by, top=query.top)
        if query != asked:
            raise InputError("with --terms 2 only --by and --top can be given, no other filter")
        if self.is_screened and query.by != RHO:
            raise InputError(
                "with --terms 2 --unaries 2 products are screened by rho: --by can be rho only"
            )
        if query.top > KEPT:
            raise InputError(f"with --terms 2 --top can be at most {KEPT}")
        column = MEASURES.index(query.by)
        best: list[tuple[float, int, int]] = []
        for number in range(len(self.shards)):
            values = self._whole(number)["values"][column]
            best += [(abs(float(v)), number, i) for i, v in enumerate(values) if np.isfinite(v)]
            best = sorted(best, key=lambda place: (-place[0], place[1], place[2]))[: 5 * query.top]
        return [self._entry(column, number, i) for _, number, i in best]

    def _entry(self, column: int, number: int, i: int) -> Entry:
        shard = self._whole(number)
        measures = shard["values"][:, i]
        sign = -1 if measures[column] < 0 else 1
        exponent = PAIR_EXPONENTS[self.shards[number].exponent]
        powers = ((int(shard["first"][i]), Fraction(1)), (int(shard["second"][i]), exponent))
        formula = Factors(powers).formula(self.terms, sign)
        signed = Measures(*(float(sign * value) for value in measures))
        return Entry(formula, signed[column], signed)

    def _whole(self, number: int) -> dict[str, Any]:
        shard = self._read(number)
        if shard is None:
            raise InputError(f"the run in {self.files.folder} is not finished: start it again")
        return shard

    def _read(self, number: int) -> dict[str, Any] | None:
        if number not in self._cache:
            shard = self.files.read(number)
            if shard is None:
                return None
            self._cache[number] = shard
        return self._cache[number]

    @cached_property
    def _cache(self) -> dict[int, dict[str, Any]]:
        return {}


def _terms_file(files: ShardFiles) -> tuple[Path, str]:
    return files.folder / SHARDS / _TERMS, place(files.run, _TERMS)


def read_terms(files: ShardFiles) -> TermTable:
    """The terms of a run, without their values; none if their file is missing or broken."""
    try:
        texts = read_sealed(*_terms_file(files))["terms"]
    except (FileNotFoundError, EnvelopeError):
        texts = []
    terms = tuple(parse(text).atoms[0] for text in texts)
    return TermTable(terms, np.empty((len(terms), 0)))
