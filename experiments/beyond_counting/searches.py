"""What a search proposes on some rows: formulas with their scores from two seeds.

table with branch tables of two seeds, rows  ->  Pool

The beam searches products of terms. Random search and evolution are those of `lpzero discover`, in
its language of products, with as many formulas scored exactly as the beam ranks exactly.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from lpzero.arrays import FloatArray, IntArray
from lpzero.discover.candidate import Candidate, Verdict
from lpzero.discover.evolution import Evolution, State
from lpzero.discover.settings import STABLE, Settings, preset
from lpzero.judgement.measures import Measures, RankMeasures
from lpzero.judgement.ranks import rank_targets
from lpzero.judgement.table import TableJudge
from lpzero.scores.branch_table import BranchTable, rows_of
from lpzero.scores.products import MOST_FACTORS, Beam, Found, search
from lpzero.scores.terms import (
    TermLanguage,
    TermTable,
    stable_term_tables,
    term_table,
    values_of,
)
from lpzero.scores.values import Values
from lpzero.sketches.sketch import Sketch
from primitives.canonical import canonical
from primitives.errors import Rejected
from primitives.formula import Formula
from spaces.tables import Table

POOL = 400  # formulas of a search that are chosen from
BATCH = 100
RANKED = MOST_FACTORS * Beam().exact  # products that a beam of four factors ranks exactly


class Arm(NamedTuple):
    """A language, how many terms a product of it may have, and proxies whose scores are terms."""

    language: TermLanguage
    factors: int
    proxies: tuple[str, ...] = ()


# Scores (A,) of proxies by name, with one seed of weights and batch.
ProxyScores = Mapping[str, FloatArray]


class Data(NamedTuple):
    """A table with the sketches and branch tables of two seeds."""

    table: Table
    sketches: Sequence[Sketch]
    branches: BranchTable
    repeated_sketches: Sequence[Sketch]
    repeated: BranchTable


class Pool(NamedTuple):
    """K formulas, best first, with their scores (K, A) from two seeds; 0 where the second fails."""

    formulas: list[Formula]
    scores: FloatArray
    repeated: FloatArray

    @property
    def complexity(self) -> list[int]:
        """The nodes of each formula."""
        return [formula.complexity for formula in self.formulas]


class Terms(NamedTuple):
    """The terms of a language, and their logarithms (T, A) from the other seed."""

    table: TermTable
    repeated: FloatArray


def terms_of(
    data: Data, arm: Arm, scores: tuple[ProxyScores, ProxyScores] = ({}, {})
) -> dict[bool, Terms]:
    """All terms of the language on a table, and (True) those whose values repeat.

    `scores` are those of the arm's proxies, with both seeds.
    """
    both = (Values(data.branches, scores[0]), Values(data.repeated, scores[1]))
    (steady,) = stable_term_tables([both], arm.language, STABLE)
    return {
        is_stable: Terms(terms, repeated_logs(terms, both[1]))
        for is_stable, terms in (
            (False, term_table(both[0], arm.language)),
            (True, steady),
        )
    }


def repeated_logs(terms: TermTable, repeated: Values) -> FloatArray:
    """The logarithms (T, A) of the same terms from another source; NaN where undefined."""
    values = np.abs(values_of(terms.terms, repeated))
    return np.log(np.where(values > 0, values, np.nan))


def beam(data: Data, terms: Terms, factors: int, rows: IntArray) -> Pool:
    """The products that a beam search on the rows finds."""
    found = _beam(data, terms, factors, rows)[:POOL]
    scores, repeated = (
        np.stack([one.factors.logs(logs) for one in found])
        for logs in (terms.table.logs, terms.repeated)
    )
    formulas = [one.factors.formula(terms.table) for one in found]
    return Pool(formulas, scores, _or_zero(repeated))


def _beam(data: Data, terms: Terms, factors: int, rows: IntArray) -> list[Found]:
    ranks = rank_targets(data.table.targets[rows])
    return search(terms.table.logs[:, rows], ranks, Beam(factors=factors))


def evolve(data: Data, terms: Terms, arm: str, rows: IntArray, seed: int) -> Pool:
    """The best formulas of `random`, `evolution` or `beam, evolution` with the rows as fitness.

    The last starts from the beam's best and so has twice the budget of the others.
    """
    settings = preset(
        "default", method="random" if arm == "random" else "front", population=BATCH,
        offspring=BATCH, generations=RANKED // BATCH - 1, seed=seed,
    )  # fmt: skip

    def first() -> list[Formula]:
        found = _beam(data, terms, MOST_FACTORS, rows) if arm == "beam, evolution" else []
        return [one.factors.formula(terms.table) for one in found[: BATCH // 2]]

    tried = _generations(settings, _judge(data, rows), first)
    best = sorted((c for c in tried if c.is_scored), key=lambda c: (-c.fitness[0], c.id))
    formulas = [canonical(candidate.formula) for candidate in best[:POOL]]
    scores = Values(data.branches).scores(formulas)
    again = Values(data.repeated).scores(formulas)
    usable = np.flatnonzero(np.isfinite(scores).all(axis=1))
    return Pool([formulas[i] for i in usable], scores[usable], _or_zero(again[usable]))


def _generations(
    settings: Settings,
    judge: Callable[[Sequence[Formula]], list[Verdict | Rejected]],
    first: Callable[[], Sequence[Formula]],
) -> list[Candidate]:
    evolution, rng = Evolution(settings, judge, first), random.Random(settings.seed)
    state, tried = State(), []
    while state.generation <= settings.generations and not state.exhausted:
        state = evolution.step(state, rng)
        tried += state.tried
    return tried


def _judge(data: Data, rows: IntArray) -> Callable[[Sequence[Formula]], list[Verdict | Rejected]]:
    """Fitness is rho on the rows."""
    values = Values(rows_of(data.branches, rows))
    measures: RankMeasures = TableJudge(data.table).measures(rows)

    def judge(formulas: Sequence[Formula]) -> list[Verdict | Rejected]:
        answers = values.answers([canonical(formula) for formula in formulas])
        return [s if isinstance(s, Rejected) else _verdict(measures, s) for s in answers]

    return judge


def _verdict(measures: RankMeasures, scores: FloatArray) -> Verdict | Rejected:
    found = measures.measure(scores[np.newaxis])
    if found.constant[0] or found.non_finite[0]:
        return Rejected("constant-score", "every architecture has the same score")
    values = Measures(*map(float, found.values[:, 0]))
    sign = -1 if values.rho < 0 else 1
    signed = values.negated() if sign < 0 else values
    return Verdict(sign, (signed,), (signed.rho,))


def _or_zero(scores: FloatArray) -> FloatArray:
    """The scores (K, A); a row with a value that is not finite is all 0, which repeats nothing."""
    return np.where(np.isfinite(scores).all(axis=1, keepdims=True), scores, 0.0)
