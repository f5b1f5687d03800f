"""A table to judge scores on, with its parts, parameters and groups.

    table, split, scores (n,)  ->  a Judgement per part, a rho per part

Parts always come in the order train, valid, test, all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from lpzero.arrays import FloatArray, IntArray, LabelArray
from lpzero.judgement import counters
from lpzero.judgement.bootstrap import Difference, paired_difference
from lpzero.judgement.correlation import spearman
from lpzero.judgement.judgement import Judgement, judge
from lpzero.judgement.measures import RankMeasures
from spaces.tables.source import DEPTH_WIDTH, NO_SPACE

if TYPE_CHECKING:
    from spaces.tables import ColumnTable, Split, Table

SPLIT_PARTS = ("train", "valid", "test")
ALL = "all"
PARTS = (*SPLIT_PARTS, ALL)
LEAST_ARCHS = 2  # architectures that can be ranked at all


@dataclass(frozen=True, eq=False)
class TableJudge:
    """A table with the rows that scores are judged on.

    Without a split that is the whole table. With a split it is train and valid; test and the whole
    table are included only `with_test`, which is for the final report. `columns` (n,) by name are
    rivals beside the counters; a table without networks has these alone, no sizes and no groups.
    Groups are those `within` which is ranked: equal depth and width, or an extra column's value.
    """

    table: Table | ColumnTable
    split: Split | None = None
    with_test: bool = False
    columns: Mapping[str, FloatArray] = field(default_factory=dict)
    within: str = DEPTH_WIDTH

    @cached_property
    def parts(self) -> dict[str, IntArray]:
        """The rows of each part of the split; the test rows only `with_test`."""
        if self.split is None:
            return {}
        open_parts = {"train": self.split.train, "valid": self.split.valid}
        return open_parts | {"test": self.split.open_test()} if self.with_test else open_parts

    @cached_property
    def rows(self) -> dict[str, IntArray]:
        """The rows of all that can be judged: the parts, and the whole table if allowed."""
        is_whole = self.split is None or self.with_test
        return self.parts | ({ALL: np.arange(len(self.table))} if is_whole else {})

    @cached_property
    def parameters(self) -> FloatArray | None:
        """The parameters of every architecture (n,); None without architectures."""
        return None if self.table.space is None else counters.score("parameters", self.table)

    @cached_property
    def groups(self) -> LabelArray | None:
        """A label for every architecture (n,), the same inside a group; None without any."""
        return None if self.table.space is None else self.table.groups(self.within)

    @property
    def facts(self) -> dict[str, Any]:
        """The description of the table in a result, as JSON values."""
        return {
            "space": space_name(self.table),
            "target": self.table.target,
            "licence": self.table.licence,
            "ceiling": self.table.ceiling,
            "n": {part: len(rows) for part, rows in self.parts.items()},
            "split_seed": None if self.split is None else self.split.seed,
        }

    def judge(self, scores: FloatArray, *parts: str) -> dict[str, Judgement]:
        """The judgement of scores (n,) on each part named, or on all parts if none is named.

        Architectures without a finite score are left out if at least two others remain.
        """
        judgements = {}
        for part in parts or self.rows:
            kept = self._scored(scores, part)
            if len(kept) < LEAST_ARCHS:
                kept = self.rows[part]
            judgements[part] = judge(scores[kept], *self._beside(kept))
        return judgements

    def judge_chosen(self, scores: FloatArray, *parts: str) -> dict[str, dict[str, Any]]:
        """The judgements, as JSON values, of scores that were chosen on train and valid rows."""
        return {
            part: {**judgement.to_json(), "in_sample": part != "test"}
            for part, judgement in self.judge(scores, *parts).items()
        }

    def rho(self, scores: FloatArray, part: str = ALL) -> float:
        """Rho of the scores (n,) on a part; 0 if fewer than two of them are finite."""
        kept = self._scored(scores, part)
        return spearman(scores[kept], self.table.targets[kept]) if len(kept) >= LEAST_ARCHS else 0.0

    def rhos(self, scores: FloatArray) -> dict[str, float]:
        """Rho of the scores (n,) on each part of the split."""
        return {part: self.rho(scores, part) for part in self.parts}

    def counters(self) -> Iterator[dict[str, Any]]:
        """A line per counter and column with its rhos and judgements, as JSON values."""
        for name, scores in {**self.counter_scores, **self.oriented_columns()}.items():
            judged = self.judge(scores)
            yield {
                "proxy": name,
                "table": self.table.name,
                "rho": self.rhos(scores),
                "judged": {part: judgement.to_json() for part, judgement in judged.items()},
            }

    @cached_property
    def counter_scores(self) -> dict[str, FloatArray]:
        """The counters (n,) by name; none without architectures."""
        table = self.table
        if table.space is None:
            return {}
        return {name: counters.score(name, table) for name in counters.defined(table.space)}

    def best_counter(self) -> tuple[str, FloatArray] | None:
        """The counter with the largest absolute rho on train and valid, with its scores (n,).

        Chosen like a winner: the best of several on test would be chosen on test. So is the sign: a
        counter of which less is better is called `-NAME` and negated.
        """
        of_counters = self.counter_scores
        rhos = {name: self._train_valid_rho(scores) for name, scores in of_counters.items()}
        name = max(rhos, key=lambda name: abs(rhos[name]), default=None)
        if name is None:
            return None
        return (f"-{name}", -of_counters[name]) if rhos[name] < 0 else (name, of_counters[name])

    def oriented_columns(self) -> dict[str, FloatArray]:
        """The columns (n,) with the sign fitted on train and valid, which their names show."""
        oriented = {}
        for name, scores in self.columns.items():
            is_falling = self._train_valid_rho(scores) < 0
            oriented[f"-{name}" if is_falling else name] = -scores if is_falling else scores
        return oriented

    def best_column(self) -> tuple[str, FloatArray] | None:
        """The oriented column with the largest rho on train and valid together, and its scores."""
        columns = self.oriented_columns()
        name = max(columns, key=lambda name: self._train_valid_rho(columns[name]), default=None)
        return None if name is None else (name, columns[name])

    def _train_valid_rho(self, scores: FloatArray) -> float:
        rows = np.concatenate([self.parts[part] for part in SPLIT_PARTS[:2] if part in self.parts])
        return spearman(scores[rows], self.table.targets[rows])

    def compare(
        self, scores: FloatArray, rivals: Mapping[str, FloatArray], part: str = "test"
    ) -> dict[str, Difference]:
        """The paired difference of rho against each rival's scores (n,) on the rows of a part.

        Architectures without a finite score from both are left out, and a rival with which hardly
        any has one.
        """
        differences = {}
        for name, others in rivals.items():
            rows = self._scored(scores, part)
            kept = rows[np.isfinite(others[rows])]
            if len(kept) >= LEAST_ARCHS:
                targets = self.table.targets[kept]
                differences[name] = paired_difference(scores[kept], others[kept], targets)
        return differences

    def by_group(self, rows: IntArray) -> IntArray:
        """The rows group after group, in which order they are measured in less time."""
        return rows if self.groups is None else rows[np.argsort(self.groups[rows], kind="stable")]

    def measures(self, rows: IntArray) -> RankMeasures:
        """Measures of many score vectors at once, on these rows."""
        return RankMeasures(*self._beside(rows))

    def _beside(self, rows: IntArray) -> tuple[FloatArray, FloatArray | None, LabelArray | None]:
        """Targets, parameters and groups of these rows."""
        sizes, groups = self.parameters, self.groups
        return (
            self.table.targets[rows],
            None if sizes is None else sizes[rows],
            None if groups is None else groups[rows],
        )

    def _scored(self, scores: FloatArray, part: str) -> IntArray:
        rows = self.rows[part]
        return rows[np.isfinite(scores[rows])]


def space_name(table: Table | ColumnTable) -> str:
    """The name of the table's space, or the word for a table without one."""
    return NO_SPACE if table.space is None else table.space.name
